"""Constituency trees in brackets: the Penn Treebank, the Stanford Sentiment Treebank, and output of parsers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from structpe.errors import ReadError
from structpe.readers._brackets import TRACE, Constituents, parse, trees, unescaped
from structpe.readers._text import Piece, shown
from structpe.readers.base import Item, Yielded, attempt, reader
from structpe.structure import Structure

__all__ = ["constituents", "ptb"]

Preterminals = Literal["merge", "keep"]
Traces = Literal["keep", "drop"]
CLASS = re.compile(r"[0-9]{1,9}")


@reader("ptb", ".ptb .mrg", also=".txt .parse", apart=True)
def ptb(
    path: Path, preterminals: Preterminals = "merge", traces: Traces = "keep", classes: bool = False
) -> Iterator[Yielded]:
    """Constituency trees in brackets, as in the Penn Treebank and SST: an edge from each phrase to each of its parts.

    A tree may span lines. See :func:`constituents` for the nodes.

    Args:
        path: a file.
        preterminals: ``merge`` makes one node from a word and its tag, ``keep`` a node for each.
        traces: ``keep`` keeps words with the tag ``-NONE-``, which are not spoken; ``drop`` removes them, and phrases
            without any other part.
        classes: whether the labels are numbers, such as the sentiments 0 to 4 of SST; they become the feature
            ``class``.
    """
    for number, piece in enumerate(trees(path), 1):
        make = partial(_item, piece, str(number), path.name, preterminals, traces, classes)
        yield attempt(make, line=piece.line)


def constituents(
    text: str, preterminals: Preterminals = "merge", traces: Traces = "keep", classes: bool = False, name: str = ""
) -> Item:
    """The item of one tree in brackets, such as ``(S (NP (PRP It)) (VP (VBZ works)))``.

    Nodes are in the order in which they begin, which is also the reading order. The root is the whole tree; edges lead
    from phrases to their parts and have no relations. Phrases are labelled by their category. With
    ``preterminals="merge"`` a word and its tag are one node, labelled by the word; with ``keep`` they are two. Escaped
    words are restored: ``-LRB-`` becomes a bracket. An empty outer bracket, ``( (S ...) )``, is not a node.

    The feature ``is_word`` marks words, ``is_trace`` traces. ``metadata`` has ``categories``, the category or tag of
    each node (None for a word without one, or whose tag is the node above); ``escaped``, each word as in the file (None
    for phrases); ``text``, the words except traces, separated by spaces; and ``outer``, whether there was an empty
    outer bracket. With ``classes``, categories are numbers, in the feature ``class``, -1 for a word without one;
    phrases have empty labels.

    Raises:
        ReadError: the text is not one tree, or with ``classes`` a category is not a number.
    """
    tree, outer = _inner(parse(text))
    if traces == "drop":
        tree = tree.without(_traces(tree))
    if preterminals == "keep":
        tree = _apart(tree)
    trace = _traces(tree)
    structure = _structure(tree, classes, name)
    if traces == "keep":
        structure = replace(structure, features={**structure.features, "is_trace": np.array(trace)})
    said = [word for word, is_one in zip(tree.words, trace, strict=True) if word is not None and not is_one]
    metadata = {
        "categories": tuple(tree.categories),
        "escaped": tuple(tree.words),
        "text": " ".join(map(unescaped, said)),
        "outer": outer,
    }
    return Item(structure, metadata=metadata)


def _item(piece: Piece, id: str, file: str, preterminals: Preterminals, traces: Traces, classes: bool) -> Item:
    if piece.wrong is not None:
        raise piece.wrong
    return replace(constituents(piece.text, preterminals, traces, classes, f"{file}:{id}"), id=id)


def _inner(tree: Constituents) -> tuple[Constituents, bool]:
    """The tree without an empty outer bracket, and whether there was one."""
    outer = tree.categories[0] == "" and tree.words[0] is None and tree.parents.count(0) == 1
    if not outer or tree.categories[1] is None:
        return tree, False
    return Constituents(tree.categories[1:], tree.words[1:], [parent - 1 for parent in tree.parents[1:]]), True


def _apart(tree: Constituents) -> Constituents:
    """The tree with separate nodes for tags and words."""
    apart, number = Constituents([], [], []), {-1: -1}
    for node, (category, word, parent) in enumerate(zip(tree.categories, tree.words, tree.parents, strict=True)):
        number[node] = len(apart.words)
        above = number[parent]
        if word is not None and category is not None:
            apart.add(category, None, above)
            category, above = None, number[node]
        apart.add(category, word, above)
    return apart


def _traces(tree: Constituents) -> list[bool]:
    """Whether each node is a trace: a word whose tag, in the same node or above it, is that of traces."""
    tags = [
        tree.categories[parent] if category is None else category
        for category, parent in zip(tree.categories, tree.parents, strict=True)
    ]
    return [word is not None and tag == TRACE for word, tag in zip(tree.words, tags, strict=True)]


def _structure(tree: Constituents, classes: bool, name: str) -> Structure:
    size = len(tree.words)
    features = {"is_word": np.array([word is not None for word in tree.words])}
    if classes:
        features["class"] = np.array([_class(category) for category in tree.categories])
    return Structure(
        tuple(
            unescaped(word) if word is not None else "" if classes else category or ""
            for category, word in zip(tree.categories, tree.words, strict=True)
        ),
        np.array([(parent, node) for node, parent in enumerate(tree.parents) if node], dtype=np.int64).reshape(-1, 2),
        order=np.arange(size),
        root=0,
        features=features,
        name=name,
    )


def _class(category: str | None) -> int:
    if category is None:
        return -1
    if not CLASS.fullmatch(category):
        raise ReadError(f"a node has the class {shown(category)}; give numbers, or read the file with classes=False")
    return int(category)
