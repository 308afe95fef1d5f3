"""CoNLL-U: a tree as HEAD and DEPREL of its words, or any digraph as DEPS, with the other fields as they were read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from structpe.errors import StructureError
from structpe.readers._text import shown
from structpe.readers.base import Item
from structpe.structure import Structure
from structpe.writers.base import WriteError, writer

__all__ = ["conllu"]

Columns: TypeAlias = dict[str, Sequence[str]]

NOTHING = "_"


@writer("conllu", ".conllu")
def conllu(item: Item, graph: Literal["basic", "enhanced"] | None = None) -> str:
    """A sentence in ten columns separated by tabs, and a blank line after it.

    Words are in the order of the structure. HEAD and DEPREL are its edges. The metadata from the reader ``conllu`` is
    written again: comments, the other fields of each node, multiword ranges and empty nodes. So an unchanged sentence
    is written byte for byte as it was read, and changes of the tree are written. Unknown fields are ``_``.

    Args:
        item: an item, or a structure.
        graph: ``basic`` writes a tree. ``enhanced`` writes any digraph into DEPS, each edge at its target; HEAD and
            DEPREL are those of the metadata then. By default as the item was read, or ``basic``.

    Raises:
        WriteError: the structure is undirected or, with ``basic``, not a tree; a field cannot store a text; the
            metadata does not fit.
    """
    graph = graph or ("enhanced" if item.metadata.get("graph") == "enhanced" else "basic")
    structure = item.structure
    if not structure.directed:
        raise WriteError("the edges are undirected; CoNLL-U has edges from head to dependent")
    reading = np.arange(structure.size) if structure.order is None else np.argsort(structure.order)
    empty = np.asarray(structure.features.get("is_empty", np.zeros(structure.size, dtype=bool)), dtype=bool)
    ids = _ids(reading, empty)
    columns = _kept(item, structure.size)
    columns |= _basic(item, ids) if graph == "basic" else _enhanced(structure, ids, reading, columns)
    rows = [[ids[node], *(columns[name][node] for name in ORDER)] for node in reading.tolist()]
    lines = [_line(row) for row in _with_lines_between(rows, item)]
    return "".join(line + "\n" for line in [*_comments(item), *lines, ""])


ORDER = ("form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")


def _ids(reading: Any, empty: Any) -> list[str]:
    """The id of each node: words count 1, 2, ..., empty nodes after word 3 count 3.1, 3.2, ..."""
    ids = [""] * len(reading)
    word = behind = 0
    for node in reading.tolist():
        word, behind = (word, behind + 1) if empty[node] else (word + 1, 0)
        ids[node] = f"{word}.{behind}" if empty[node] else str(word)
    return ids


def _kept(item: Item, size: int) -> Columns:
    columns: Columns = {"form": [label or NOTHING for label in item.structure.nodes]}
    for name in ORDER[1:]:
        values = item.metadata.get(name)
        if not isinstance(values, (tuple, list)):
            values = _blanks(item) if name == "misc" else (NOTHING,) * size
        if len(values) != size:
            raise WriteError(f"metadata {name!r} has {len(values)} values for {size} nodes; give one per node, or none")
        columns[name] = [str(value) or NOTHING for value in values]
    return columns


def _blanks(item: Item) -> list[str]:
    """MISC from ``space_after``, for sentences that were not read from CoNLL-U."""
    after = item.metadata.get("space_after")
    if not isinstance(after, (tuple, list)) or len(after) != item.structure.size:
        return [NOTHING] * item.structure.size
    return [NOTHING if blank else "SpaceAfter=No" for blank in after]


def _basic(item: Item, ids: Sequence[str]) -> Columns:
    structure = item.structure
    try:
        parents = structure.parents().tolist()
    except StructureError as error:
        raise WriteError(f"{error.message}; graph='enhanced' writes any digraph") from None
    relations = [str(item.metadata.get("root_relation", "root"))] * structure.size
    for edge, target in enumerate(structure.edges[:, 1].tolist()):
        relations[target] = structure.relation(edge) or NOTHING
    return {"head": ["0" if parent < 0 else ids[parent] for parent in parents], "deprel": relations}


def _enhanced(structure: Structure, ids: Sequence[str], reading: Any, columns: Columns) -> Columns:
    heads: list[list[tuple[int, str]]] = [[] for _ in ids]
    for edge, (source, target) in enumerate(structure.edges.tolist()):
        heads[target].append((source, f"{ids[source]}:{structure.relation(edge) or NOTHING}"))
    place = np.argsort(reading)
    roots = np.asarray(structure.features.get("is_root", np.arange(structure.size) == structure.root), dtype=bool)
    written = []
    for node, raw in enumerate(columns["deps"]):
        said = [part for part in raw.split("|") if part != NOTHING]
        own = [text for _, text in heads[node]]
        # If the edges are unchanged, so is the field, with the order of its parts and the label of the root.
        if any(part.startswith("0:") for part in said) == roots[node] and own == [
            part for part in said if not part.startswith("0:")
        ]:
            written.append(raw)
        else:
            own = [text for _, text in sorted(heads[node], key=lambda head: int(place[head[0]]))]
            written.append("|".join([*(["0:root"] if roots[node] else []), *own]) or NOTHING)
    return {"deps": written}


def _with_lines_between(rows: list[list[str]], item: Item) -> Iterator[Sequence[str]]:
    """The rows, with ranges before their first word, and empty nodes that are not nodes after their word."""
    ids = [row[0] for row in rows]
    before: dict[str, list[Sequence[str]]] = {}
    behind: dict[str, list[Sequence[str]]] = {}
    for name, separator, places in (("ranges", "-", before), ("empty", ".", behind)):
        kept = item.metadata.get(name)
        for row in kept if isinstance(kept, (tuple, list)) else ():
            word = row[0].partition(separator)[0]
            if word not in ids and word != "0":
                raise WriteError(f"metadata {name!r} has {row[0]!r}, but there is no word {word}; take it out")
            places.setdefault(word, []).append(row)
    yield from behind.get("0", ())
    for row in rows:
        yield from before.get(row[0], ())
        yield row
        yield from behind.get(row[0], ())


def _comments(item: Item) -> Iterator[str]:
    kept = item.metadata.get("comments")
    if isinstance(kept, (tuple, list)):
        lines = [str(line) for line in kept]
    else:
        text = item.metadata.get("text")
        lines = [f"# sent_id = {item.id}"] if item.id else []
        lines += [f"# text = {text}"] if isinstance(text, str) and text else []
    for line in lines:
        if "\n" in line or "\r" in line:
            raise WriteError(f"{shown(line)} cannot be written in a comment of CoNLL-U; give a text of one line")
        yield line


def _line(row: Sequence[str]) -> str:
    line = "\t".join(row)
    if line.count("\t") != len(ORDER) or "\n" in line or "\r" in line or not all(row):
        wrong = next((text for text in row if not text or any(letter in text for letter in "\t\n\r")), line)
        raise WriteError(f"{wrong!r} cannot be written in a field of CoNLL-U; give a text without tabs and line ends")
    return line
