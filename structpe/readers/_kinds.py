"""Detect files that are not text by their first bytes, and say what to do with them."""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

from structpe.errors import ReadError

__all__ = ["HEAD", "OF_NETWORKX", "check_text"]

HEAD = 1 << 10
"""How many bytes of a file are needed to detect its kind."""
CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
NULS = 0.1
"""The largest share of zero bytes in a text."""


class Kind(NamedTuple):
    """A kind of file: its first bytes (at ``place``), its name, and what to do with it."""

    begins: bytes
    name: str
    remedy: str
    place: int = 0


SHOWS = "give a file with its text, if there is one"
TABLE = "write it as text first, with the program that made it or with pandas (to_csv)"
KINDS = (
    Kind(b"\x1f\x8b", "compressed by gzip", "unpack it first: gunzip FILE"),
    Kind(b"BZh", "compressed by bzip2", "unpack it first: bunzip2 FILE"),
    Kind(b"\xfd7zXZ\0", "compressed by xz", "unpack it first: unxz FILE"),
    Kind(b"\x28\xb5\x2f\xfd", "compressed by zstd", "unpack it first: unzstd FILE"),
    Kind(b"PK\x03\x04", "a zip archive (such as .npz, .docx, .xlsx and .pt)", "unpack it first: unzip FILE"),
    Kind(b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it first: 7z x FILE"),
    Kind(b"Rar!\x1a\x07", "a RAR archive", "unpack it first: unrar x FILE"),
    Kind(b"ustar", "a tar archive", "unpack it first: tar -xf FILE", 257),
    Kind(b"\x89PNG\r\n\x1a\n", "a PNG image", SHOWS),
    Kind(b"\xff\xd8\xff", "a JPEG image", SHOWS),
    Kind(b"GIF8", "a GIF image", SHOWS),
    Kind(b"%PDF-", "a PDF document", SHOWS),
    Kind(b"\xd0\xcf\x11\xe0", "a document of an older Word or Excel", "save it as text first, in UTF-8"),
    Kind(b"PAR1", "a Parquet table", "if its rows are graphs, reader='parquet' reads it"),
    Kind(b"ARROW1", "an Arrow table", TABLE),
    Kind(b"\x89HDF\r\n\x1a\n", "an HDF5 file", TABLE),
    Kind(b"SQLite format 3\0", "an SQLite database", "write the table as text first: sqlite3 -csv FILE 'select ...'"),
    Kind(b"\x93NUMPY", "an array of NumPy (.npy)", "read it with numpy.load and make structures in Python"),
    *(
        Kind(bytes([0x80, protocol]), "a pickle of Python", "it is not opened, as it may run any code; save it as text")
        for protocol in range(2, 6)
    ),
    Kind(b"\x7fELF", "a program or library (ELF)", "give a file of text"),
    Kind(b"MZ", "a program of Windows", "give a file of text"),
)
OF_NETWORKX = {".graphml": "read_graphml", ".gml": "read_gml", ".gexf": "read_gexf", ".net": "read_pajek"}
"""The functions of networkx for files of graphs that have no reader here."""
UTF = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
PAGES = (
    Kind(b"<!doctype html", "a page of the web (HTML)", "download the file itself, for example by the link 'raw'"),
    Kind(b"version https://git-lfs", "a pointer of Git LFS, not the file", "download the file itself: git lfs pull"),
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
