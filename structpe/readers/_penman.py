"""The texts of PENMAN graphs, one by one, parsed by the penman library; errors name the wrong line."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from structpe.errors import ReadError, needing
from structpe.readers import _text
from structpe.readers._text import Piece, blocks, shown

__all__ = ["TOO_DEEP", "comments", "first_aligned", "graphs", "parse", "split", "unquoted"]

TOKEN = re.compile(r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"|#[^\n]*|[()]|[^\s()"#][^\s()"]*|"')
"""Tokens for finding the end of a graph; brackets in strings and comments do not count."""

ANNOUNCED = re.compile(r"\s*#\s*(?::|\Z)")
"""A comment with ``::``, which belongs to a graph, or a truncated one."""
COMMENT = re.compile(r"\s*#([^\n]*)")
TEXT = r"(?:snt|sent|sentence|text|tok|tokens|lem|lemma|lemmas|pos|pos_tags|ner_tags|ner_iob|zh)(?:[-_][a-z]{2})?"
"""Keys of comments whose value is a text, also with a language (``snt_de``): it is the rest of the line."""
FIELD = re.compile(rf"(?<!\S)::(?:(?P<text>{TEXT}(?!\S))|(?P<key>id(?!\S)|[^\s](?:(?!\s::)[^ ])*))\s?")
DIGITS = 9
"""The largest number of digits of the number of a token."""

TOO_DEEP = "the graph is nested too deeply to be parsed; it is unlikely to be an AMR, remove it"

SILENT = logging.NullHandler()
"""Missing concepts and targets raise errors here; without this, the library would also log them."""


def graphs(path: Path) -> Iterator[Piece]:
    """Each graph of a file with the comments before it.

    A graph ends when its brackets close, or at a blank line, so that a broken graph does not affect others.
    """
    pending: list[str] = []
    start, size = 1, 0
    for first, block, _ in blocks(path):
        # Comments before a blank line still belong to the next graph; the gap keeps the numbers of lines right.
        start = start if pending else first
        size += first - start - len(pending) + sum(map(len, block))
        if size > _text.LIMIT:
            raise _text.too_long("the text before the next graph").at(f"line {start}")
        pending += [""] * (first - start - len(pending))
        pending += block
        if not all(line.lstrip().startswith("#") for line in block):
            yield from split("\n".join(pending), start)
            pending, size = [], 0
    if any(ANNOUNCED.match(line) for line in pending):
        wrong = "the comments of a graph end the file, and no graph follows; the file is truncated, restore it"
        yield Piece(start, "\n".join(pending), ReadError(wrong))


def split(text: str, first: int = 1) -> Iterator[Piece]:
    """The graphs of a text whose first line has the number ``first``; an error ends it."""
    start, depth, line = 0, 0, first
    for token in TOKEN.finditer(text):
        if token[0] == "(":
            depth += 1
        elif token[0] == ")" and depth:
            depth -= 1
            if not depth:
                yield Piece(line, text[start : token.end()])
                behind = token.end() + 1 if text[token.end() : token.end() + 1] == "\n" else token.end()
                line += text.count("\n", start, behind)
                start = behind
        elif not depth and not token[0].startswith("#"):
            here = first + text.count("\n", 0, token.start())
            wrong = f"{shown(token[0])} is outside of every graph; a graph is (variable / concept :role ...)"
            remedy = "Plain text is read with reader='tokens'"
            yield Piece(here, text[start:], ReadError(f"{wrong}. {remedy}").at(f"line {here}"))
            return
    if depth:
        last = first + text.count("\n")
        wrong = f"the graph is not closed: {depth} '(' still open after line {last}; close each, or remove the graph"
        yield Piece(line, text[start:], ReadError(wrong).at(f"line {line}"))


def comments(text: str) -> dict[str, str]:
    """The ``::key value`` pairs of the comments before a graph.

    A line has one pair or several, such as ``# ::id one ::date today``; of equal keys in a line the first counts, of
    those in several lines the last. A ``::`` within a word begins no pair. The value of ``::snt``, ``::tok`` and other
    texts is the rest of the line, whatever is in it; penman would cut it at the next ``::``.
    """
    found: dict[str, str] = {}
    place = 0
    while (comment := COMMENT.match(text, place)) is not None:
        place = comment.end()
        found |= dict(reversed(list(_pairs(comment[1]))))
    return found


def _pairs(comment: str) -> Iterator[tuple[str, str]]:
    fields = list(FIELD.finditer(comment))
    for field, end in zip(fields, [*(field.start() for field in fields[1:]), len(comment)], strict=False):
        if field["text"]:
            yield field["text"], comment[field.end() :].rstrip()
            return
        yield field["key"], comment[field.end() : end].rstrip()


def parse(text: str, first: int = 1) -> Any:
    """The :class:`penman.Tree` of the text of one graph."""
    with needing("penman", "amr"):
        import penman
    logging.getLogger("penman").addHandler(SILENT)
    try:
        # By lines, since penman would also end a line at characters such as U+2028, which sentences may contain.
        found = next(penman.iterparse(text.split("\n")), None)
    except penman.DecodeError as error:
        line = first + (error.lineno or 1) - 1
        wrong = f"not PENMAN: {error.message} in {shown((error.text or '').strip())}"
        raise ReadError(f"{wrong}; a graph is (variable / concept :role ...)").at(f"line {line}") from None
    except RecursionError:
        raise ReadError(TOO_DEEP) from None
    if found is None:
        raise ReadError(f"there is no graph in {shown(text.strip())}; a graph is (variable / concept :role ...)")
    return found


def unquoted(symbol: str) -> str:
    """A symbol without quotes and escapes."""
    return re.sub(r"\\(.)", r"\1", symbol[1:-1]) if symbol.startswith('"') else symbol


def first_aligned(alignment: str) -> int:
    """The first token of an alignment such as ``~e.3,4``; -1 without an alignment."""
    found = re.search("[0-9]+", alignment)
    if found and len(found[0]) > DIGITS:
        raise ReadError(f"the alignment {shown(alignment)} names a token that no sentence has; correct or remove it")
    return int(found[0]) if found else -1
