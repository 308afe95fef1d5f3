"""Lines and blocks of UTF-8 text with their numbers, and character offsets of words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from structpe.errors import ReadError
from structpe.readers._kinds import HEAD, check_text
from structpe.structure import Ids

__all__ = [
    "LIMIT",
    "Block",
    "Piece",
    "blocks",
    "cut_off",
    "ended_lines",
    "lines",
    "longer",
    "not_utf8",
    "shown",
    "spans",
    "too_long",
]

LONGEST = 80
LIMIT = 1 << 26
"""The largest number of bytes of a line, and of characters of an item: 64 MiB. A longer line is not from a text, and
would fill the memory."""


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file without their ends, numbered from 1. Only a line feed ends a line, as in an editor.

    Raises:
        ReadError: the file is not a text, or a line is not UTF-8 or longer than 64 MiB.
    """
    return ((number, line) for number, line, _ in ended_lines(path))


def ended_lines(path: Path) -> Iterator[tuple[int, str, bool]]:
    """The lines of :func:`lines`, each with whether a line feed ends it. The last may lack it, as of a cut file."""
    with path.open("rb") as file:
        check_text(file.peek(HEAD)[:HEAD])
        for number, raw in enumerate(iter(partial(file.readline, LIMIT + 1), b""), 1):
            if len(raw) > LIMIT:
                raise too_long("the line").at(f"line {number}")
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise not_utf8(raw, error.start).at(f"line {number}") from None
            yield number, line.rstrip("\r\n"), raw.endswith(b"\n")


def cut_off(line: str, number: int, why: str = "") -> ReadError | None:
    """The error for a last line without a line feed that seems to be cut off; None where nothing tells so.

    Args:
        line: the line.
        number: its number.
        why: what tells so, beside a blank at its end.
    """
    why = why or ("it ends in a blank" if line != line.rstrip() else "")
    found = f"the line, the last, has no line feed at its end and seems to be cut off, as {why}"
    whole = "restore the file, or end the line with a line feed if it is whole"
    return ReadError(f"{found}: {shown(line)}; {whole}").at(f"line {number}") if why else None


def longer(text: str, known: Iterable[str]) -> str:
    """Why a text may be the beginning of another one; empty if it is known itself, or begins none."""
    known = set(known)
    others = [] if text in known else [each for each in known if each.startswith(text)]
    return f"{shown(text)} begins {shown(min(others))}" if others else ""


def not_utf8(line: bytes, place: int) -> ReadError:
    """The error for a byte of a line."""
    found = f"byte 0x{line[place]:02x} at column {place + 1} is not UTF-8"
    return ReadError(f"{found}; convert the file first, for example: iconv -f LATIN1 -t UTF-8")


def too_long(what: str) -> ReadError:
    """The error for a line or an item that is longer than the limit."""
    size = f"{LIMIT >> 20} MiB" if LIMIT >> 20 else f"{LIMIT} bytes"
    return ReadError(f"{what} is longer than {size}, too long for a graph; check that the reader fits the file")


def shown(text: str) -> str:
    """A piece of a file for an error: in quotes, without control characters, and shortened to a line."""
    return repr(text) if len(text) <= LONGEST else f"{text[:LONGEST]!r}..."


class Piece(NamedTuple):
    """The text of one tree or graph of a file, the number of its first line, and what is wrong with it."""

    line: int
    text: str
    wrong: ReadError | None = None


class Block(NamedTuple):
    """Consecutive lines that are not blank: the number of the first, the lines, and whether a blank line follows."""

    first: int
    lines: list[str]
    ended: bool


def blocks(path: Path) -> Iterator[Block]:
    """Blocks of consecutive lines that are not blank.

    Raises:
        ReadError: a block is longer than 64 MiB, or an error of :func:`lines`.
    """
    block: list[str] = []
    size = 0
    for number, line in lines(path):
        if line.strip():
            block.append(line)
            size += len(line)
            if size > LIMIT:
                raise too_long("the item, up to a blank line,").at(f"line {number - len(block) + 1}")
        elif block:
            yield Block(number - len(block), block, True)
            block, size = [], 0
    if block:
        yield Block(number - len(block) + 1, block, False)


def spans(words: Sequence[str], text: str) -> Ids:
    """(n, 2) start and end of each word in the text, found from left to right; -1, -1 for a missing word."""
    found, start = np.full((len(words), 2), -1), 0
    for i, word in enumerate(words):
        if word and (at := text.find(word, start)) >= 0:
            found[i] = at, at + len(word)
            start = at + len(word)
    return found
