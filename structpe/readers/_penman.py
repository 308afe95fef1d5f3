"""The text of PENMAN graphs, one by one, parsed by the penman library or refused with the line that is wrong."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from structpe.errors import MissingExtra, ReadError
from structpe.readers._text import blocks, shown

__all__ = ["Piece", "graphs", "parse", "split"]

TOKEN = re.compile(r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"|#[^\n]*|[()]|[^\s()"#][^\s()"]*|"')
"""What matters to find the end of a graph: strings and comments may hold brackets that are none."""

SILENT = logging.NullHandler()
"""Missing concepts and targets are errors here; without it, what the library logs of them would be printed too."""


class Piece(NamedTuple):
    """The text of one graph.

    Attributes:
        line: where it begins.
        text: the comments before the graph, and the graph.
        wrong: why it is no graph; None where it may be one.
    """

    line: int
    text: str
    wrong: ReadError | None = None


def graphs(path: Path) -> Iterator[Piece]:
    """Each graph of a file with the comments before it.

    Graphs end where their brackets close, and at the latest at a blank line: so one broken graph spoils no other.
    """
    pending: list[str] = []
    start = 1
    for first, block in blocks(path):
        # Comments that a blank line parts from their graph still belong to it; the gap keeps the lines' numbers right.
        start = start if pending else first
        block = [*pending, *[""] * (first - start - len(pending)), *block]
        pending = block if all(not line or line.lstrip().startswith("#") for line in block) else []
        if not pending:
            yield from split("\n".join(block), start)


def split(text: str, first: int = 1) -> Iterator[Piece]:
    """The graphs of a text whose first line has the number ``first``; an error ends it."""
    start, depth = 0, 0
    for token in TOKEN.finditer(text):
        if token[0] == "(":
            depth += 1
        elif token[0] == ")" and depth:
            depth -= 1
            if not depth:
                yield Piece(first + text.count("\n", 0, start), text[start : token.end()])
                start = token.end() + 1 if text[token.end() : token.end() + 1] == "\n" else token.end()
        elif not depth and not token[0].startswith("#"):
            here = first + text.count("\n", 0, token.start())
            wrong = f"{shown(token[0])} stands outside of every graph; a graph is (variable / concept :role ...)"
            remedy = "Plain text is read with reader='tokens'"
            yield Piece(here, text[start:], ReadError(f"{wrong}. {remedy}").at(f"line {here}"))
            return
    if depth:
        begin, last = first + text.count("\n", 0, start), first + text.count("\n")
        wrong = f"the graph is not closed: {depth} '(' still open after line {last}; close each, or remove the graph"
        yield Piece(begin, text[start:], ReadError(wrong).at(f"line {begin}"))


def parse(text: str, first: int = 1) -> Any:
    """The :class:`penman.Tree` of the text of one graph."""
    try:
        import penman
    except ImportError:
        raise MissingExtra("penman", "amr") from None
    logging.getLogger("penman").addHandler(SILENT)
    try:
        # By lines, since penman would also end a line at characters such as U+2028, which sentences may hold.
        return next(penman.iterparse(text.split("\n")))
    except penman.DecodeError as error:
        line = first + (error.lineno or 1) - 1
        wrong = f"not PENMAN: {error.message} in {shown((error.text or '').strip())}"
        raise ReadError(f"{wrong}; a graph is (variable / concept :role ...)").at(f"line {line}") from None
    except RecursionError:
        raise ReadError("the graph is nested too deeply to be parsed; it is hardly an AMR, remove it") from None
