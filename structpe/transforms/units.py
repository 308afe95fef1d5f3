"""Subwords: a tokenizer splits the label of a node into units, which the node then owns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from structpe.structure import Ids, Structure, of_structures
from structpe.transforms._special import hung_on_root
from structpe.transforms._tokenizers import AnyTokenizer, as_tokenizer, unknown_token
from structpe.transforms.alignment import Alignment, Gap

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

__all__ = ["Alignment", "Gap", "Special", "Split", "split"]

Special = Literal["none", "border", "root"]


@dataclass(frozen=True, eq=False)
class Split:
    """A structure whose nodes own the units of a tokenizer.

    Attributes:
        structure: the same graph with ``units`` and ``owner``.
        ids: (u,) id of each unit in the tokenizer's vocabulary.
        report: what could not be aligned.
        spans: (u, 2) start and end of each unit in the text, or in the label of its node if there is no text; -1, -1
            for units that are not in the text: the unknown token of a missing node, and special tokens.
    """

    structure: Structure
    ids: Ids
    report: Alignment
    spans: Ids


class _Unit(NamedTuple):
    text: str
    id: int
    owner: int
    start: int = -1
    end: int = -1


@of_structures
def split(
    structure: Structure,
    tokenizer: AnyTokenizer,
    text: str | None = None,
    missing: Literal["unknown", "none", "error"] = "unknown",
    blanks: Literal["drop", "keep"] = "drop",
    special: Special = "none",
) -> Split:
    """Split the nodes of a structure into units, by character offset.

    Args:
        structure: the graph. Without a text, each label is split separately; a tokenizer that marks words by the space
            before them sees no space there, unless it adds one.
        tokenizer: one of the ``tokenizers`` library, a fast one of ``transformers``, or the path of a
            ``tokenizer.json`` or of a folder that has one. Its padding is not used.
        text: the sentence whose words are the nodes. It is split as a whole, with spaces and context, and each unit
            belongs to the node whose ``span`` (a feature of the readers ``conllu`` and ``tokens``) it covers most; the
            first of several.
        missing: for a node without units, such as a bracket that is one unit with the full stop after it: ``unknown``
            gives it the tokenizer's unknown token; ``none`` leaves it without a unit (unless no node has any, since a
            structure needs units; then all get the unknown token); ``error`` raises an error.
        blanks: whether to drop units of white space between words; otherwise they belong to the node after them, and
            at the end to the node before. Then the ids are those of the tokenizer for the text, if all was aligned.
        special: for tokens that the tokenizer adds around a text, such as [CLS] and [SEP]: ``none`` leaves them out;
            with ``border`` they belong to the first and the last node; with ``root`` each is a new node, a child of
            the root by the relation ``special``.

    Raises:
        StructureError: the tokenizer truncates; there is a text but no spans; a node has no unit, and ``missing`` is
            ``error`` or the tokenizer has no unknown token; ``special`` is ``root`` and there is no root.
        TokenizerError: the tokenizer is slow, or not a tokenizer.
    """
    fast = as_tokenizer(tokenizer)
    if fast.truncation is not None:
        length = fast.truncation["max_length"]
        raise structure.error(
            f"the tokenizer truncates to {length} units, so nodes could be lost silently; call its "
            "no_truncation() first"
        )
    units, report = _of_labels(structure, fast) if text is None else _of_text(structure, fast, text, blanks == "keep")
    owned = {unit.owner for unit in units}
    lost = [node for node in range(structure.size) if node not in owned]
    moved = _moved(units)
    if missing != "none" or not units:
        units += [_unknown(structure, fast, node, missing) for node in lost]
    units.sort(key=lambda unit: unit.owner)
    if special != "none":
        around = _around(fast, structure.nodes[0] if text is None else text)
        structure, units = _with_special(structure, units, around, special)
    ids = np.array([unit.id for unit in units], dtype=np.int64)
    spans = np.array([(unit.start, unit.end) for unit in units], dtype=np.int64)
    structure = structure.with_units([unit.text for unit in units], [unit.owner for unit in units])
    return Split(structure, ids, Alignment(tuple(lost), *report, moved), spans)


Found = tuple[tuple[Gap, ...], tuple[tuple[str, int, int], ...], tuple[str, ...], tuple[str, ...]]


def _of_labels(structure: Structure, tokenizer: Tokenizer) -> tuple[list[_Unit], Found]:
    units: list[_Unit] = []
    gaps: list[Gap] = []
    encodings = tokenizer.encode_batch(list(structure.nodes), add_special_tokens=False)
    for node, (label, encoding) in enumerate(zip(structure.nodes, encodings, strict=True)):
        parts = list(_parts(encoding))
        units += [_Unit(text, id, node, start, end) for text, id, start, end in parts]
        gaps += _gaps(label, [(start, end) for _, _, start, end in parts], node)
    return units, (tuple(gaps), (), (), ())


def _of_text(structure: Structure, tokenizer: Tokenizer, text: str, keep: bool) -> tuple[list[_Unit], Found]:
    if "span" not in structure.features:
        raise structure.error(
            "the structure has no feature 'span', the character offsets of each node; "
            "read it with 'conllu' or 'tokens', or split by labels: split(..., text=None)"
        )
    spans = np.asarray(structure.features["span"])
    units, covered, shared, dropped, blanks = [], [], [], [], []
    for piece, id, start, end in _parts(tokenizer.encode(text, add_special_tokens=False)):
        # A unit of no width (a mark that the tokenizer adds) belongs to the node at its position.
        over = np.minimum(spans[:, 1], max(end, start + 1)) - np.maximum(spans[:, 0], start)
        covered.append((start, end))
        if (best := int(over.argmax())) >= 0 and over[best] > 0:
            units.append(_Unit(piece, id, best, start, end))
            shared += [(piece, best, int(other)) for other in np.flatnonzero(over > 0) if other != best]
        elif text[start:end].strip():
            dropped.append(piece)
        elif keep:
            units.append(_Unit(piece, id, _nearest(spans, start), start, end))
        else:
            blanks.append(piece)
    return units, (tuple(_gaps(text, covered, -1)), tuple(shared), tuple(dropped), tuple(blanks))


def _nearest(spans: Ids, start: int) -> int:
    """The first node that begins at or after ``start``, or the last node."""
    behind = np.flatnonzero(spans[:, 0] >= start)
    return int(behind[spans[behind, 0].argmin()] if len(behind) else spans[:, 1].argmax())


def _moved(units: Sequence[_Unit]) -> tuple[str, ...]:
    """Units that come after a unit of a later node in the text, and that sorting by node moves before it."""
    moved, latest = [], -1
    for unit in units:
        if unit.owner < latest:
            moved.append(unit.text)
        latest = max(latest, unit.owner)
    return tuple(moved)


def _around(tokenizer: Tokenizer, text: str) -> tuple[list[_Unit], list[_Unit]]:
    """The tokens that are added before a text, and those after it."""
    encoding = tokenizer.encode(text, add_special_tokens=True)
    rows = zip(encoding.tokens, encoding.ids, encoding.special_tokens_mask, encoding.attention_mask, strict=True)
    real = [(_Unit(token, id, 0), bool(added)) for token, id, added, kept in rows if kept]
    front = next((place for place, (_, added) in enumerate(real) if not added), len(real))
    back = next((place for place, (_, added) in enumerate(reversed(real)) if not added), 0)
    return [unit for unit, _ in real[:front]], [unit for unit, _ in real[len(real) - back :]]


def _with_special(
    structure: Structure, units: Sequence[_Unit], around: tuple[list[_Unit], list[_Unit]], special: Special
) -> tuple[Structure, list[_Unit]]:
    front, back = around
    if special == "border":
        last = structure.size - 1
        return structure, [*front, *units, *(unit._replace(owner=last) for unit in back)]
    led = len(front)
    end = led + structure.size
    front = [unit._replace(owner=place) for place, unit in enumerate(front)]
    back = [unit._replace(owner=end + place) for place, unit in enumerate(back)]
    inner = [unit._replace(owner=unit.owner + led) for unit in units]
    return hung_on_root(structure, [u.text for u in front], [u.text for u in back]), [*front, *inner, *back]


def _parts(encoding: Encoding) -> Iterator[tuple[str, int, int, int]]:
    """Text, id, start and end of each unit, without padding."""
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
    token = unknown_token(tokenizer)
    id = None if token is None else tokenizer.token_to_id(token)
    if token is None or id is None:
        raise structure.error(
            f"{named}, which has no unknown token either; give it one, or the node another label, or allow "
            "missing='none'"
        )
    return _Unit(token, id, node)
