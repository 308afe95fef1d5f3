"""Constituency trees in the brackets of the Penn Treebank: where each tree begins and ends, and what is in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from structpe.errors import ReadError
from structpe.readers import _text
from structpe.readers._text import Piece, lines, shown

__all__ = ["TRACE", "Constituents", "escaped", "parse", "trees", "unescaped"]

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
    indented, a bracket in the first column begins a new tree, so that an unclosed tree does not affect others.
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
            if self.size > _text.LIMIT:
                raise _text.too_long("the tree").at(f"line {self.kept[0][0]}")
        yield from self._pieces(number, line)

    def end(self) -> Iterator[Piece]:
        """Report an unclosed tree, and read its lines again that may be separate trees."""
        if not self.depth:
            return
        kept, again, depth = self.kept, self.again, self.depth
        self.kept, self.again, self.depth, self.size = [], None, 0, 0
        first, last = kept[0][0], kept[-1][0] if again is None else kept[again - 1][0]
        wrong = (
            f"the tree is not closed: {depth} '(' still open after line {kept[-1][0]}; close each, or remove the tree"
        )
        yield Piece(first, "\n".join(line for number, line in kept if number <= last), ReadError(wrong))
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
