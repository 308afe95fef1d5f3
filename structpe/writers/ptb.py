"""Constituency trees in brackets, as in the Penn Treebank: one tree per line."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from structpe.errors import StructureError
from structpe.readers._brackets import escaped, unescaped
from structpe.readers._text import shown
from structpe.readers.base import Item
from structpe.structure import Structure
from structpe.writers.base import WriteError, writer

__all__ = ["ptb"]

UNFIT = re.compile(r"[() \t\r\n]")


@writer("ptb", ".ptb .mrg")
def ptb(item: Item) -> str:
    """A tree in brackets, in one line: ``(S (NP (PRP It)) (VP (VBZ works)))``.

    The metadata from the reader ``ptb`` is written again: tags of words, escaped words, and an empty outer bracket.
    Without it, words are the nodes that the feature ``is_word`` marks, or those without parts; they have no separate
    brackets, and a node with parts is labelled by its category. Read such a tree with ``preterminals="keep"``. The
    parts of a node are in the order of the structure.

    Raises:
        WriteError: the structure is not a tree, or is one word without a category; a label cannot be written in
            brackets; the metadata does not fit.
    """
    structure = item.structure
    root, parts = _parts(structure)
    categories = _kept(item, "categories")
    written = _kept(item, "escaped")
    marked = structure.features.get("is_word")
    words = [not own for own in parts] if marked is None else np.asarray(marked, dtype=bool).tolist()
    opening = [""] * structure.size
    for node, label in enumerate(structure.nodes):
        if words[node] and parts[node]:
            raise WriteError(f"node {node} ({shown(label)}) is a word by 'is_word', but has parts; a word has none")
        if not words[node] and not parts[node]:
            raise WriteError(
                f"node {node} ({shown(label)}) is a phrase without parts; take it out, or mark it as a word"
            )
        category = categories[node] if categories else None if words[node] else label
        opening[node] = _opening(label, category, written[node] if written else None, words[node], node)
    if not opening[root].startswith("("):
        raise WriteError("the tree is one word without a category; give metadata 'categories' with one")
    text = _text(root, parts, opening)
    # The reader drops one empty outer bracket; so if one is a node, it is written twice.
    hollow = opening[root] == "(" and len(parts[root]) == 1 and opening[parts[root][0]].startswith("(")
    return f"( {text})\n" if item.metadata.get("outer") is True or hollow else f"{text}\n"


def _parts(structure: Structure) -> tuple[int, list[list[int]]]:
    """The root, and the parts of each node in the order of the structure."""
    if not structure.directed:
        raise WriteError("the edges are undirected; brackets need a tree whose edges lead to the parts of a phrase")
    try:
        parents = structure.parents().tolist()
    except StructureError as error:
        raise WriteError(error.message) from None
    reading = range(structure.size) if structure.order is None else np.argsort(structure.order).tolist()
    parts: list[list[int]] = [[] for _ in parents]
    for node in reading:
        if parents[node] >= 0:
            parts[parents[node]].append(node)
    return parents.index(-1), parts


def _kept(item: Item, name: str) -> Sequence[str | None]:
    values = item.metadata.get(name)
    if not isinstance(values, (tuple, list)):
        return ()
    if len(values) != item.structure.size:
        found = f"{len(values)} values for {item.structure.size} nodes"
        raise WriteError(f"metadata {name!r} has {found}; give one per node, or none")
    return [None if value is None else str(value) for value in values]


def _opening(label: str, category: str | None, written: str | None, is_word: bool, node: int) -> str:
    """The text before the parts of a node."""
    category = (label if category is None else category) if not is_word else category
    if category is not None and UNFIT.search(category):
        raise WriteError(f"the category of node {node} is {category!r}; give one without blanks and brackets")
    if not is_word:
        return f"({category}"
    word = _word(label, written, node)
    return word if category is None else f"({category} {word}"


def _word(label: str, written: str | None, node: int) -> str:
    """The word as it was read, if it is unchanged."""
    word = written if written and unescaped(written) == label else escaped(label)
    if not word or UNFIT.search(word) or unescaped(word) != label:
        raise WriteError(
            f"the word of node {node} is {shown(label)}, which cannot be written in brackets; give it another label"
        )
    return word


def _text(root: int, parts: Sequence[Sequence[int]], opening: Sequence[str]) -> str:
    """The brackets, without recursion: trees may be deep."""
    pieces: list[str] = []
    waiting: list[int | None] = [root]
    while waiting:
        node = waiting.pop()
        if node is None:
            pieces.append(")")
            continue
        pieces.append(f" {opening[node]}" if pieces else opening[node])
        if opening[node].startswith("("):
            waiting.append(None)
        waiting.extend(reversed(parts[node]))
    return "".join(pieces)
