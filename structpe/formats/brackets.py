"""Constituency trees in brackets: the Penn Treebank, the Stanford Sentiment Treebank, and output of parsers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from structpe.errors import ReadError, StructureError
from structpe.formats import text as text_module
from structpe.formats.reading import Item, Yielded, attempt, reader
from structpe.formats.text import Piece, lines, shown
from structpe.formats.writing import WriteError, writer
from structpe.structure import Structure

__all__ = ["TRACE", "Constituents", "constituents", "escaped", "parse", "ptb", "ptb_text", "trees", "unescaped"]

BLANK = " \t\r\n"  # a word may contain other white space: "8 1/2" with a no-break space
PIECE = re.compile(r"\(([^() \t\r\n]*)|\)|[^() \t\r\n]+")
EDGE = re.compile(r"[()]|[^() \t\r\n]+")
TRACE = "-NONE-"
BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
ESCAPES = {**BRACKETS, "\\/": "/", "\\*": "*"}
ESCAPE = re.compile("|".join(map(re.escape, ESCAPES)))
WRITTEN = str.maketrans({letter: name for name, letter in BRACKETS.items()})


@dataclass(frozen=True)
class Constituents:
    """A tree, its nodes in the order in which they begin.

    Attributes:
        categories: label of each phrase, and of each word that has one, such as ``NP`` and ``NN``; None for a word
            without its own brackets.
        words: text of each word, as in the file; None for a phrase.
        parents: the phrase of each node, -1 for the root.
    """

    categories: list[str | None]
    words: list[str | None]
    parents: list[int]

    def add(self, category: str | None, word: str | None, parent: int) -> None:
        """Append a node."""
        self.categories.append(category)
        self.words.append(word)
        self.parents.append(parent)

    def without(self, dropped: list[bool]) -> Constituents:
        """The tree without some of its words, and without phrases that become empty.

        Raises:
            ReadError: no word is left.
        """
        left = [0] * len(self.words)
        gone = list(dropped)
        for node in range(len(self.words) - 1, -1, -1):
            gone[node] |= self.words[node] is None and not left[node]
            if not gone[node] and self.parents[node] >= 0:
                left[self.parents[node]] += 1
        if gone[0]:
            raise ReadError("the tree has no word but traces; read it with traces='keep'")
        kept = [node for node, away in enumerate(gone) if not away]
        number = {-1: -1, **{node: place for place, node in enumerate(kept)}}
        return Constituents(
            [self.categories[node] for node in kept],
            [self.words[node] for node in kept],
            [number[self.parents[node]] for node in kept],
        )


def unescaped(word: str) -> str:
    """The word from its notation in the treebank: ``-LRB-`` is a bracket, and a slash has a backslash before it."""
    return ESCAPE.sub(lambda found: ESCAPES[found[0]], word)


def escaped(word: str) -> str:
    """The notation of a word in a treebank: brackets have names."""
    return word.translate(WRITTEN)


def parse(text: str, remedy: str = "give one tree in parentheses") -> Constituents:
    """Parse one tree; brackets with only one word are one node.

    Args:
        text: the tree, and nothing else.
        remedy: what to do if brackets do not match, for errors.

    Raises:
        ReadError: the text is not exactly one tree, or brackets are empty.
    """
    tree, above = Constituents([], [], []), [-1]
    for match in PIECE.finditer(text):
        label, piece = match[1], match[0]
        if above == [-1] and (tree.words or label is None):
            raise ReadError(f"{shown(piece)} is outside of the tree; {remedy}")
        if label is not None:
            tree.add(label, None, above[-1])
            above.append(len(tree.words) - 1)
        elif piece != ")":
            tree.add(None, piece, above[-1])
        elif above.pop() == len(tree.words) - 1:
            raise ReadError("a node has neither a word nor parts; remove it")
    if len(above) > 1:
        raise ReadError(f"{len(above) - 1} parentheses are not closed; {remedy}")
    return _merged(tree)


def _merged(tree: Constituents) -> Constituents:
    """Merge words that are the only part of their brackets with them."""
    parts = [0] * len(tree.words)
    for parent in tree.parents[1:]:
        parts[parent] += 1
    merged, number = Constituents([], [], []), {-1: -1}
    for node, (word, parent) in enumerate(zip(tree.words, tree.parents, strict=True)):
        if word is not None and parts[parent] == 1:
            merged.words[number[parent]] = word
        else:
            number[node] = len(merged.words)
            merged.add(tree.categories[node], word, number[parent])
    return merged


def trees(path: Path) -> Iterator[Piece]:
    """The text of each tree of a file.

    A tree ends when its brackets close, or at a blank line. If the first tree is in one line, or has its other lines
    indented, a bracket in the first column begins a new tree. So an unclosed tree does not affect others.
    """
    splitter = _Splitter()
    for number, line in lines(path):
        yield from splitter.take(number, line)
    yield from splitter.end()


class _Splitter:
    """The lines of the tree that is still open."""

    def __init__(self) -> None:
        self.kept: list[tuple[int, str]] = []
        self.depth = self.size = 0
        self.aligned: bool | None = None
        """Whether a bracket in the first column begins a tree; None if unknown yet."""
        self.again: int | None = None
        """The first kept line after the first line of the tree that may begin another tree."""

    def take(self, number: int, line: str) -> Iterator[Piece]:
        if not line.strip(BLANK):
            yield from self.end()
            return
        if self.depth and line.startswith("("):
            if self.aligned:
                yield from self.end()
            elif self.again is None:
                self.again = len(self.kept)
        if self.depth:
            self.size += len(line)
            if self.size > text_module.LIMIT:
                raise text_module.too_long("the tree").at(f"line {self.kept[0][0]}")
        yield from self._pieces(number, line)

    def end(self) -> Iterator[Piece]:
        """Report an unclosed tree, and read its lines again that may be separate trees."""
        if not self.depth:
            return
        kept, again, depth = self.kept, self.again, self.depth
        self.kept, self.again, self.depth, self.size = [], None, 0, 0
        first, last = kept[0][0], kept[-1][0] if again is None else kept[again - 1][0]
        wrong = f"the tree is not closed: {depth} '(' still open after line {kept[-1][0]}"
        error = ReadError(f"{wrong}; close each, or remove the tree")
        yield Piece(first, "\n".join(line for number, line in kept if number <= last), error)
        if again is not None:
            self.aligned = True
            for number, line in kept[again:]:
                yield from self.take(number, line)
            yield from self.end()

    def _pieces(self, number: int, line: str) -> Iterator[Piece]:
        start = 0
        for found in EDGE.finditer(line):
            if found[0] == "(":
                start = start if self.depth else found.start()
                self.depth += 1
            elif found[0] == ")" and self.depth:
                self.depth -= 1
                if not self.depth:
                    yield self._closed(number, line[start : found.end()])
            elif not self.depth:
                wrong = f"{shown(found[0])} is outside of every tree; a tree is (label word) or (label parts ...)"
                yield Piece(number, line[found.start() :], ReadError(wrong))
                return
        if self.depth:
            self.kept.append((number, line[start:] if not self.kept else line))

    def _closed(self, number: int, rest: str) -> Piece:
        first = self.kept[0][0] if self.kept else number
        if self.aligned is None:
            self.aligned = self.again is None
        text = "\n".join([*(line for _, line in self.kept), rest])
        self.kept, self.again, self.size = [], None, 0
        return Piece(first, text)


Preterminals = Literal["merge", "keep"]
Traces = Literal["keep", "drop"]
CLASS = re.compile(r"[0-9]{1,9}")


@reader("ptb", ".ptb .mrg", also=".txt .parse", parallel=True)
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
        tree = _split(tree)
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


def _split(tree: Constituents) -> Constituents:
    """The tree with separate nodes for tags and words."""
    split, number = Constituents([], [], []), {-1: -1}
    for node, (category, word, parent) in enumerate(zip(tree.categories, tree.words, tree.parents, strict=True)):
        number[node] = len(split.words)
        above = number[parent]
        if word is not None and category is not None:
            split.add(category, None, above)
            category, above = None, number[node]
        split.add(category, word, above)
    return split


def _traces(tree: Constituents) -> list[bool]:
    """Whether each node is a trace: a word with the tag of traces, in the same node or in the one above."""
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


UNFIT = re.compile(r"[() \t\r\n]")


@writer("ptb", ".ptb .mrg")
def ptb_text(item: Item) -> str:
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
            raise WriteError(f"node {node} ({shown(label)}) is a phrase without parts; remove it, or mark it as a word")
        category = categories[node] if categories else None
        opening[node] = _opening(label, category, written[node] if written else None, words[node], node)
    if not opening[root].startswith("("):
        raise WriteError("the tree is one word without a category; give metadata 'categories' with one")
    text = _label_text(root, parts, opening)
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
    parts: list[list[int]] = [[] for _ in parents]
    for node in structure.reading.tolist():
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
    """The text before the parts of a node; a word is written as it was read, if it is unchanged."""
    if category is None and not is_word:
        category = label
    if category is not None and UNFIT.search(category):
        raise WriteError(f"the category of node {node} is {category!r}; give one without blanks and brackets")
    if not is_word:
        return f"({category}"
    word = written if written and unescaped(written) == label else escaped(label)
    if not word or UNFIT.search(word) or unescaped(word) != label:
        raise WriteError(f"the word of node {node} is {shown(label)}, which brackets cannot hold; give another label")
    return word if category is None else f"({category} {word}"


def _label_text(root: int, parts: Sequence[Sequence[int]], opening: Sequence[str]) -> str:
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
