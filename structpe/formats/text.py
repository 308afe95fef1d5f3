"""Lines and blocks of UTF-8 text with their numbers, and files that are not text."""

from __future__ import annotations

import codecs
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from structpe.errors import ReadError, bounded, listed
from structpe.structure import Ids

__all__ = [
    "HEAD",
    "LIMIT",
    "OF_NETWORKX",
    "LineBlock",
    "Piece",
    "blocks",
    "check_text",
    "cut_off",
    "ended_lines",
    "is_missing",
    "lines",
    "longer",
    "not_utf8",
    "present",
    "shown",
    "spans",
    "too_long",
    "warn_left_out",
]

HEAD = 1 << 10
"""How many bytes of a file are needed to detect its kind."""
CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
NULS = 0.1
"""The largest share of zero bytes in a text."""


class FileKind(NamedTuple):
    """A kind of file: its first bytes (at ``place``), its name, and what to do with it."""

    begins: bytes
    name: str
    remedy: str
    place: int = 0


SHOWS = "give a file with its text, if there is one"
TABLE = "write it as text first, with the program that made it or with pandas (to_csv)"
KINDS = (
    FileKind(b"\x1f\x8b", "compressed by gzip", "unpack it first: gunzip FILE"),
    FileKind(b"BZh", "compressed by bzip2", "unpack it first: bunzip2 FILE"),
    FileKind(b"\xfd7zXZ\0", "compressed by xz", "unpack it first: unxz FILE"),
    FileKind(b"\x28\xb5\x2f\xfd", "compressed by zstd", "unpack it first: unzstd FILE"),
    FileKind(b"PK\x03\x04", "a zip archive (such as .npz, .docx, .xlsx and .pt)", "unpack it first: unzip FILE"),
    FileKind(b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it first: 7z x FILE"),
    FileKind(b"Rar!\x1a\x07", "a RAR archive", "unpack it first: unrar x FILE"),
    FileKind(b"ustar", "a tar archive", "unpack it first: tar -xf FILE", 257),
    FileKind(b"\x89PNG\r\n\x1a\n", "a PNG image", SHOWS),
    FileKind(b"\xff\xd8\xff", "a JPEG image", SHOWS),
    FileKind(b"GIF8", "a GIF image", SHOWS),
    FileKind(b"%PDF-", "a PDF document", SHOWS),
    FileKind(b"\xd0\xcf\x11\xe0", "a document of an older Word or Excel", "save it as text first, in UTF-8"),
    FileKind(b"PAR1", "a Parquet table", "if its rows are graphs, reader='parquet' reads it"),
    FileKind(b"ARROW1", "an Arrow table", TABLE),
    FileKind(b"\x89HDF\r\n\x1a\n", "an HDF5 file", TABLE),
    FileKind(
        b"SQLite format 3\0", "an SQLite database", "write the table as text first: sqlite3 -csv FILE 'select ...'"
    ),
    FileKind(b"\x93NUMPY", "an array of NumPy (.npy)", "read it with numpy.load and make structures in Python"),
    *(
        FileKind(
            bytes([0x80, protocol]), "a pickle of Python", "it is not opened, as it may run any code; save it as text"
        )
        for protocol in range(2, 6)
    ),
    FileKind(b"\x7fELF", "a program or library (ELF)", "give a file of text"),
    FileKind(b"MZ", "a program of Windows", "give a file of text"),
)
OF_NETWORKX = {".gml": "read_gml", ".gexf": "read_gexf", ".net": "read_pajek"}
"""The functions of networkx for files of graphs that have no reader here."""
UTF = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
PAGES = (
    FileKind(b"<!doctype html", "a page of the web (HTML)", "download the file itself, for example by the link 'raw'"),
    FileKind(
        b"version https://git-lfs", "a pointer of Git LFS, not the file", "download the file itself: git lfs pull"
    ),
)


def check_text(head: bytes, xml: bool = False) -> None:
    """Check by its first bytes that a file can be text.

    Args:
        head: the first :data:`HEAD` bytes, or all if there are fewer.
        xml: whether the file is XML, which may be in UTF-16, and whose parser reports HTML.

    Raises:
        ReadError: it is an archive, an image, a program or similar, in UTF-16, or has too many zero bytes.
    """
    if CONTROL.search(head) or not _is_utf8(head):
        if found := next((kind for kind in KINDS if head.startswith(kind.begins, kind.place)), None):
            raise ReadError(f"the file is {found.name}, not text; {found.remedy}")
        if not xml and (code := _wide(head)):
            raise ReadError(f"the text is in {code}, UTF-8 is needed; convert it first: iconv -f {code} -t UTF-8 FILE")
        if not xml and head.count(0) > NULS * len(head):
            raise ReadError(f"{head.count(0)} of the first {len(head)} bytes are 0; give a text file")
    lower = head.lower()
    if not xml and (page := next((kind for kind in PAGES if lower.startswith(kind.begins)), None)):
        raise ReadError(f"the file is {page.name}; {page.remedy}")


def _is_utf8(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # the last character may be cut
    except UnicodeDecodeError:
        return False
    return True


def _wide(head: bytes) -> str:
    """UTF-16 or UTF-32, by the byte order mark or if every other byte is 0; empty if neither."""
    if marked := next((code for mark, code in UTF if head.startswith(mark)), ""):
        return marked
    even, odd = head[::2].count(0), head[1::2].count(0)
    if len(head) >= 4 and max(even, odd) > 0.4 * len(head) and min(even, odd) < NULS * len(head):
        return "UTF-16LE" if odd > even else "UTF-16BE"
    return ""


Key = TypeVar("Key")


def is_missing(value: Any) -> bool:
    """Whether a value is None, or the NaN, NA or NaT of pandas; lists and arrays never are."""
    if isinstance(value, (float, np.floating)):
        return bool(value != value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def present(attributes: Mapping[Key, Any]) -> dict[Key, Any]:
    """The attributes without those that are missing."""
    return {name: value for name, value in attributes.items() if not is_missing(value)}


def warn_left_out(names: Iterable[str], remedy: str) -> None:
    """Warn of attributes that have no place in a structure, if there are any."""
    if names := list(names):
        wrong = f"left out, as features of a structure are numbers with a row per node or edge: {listed(names)}"
        # The caller is above warn_left_out, the converter, each_structure, as_structures and as_structure.
        warnings.warn(bounded(f"{wrong}; {remedy}"), stacklevel=6)


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
    """The lines of :func:`lines`, each with whether a line feed ends it; the last of a truncated file has none."""
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
    """The error for a last line without a line feed that seems to be truncated; None if nothing indicates it.

    Args:
        line: the line.
        number: its number.
        why: the indication, if there is one besides a blank at its end.
    """
    why = why or ("it ends in a blank" if line != line.rstrip() else "")
    found = f"the last line has no line feed at its end and seems to be cut off, as {why}"
    remedy = "restore the file, or add a line feed if the line is complete"
    return ReadError(f"{found}: {shown(line)}; {remedy}").at(f"line {number}") if why else None


def longer(text: str, known: Iterable[str]) -> str:
    """The reason why a text may be the beginning of a known one; empty if it is known itself, or begins none."""
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
    """The text of one tree or graph of a file, the number of its first line, and its error, if any."""

    line: int
    text: str
    wrong: ReadError | None = None


class LineBlock(NamedTuple):
    """Consecutive lines that are not blank: the number of the first, the lines, and whether a blank line follows."""

    first: int
    lines: list[str]
    ended: bool


def blocks(path: Path) -> Iterator[LineBlock]:
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
            yield LineBlock(number - len(block), block, True)
            block, size = [], 0
    if block:
        yield LineBlock(number - len(block) + 1, block, False)


def spans(words: Sequence[str], text: str) -> Ids:
    """(n, 2) start and end of each word in the text, found from left to right; -1, -1 for a missing word."""
    found, start = np.full((len(words), 2), -1), 0
    for i, word in enumerate(words):
        if word and (at := text.find(word, start)) >= 0:
            found[i] = at, at + len(word)
            start = at + len(word)
    return found
