"""Subwords: a tokenizer splits what a node says into units, which the node then owns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from structpe.structure import Ids, Structure

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

__all__ = ["Alignment", "Gap", "Split", "split"]


class Gap(NamedTuple):
    """Characters that no unit covers.

    Attributes:
        node: the node whose label they are in; -1 where a whole text was split.
        start: where in the label or text they begin.
        text: the characters.
    """

    node: int
    start: int
    text: str


@dataclass(frozen=True)
class Alignment:
    """What a tokenizer could not align with the nodes, as far as its offsets are right. Blanks do not count.

    BPE without bytes and without an unknown token drops characters, and miscounts the offsets of what follows them:
    the gaps have the right length then, but stand too far right.

    Attributes:
        missing: nodes that got no unit and stand for the unknown token now.
        gaps: characters that no unit covers.
        shared: (text of the unit, its node, another node that it also covers) of units that cross a border.
        dropped: texts of units that lie in no node, and were left out; blanks are left out without mention.
    """

    missing: tuple[int, ...] = ()
    gaps: tuple[Gap, ...] = ()
    shared: tuple[tuple[str, int, int], ...] = ()
    dropped: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether all was aligned."""
        return not (self.missing or self.gaps or self.shared or self.dropped)

    def __str__(self) -> str:
        if self.complete:
            return "every unit has one node, every node a unit"
        parts = {
            "nodes without a unit": self.missing,
            "pieces of text in no unit": [gap.text for gap in self.gaps],
            "units across a border": [text for text, *_ in self.shared],
            "units in no node": self.dropped,
        }
        counted = {what: ", ".join(map(repr, found)) for what, found in parts.items() if found}
        return "; ".join(f"{len(parts[what])} {what}: {named}" for what, named in counted.items())


@dataclass(frozen=True, eq=False)
class Split:
    """A structure whose nodes own the units of a tokenizer.

    Attributes:
        structure: the same graph with ``units`` and ``owner``.
        ids: (u,) id of each unit in the tokenizer's vocabulary.
        report: what could not be aligned.
    """

    structure: Structure
    ids: Ids
    report: Alignment


class _Unit(NamedTuple):
    text: str
    id: int
    owner: int


def split(
    structure: Structure,
    tokenizer: Tokenizer,
    text: str | None = None,
    missing: Literal["unknown", "error"] = "unknown",
) -> Split:
    """Split the nodes of a structure into units, by character offset.

    Args:
        structure: without a text, each label is split by itself. A tokenizer that marks words by the blank before
            them sees none there, unless it adds one itself.
        tokenizer: any of the ``tokenizers`` library; its special tokens and padding are not used.
        text: the sentence that the nodes are words of. It is split whole, so that blanks and context count, and each
            unit goes to the node whose ``span`` (a feature of the readers ``conllu`` and ``tokens``) it covers most.
        missing: what becomes of a node without any unit: the tokenizer's ``unknown`` token, or an ``error``.

    Raises:
        StructureError: a tokenizer that truncates; a text without spans; a node without a unit where that is an error,
            or where the tokenizer has no unknown token.
    """
    if tokenizer.truncation is not None:
        length = tokenizer.truncation["max_length"]
        raise structure.error(
            f"the tokenizer truncates to {length} units, so nodes could be lost in silence; call its "
            "no_truncation() first"
        )
    units, report = _of_labels(structure, tokenizer) if text is None else _of_text(structure, tokenizer, text)
    owned = {unit.owner for unit in units}
    lost = [node for node in range(structure.size) if node not in owned]
    units += [_unknown(structure, tokenizer, node, missing) for node in lost]
    units.sort(key=lambda unit: unit.owner)
    ids = np.array([unit.id for unit in units], dtype=np.int64)
    structure = structure.with_units([unit.text for unit in units], [unit.owner for unit in units])
    return Split(structure, ids, Alignment(tuple(lost), *report))


Found = tuple[tuple[Gap, ...], tuple[tuple[str, int, int], ...], tuple[str, ...]]


def _of_labels(structure: Structure, tokenizer: Tokenizer) -> tuple[list[_Unit], Found]:
    units: list[_Unit] = []
    gaps: list[Gap] = []
    encodings = tokenizer.encode_batch(list(structure.nodes), add_special_tokens=False)
    for node, (label, encoding) in enumerate(zip(structure.nodes, encodings, strict=True)):
        parts = list(_parts(encoding))
        units += [_Unit(text, id, node) for text, id, _, _ in parts]
        gaps += _gaps(label, [(start, end) for _, _, start, end in parts], node)
    return units, (tuple(gaps), (), ())


def _of_text(structure: Structure, tokenizer: Tokenizer, text: str) -> tuple[list[_Unit], Found]:
    if "span" not in structure.features:
        raise structure.error(
            "the structure has no feature 'span', which says where in the text each node stands; "
            "read it with 'conllu' or 'tokens', or split by labels: split(..., text=None)"
        )
    spans = np.asarray(structure.features["span"])
    units, covered, shared, dropped = [], [], [], []
    for piece, id, start, end in _parts(tokenizer.encode(text, add_special_tokens=False)):
        # A unit of no width (a mark that the tokenizer adds) belongs where it stands.
        over = np.minimum(spans[:, 1], max(end, start + 1)) - np.maximum(spans[:, 0], start)
        covered.append((start, end))
        if (best := int(over.argmax())) >= 0 and over[best] > 0:
            units.append(_Unit(piece, id, best))
            shared += [(piece, best, int(other)) for other in np.flatnonzero(over > 0) if other != best]
        elif text[start:end].strip():
            dropped.append(piece)
    return units, (tuple(_gaps(text, covered, -1)), tuple(shared), tuple(dropped))


def _parts(encoding: Encoding) -> Iterator[tuple[str, int, int, int]]:
    """Text, id, start and end of each unit that is no padding."""
    columns = zip(encoding.tokens, encoding.ids, encoding.offsets, encoding.attention_mask, strict=True)
    for text, id, (start, end), real in columns:
        if real:
            yield text, id, start, end


def _gaps(text: str, covered: Sequence[tuple[int, int]], node: int) -> list[Gap]:
    free = np.ones(len(text), dtype=bool)
    for start, end in covered:
        free[start:end] = False
    free &= np.array([not character.isspace() for character in text], dtype=bool)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], free.astype(int), [0]])))
    return [Gap(node, int(start), text[start:end]) for start, end in edges.reshape(-1, 2)]


def _unknown(structure: Structure, tokenizer: Tokenizer, node: int, missing: str) -> _Unit:
    named = f"node {node} ({structure.nodes[node]!r}) gets no unit from the tokenizer"
    if missing == "error":
        raise structure.error(f"{named}; give it another label, or allow missing='unknown'")
    token = _unknown_token(tokenizer)
    id = None if token is None else tokenizer.token_to_id(token)
    if token is None or id is None:
        raise structure.error(f"{named}, which has no unknown token either; give it one, or the node another label")
    return _Unit(token, id, node)


def _unknown_token(tokenizer: Tokenizer) -> str | None:
    """Only Unigram keeps an id in place of the token, and tells it in its JSON alone."""
    model = json.loads(tokenizer.to_str())["model"]
    if model.get("unk_id") is not None:
        return str(model["vocab"][model["unk_id"]][0])
    token: str | None = model.get("unk_token")
    return token
