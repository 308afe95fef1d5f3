"""Subwords: a tokenizer splits the label of a node into units, which the node then owns, or which become nodes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from structpe.errors import StructPEError, needing, reason_of
from structpe.structure import Ids, Structure, of_structures
from structpe.transforms.nodes import padded
from structpe.transforms.parts import taken

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

__all__ = [
    "SPECIAL",
    "Alignment",
    "AnyTokenizer",
    "Gap",
    "Rule",
    "Special",
    "TokenizedStructure",
    "TokenizerError",
    "as_tokenizer",
    "expand",
    "hung_on_root",
    "split",
    "unknown_token",
]

AnyTokenizer: TypeAlias = Any
"""A ``tokenizers.Tokenizer``; a fast tokenizer of ``transformers``; a ``tokenizer.json``, or a folder that has one."""

FILE = "tokenizer.json"


class TokenizerError(StructPEError):
    """Something is not a fast tokenizer."""


def as_tokenizer(given: AnyTokenizer) -> Tokenizer:
    """The tokenizer, which has character offsets of its units.

    Raises:
        TokenizerError: it is a slow tokenizer without offsets, a path without a tokenizer, or something else.
        MissingExtra: the ``tokenizers`` library is not installed.
    """
    with needing("tokenizers", "text"):
        from tokenizers import Tokenizer
    if isinstance(given, Tokenizer):
        return given
    if isinstance(given, str | Path):
        return _load(Path(given))
    kind = type(given).__name__
    if not any(cls.__name__ == "PreTrainedTokenizerBase" for cls in type(given).__mro__):
        raise TokenizerError(
            f"a {kind} is not a known tokenizer; give a tokenizers.Tokenizer, a fast tokenizer of "
            f"transformers, or the path of a {FILE}"
        )
    if not given.is_fast:
        raise TokenizerError(
            f"{kind} is a slow tokenizer, which has no character offsets; load the fast one: "
            "AutoTokenizer.from_pretrained(..., use_fast=True)"
        )
    backend: Tokenizer = given.backend_tokenizer
    return backend


def unknown_token(tokenizer: Tokenizer) -> str | None:
    """The unknown token; Unigram has an id instead, which is only in its JSON."""
    model = json.loads(tokenizer.to_str())["model"]
    if model.get("unk_id") is not None:
        return str(model["vocab"][model["unk_id"]][0])
    token: str | None = model.get("unk_token")
    return token


def _load(path: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    file = path / FILE if path.is_dir() else path
    if not file.is_file():
        raise TokenizerError(f"there is no file {file.name!r}; give a {FILE}, or a folder that has one").at(path)
    try:
        return Tokenizer.from_file(str(file))
    except Exception as error:  # plain Exception is what the library raises
        raise TokenizerError(
            f"the file is not a tokenizer ({reason_of(error)}); give a file written by save() of the tokenizers "
            "library, or by save_pretrained() of a fast tokenizer of transformers"
        ).at(file) from None


class Gap(NamedTuple):
    """Characters that no unit covers.

    Attributes:
        node: the node with the label; -1 if a whole text was split.
        start: their first position in the label or text.
        text: the characters.
    """

    node: int
    start: int
    text: str


@dataclass(frozen=True)
class Alignment:
    """What a tokenizer could not align with the nodes, if its offsets are right. White space does not count.

    BPE without bytes and without an unknown token drops characters, which shifts the following offsets: gaps then have
    the right length, but are too far right.

    Attributes:
        missing: nodes without a unit; they have the unknown token, or no unit.
        gaps: characters that no unit covers.
        shared: (text of the unit, its node, another node that it also covers) of units that cross a border.
        dropped: texts of units in no node, which were left out.
        blanks: texts of units of white space only, which were left out. This is not a loss, but differs from the
            tokenizer's output.
        moved: texts of units whose order differs from the text, as units are sorted by node. This is not a loss.
    """

    missing: tuple[int, ...] = ()
    gaps: tuple[Gap, ...] = ()
    shared: tuple[tuple[str, int, int], ...] = ()
    dropped: tuple[str, ...] = ()
    blanks: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether all was aligned."""
        return not (self.missing or self.gaps or self.shared or self.dropped)

    def plain(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self) | {"gaps": [gap._asdict() for gap in self.gaps], "complete": self.complete}

    def __str__(self) -> str:
        parts = {
            "nodes without a unit": self.missing,
            "pieces of text in no unit": [gap.text for gap in self.gaps],
            "units across a border": [text for text, *_ in self.shared],
            "units in no node": self.dropped,
            "units of blanks left out": self.blanks,
            "units in another place than in the text": self.moved,
        }
        lines = [f"{len(found)} {what}: {', '.join(map(repr, found))}" for what, found in parts.items() if found]
        return "; ".join((["every unit has one node, every node a unit"] if self.complete else []) + lines)


SPECIAL = "special"
"""The relation of such a node to the root."""


def hung_on_root(structure: Structure, front: Sequence[str], back: Sequence[str]) -> Structure:
    """The structure with nodes added before and after its own, in number and in order; their features are 0.

    Raises:
        StructureError: the structure has no root.
    """
    if structure.root is None:
        raise structure.error("the structure has no root for special tokens; give them to the border nodes")
    led, count = len(front), len(front) + len(back)
    behind = np.arange(led + structure.size, structure.size + count)
    new = np.concatenate([np.arange(led), behind])
    root, order = structure.root + led, structure.order
    labelled = structure.relations or not len(structure.edges)
    return replace(
        structure,
        nodes=(*front, *structure.nodes, *back),
        edges=np.concatenate([structure.edges + led, np.column_stack([np.full(count, root), new])]),
        relations=(*structure.relations, *[SPECIAL] * count) if labelled else (),
        order=None if order is None else np.concatenate([np.arange(led), order + led, behind]),
        root=root,
        units=None,
        owner=None,
        features=padded(structure.features, (led, len(back)), (0, count)),
    )


Special = Literal["none", "border", "root"]


@dataclass(frozen=True, eq=False)
class TokenizedStructure:
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
) -> TokenizedStructure:
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
    return TokenizedStructure(structure, ids, Alignment(tuple(lost), *report, moved), spans)


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


Rule = Literal["all", "first", "chain"]

UNIT = "unit"
"""The relation between two units of one word."""


@of_structures
def expand(structure: Structure, rule: Rule = "all") -> Structure:
    """Choose the positions of the subwords of a word.

    * ``all``: every unit has the place of its word (survey, footnote 1). Nothing changes, since encodings do this by
      default. Those of offsets between nodes, such as ``distance``, distinguish the units of one word by their order
      (survey, eq. 31).
    * ``first``: the first unit replaces the word, with its edges; each further unit is a new node, a child of the first
      by the relation ``unit``. In a tree it is one level deeper, so only the first unit has the position of the word.
    * ``chain``: as ``first``, but each further unit is a child of the previous one, so positions continue within
      the word: depths are d, d + 1, d + 2, ..., and ``spr-relative`` and signed distances between them are offsets.

    The units are read in their order. A node has the features of its word; those of a new edge are 0. A word of a tree
    without units is left out: its dependents become those of its head. If it is the root, its first dependent becomes
    the root and the head of the others.

    Raises:
        StructureError: the rule does not exist; a node has no unit, and the graph is not a tree.
    """
    if rule not in ("all", "first", "chain"):
        raise structure.error(f"the rule is {rule!r}; give 'all', 'first' or 'chain'")
    if rule == "all" or structure.units is None or structure.owner is None:
        return structure
    structure = _without_units(structure, structure.owner)
    assert structure.owner is not None, "the nodes that are left own units"
    assert structure.units is not None, "which have texts"
    owner = structure.owner
    first = np.searchsorted(owner, np.arange(structure.size))
    further = np.flatnonzero(first[owner] != np.arange(len(owner)))
    heads = first[owner[further]] if rule == "first" else further - 1
    rank = None if structure.order is None else structure.order[owner]
    labelled = structure.relations or not len(structure.edges)
    return replace(
        structure,
        nodes=structure.units,
        edges=np.concatenate([first[structure.edges], np.column_stack([heads, further])]),
        relations=(*structure.relations, *[UNIT] * len(further)) if labelled else (),
        order=None if rank is None else np.argsort(np.argsort(rank, kind="stable"), kind="stable"),
        root=None if structure.root is None else int(first[structure.root]),
        units=None,
        owner=None,
        features=padded(taken(structure.features, owner, np.arange(len(structure.edges))), (0, 0), (0, len(further))),
    )


def _without_units(structure: Structure, owner: Ids) -> Structure:
    """The tree without nodes that have no unit."""
    kept = np.unique(owner)
    if len(kept) == structure.size:
        return structure
    parents = structure.parents()
    has = np.isin(np.arange(structure.size), kept)
    while len(wrong := kept[(parents[kept] >= 0) & ~has[parents[kept]]]):
        parents[wrong] = parents[parents[wrong]]
    tops = kept[parents[kept] < 0]
    parents[tops[1:]] = tops[0]
    place = np.cumsum(has) - 1
    below = kept[parents[kept] >= 0]
    edge = np.empty(structure.size, dtype=np.int64)
    edge[structure.edges[:, 1]] = np.arange(len(structure.edges))
    return replace(
        structure,
        nodes=tuple(structure.nodes[node] for node in kept),
        edges=np.column_stack([place[parents[below]], place[below]]),
        relations=tuple(structure.relations[number] for number in edge[below]) if structure.relations else (),
        order=None if structure.order is None else np.argsort(np.argsort(structure.order[kept])),
        root=None if structure.root is None else int(place[tops[0]]),
        owner=place[owner],
        features=taken(structure.features, kept, edge[below]),
    )
