"""Archives made to harm: none takes more memory than fits, or the place of a file that was checked."""

from __future__ import annotations

import gzip
import io
import struct
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from structpe.datasets import CorpusError, archives
from structpe.datasets.archives import HEADERS, unpack
from tests.modules import ROOT

BLOCK = 512
MEMORY = """
import sys
from pathlib import Path
from structpe.datasets.archives import unpack
from tests.memory import peak
before = peak()
for archive in sys.argv[2:]:
    try: unpack(Path(archive), sys.argv[1], Path(archive).parent / "out")
    except Exception as error: print(type(error).__name__, peak() - before)
"""


def header(kind: bytes, size: int, name: str = "x") -> bytes:
    """A block that begins a member; sizes beyond eight digits and below 0 as GNU writes them."""
    info = tarfile.TarInfo(name)
    info.type = kind
    block = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    if size < 0 or size >= 8**11:
        number = (1 << 96) - (1 << 88) + (size % (1 << 88)) if size < 0 else (0x80 << 88) + size
        block[124:136] = number.to_bytes(12, "big")
    else:
        block[124:136] = b"%011o\0" % size
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % BLOCK)


def pax(**words: str) -> bytes:
    lines = b""
    for key, value in words.items():
        rest = f" {key}={value}\n".encode()
        size = len(rest) + 1
        while size < len(rest) + len(str(size)):
            size += 1
        lines += str(size).encode() + rest
    return lines


def member(name: str = "a.txt", content: bytes = b"a") -> bytes:
    return header(tarfile.REGTYPE, len(content), name) + padded(content)


def long_header(kind: bytes) -> bytes:
    """Two GiB of it would take 2.1 GB; so many zeros are 16 MiB, of which a MiB is looked at."""
    return header(kind, 1 << 24) + bytes(1 << 24) + member()


TARS: dict[str, Callable[[], bytes]] = {
    "a long name": lambda: long_header(tarfile.GNUTYPE_LONGNAME),
    "a long link": lambda: long_header(tarfile.GNUTYPE_LONGLINK),
    "extended": lambda: long_header(tarfile.XHDTYPE),
    "extended for all": lambda: long_header(tarfile.XGLTYPE),
    "Solaris": lambda: long_header(tarfile.SOLARIS_XHDTYPE),
    "many extended": lambda: (header(tarfile.XHDTYPE, 512) + padded(pax(comment="c" * 480))) * 3000 + member(),
    "holes": lambda: header(tarfile.GNUTYPE_SPARSE, 1) + padded(b"a"),
    "holes of version 1": lambda: (
        header(tarfile.XHDTYPE, 512)
        + padded(pax(**{"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "9"}))
        + header(tarfile.REGTYPE, 1 << 23)
        + padded(b"999999999\n" + b"0\n" * (1 << 22))
    ),
    "a size below 0": lambda: header(tarfile.REGTYPE, -BLOCK) + member(),
    "an extended size below 0": lambda: header(tarfile.XHDTYPE, -BLOCK) + member(),
    "a huge size": lambda: header(tarfile.REGTYPE, 1 << 80) + member(),
    "a size in words": lambda: header(tarfile.XHDTYPE, 512) + padded(pax(size="-512")) + member(),
    "a name of 5000": lambda: header(tarfile.GNUTYPE_LONGNAME, 5000) + padded(b"a" * 5000) + member(),
    "a name with an escape": lambda: member("a\x1b[2J.txt"),
    "a name with a line separator": lambda: member("a\u2028.txt"),
    "a name with a zero": lambda: header(tarfile.XHDTYPE, 512) + padded(pax(path="a\0b")) + member(),
}


@pytest.mark.parametrize("name", TARS)
def test_tars(name: str, tmp_path: Path) -> None:
    archive = tmp_path / "a.tar.gz"
    archive.write_bytes(gzip.compress(TARS[name]() + bytes(1024), 1))
    with pytest.raises(CorpusError, match=r"a.tar.gz: the archive is (refused|damaged)"):
        unpack(archive, "tar.gz", tmp_path / "out")
    assert not list((tmp_path / "out").rglob("*"))


@pytest.mark.slow
def test_long_headers_take_little_memory(tmp_path: Path) -> None:
    archives, zeros = [], gzip.compress(bytes(1 << 26), 1)
    for kind in (tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE):
        archives.append(tmp_path / f"{kind.decode()}.tar.gz")
        archives[-1].write_bytes(gzip.compress(header(kind, 1 << 26)) + zeros)
        assert archives[-1].stat().st_size < 500_000
    grown = growth(archives)
    assert max(grown.values()) < 32_000, grown


def growth(archives: list[Path]) -> dict[str, int]:
    """KiB that unpacking had taken at most, after each: in one process, as most of the time is its imports."""
    words = [sys.executable, "-c", MEMORY, "tar.gz", *map(str, archives)]
    lines = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    told = [line.split() for line in lines]
    assert [refused for refused, _ in told] == ["CorpusError"] * len(archives)
    return {archive.name: int(memory) for archive, (_, memory) in zip(archives, told, strict=True)}


LONG = "c" * (HEADERS // 2)
SAID: dict[str, Callable[[int], tuple[bytes, bytes]]] = {
    "a remark": lambda number: (tarfile.XHDTYPE, pax(comment=LONG)),
    "a remark on all": lambda number: (tarfile.XGLTYPE, pax(**{f"remark{number}": LONG})),
    "a user": lambda number: (tarfile.XHDTYPE, pax(uname=LONG)),
    "a group": lambda number: (tarfile.XHDTYPE, pax(gname=LONG)),
    "a link": lambda number: (tarfile.GNUTYPE_LONGLINK, LONG.encode()),
}


@pytest.mark.slow
def test_what_is_said_of_many_files_is_not_kept(tmp_path: Path) -> None:
    """Of each half a MiB."""
    archives = [tmp_path / f"{kind}.tar.gz" for kind in SAID]
    for kind, archive in zip(SAID, archives, strict=True):
        with gzip.open(archive, "wb", 1) as file:
            for number in range(40):
                mark, said = SAID[kind](number)
                file.write(header(mark, len(said)) + padded(said) + member(f"{number}"))
            file.write(header(tarfile.SYMTYPE, 0))  # refused in the end
    grown = growth(archives)
    assert max(grown.values()) < 10_000, grown


def test_long_names_and_remarks_that_are_honest(tmp_path: Path) -> None:
    archive = tmp_path / "a.tar.gz"
    names = ["d/" * 60 + "\u00e9" * 60, "b.txt"]
    for format in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        with tarfile.open(archive, "w:gz", format=format, pax_headers={"comment": "0" * 40}) as content:
            for name in names:
                info = tarfile.TarInfo(name)
                info.size, info.mtime = 3, 1.5
                content.addfile(info, io.BytesIO(b"abc"))
        found = unpack(archive, "tar.gz", tmp_path / str(format))
        assert [file.relative_to(tmp_path / str(format)).as_posix() for file in found] == names
        assert all(file.read_bytes() == b"abc" for file in found)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_zips_that_unpack_in_blocks_of_any_size(tmp_path: Path, method: int) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w", method) as content:
        content.writestr("a", bytes(1 << 24))
    with pytest.raises(CorpusError, match=rf"'a' in it is packed by method {method}, 0 or 8 are allowed"):
        unpack(archive, "zip", tmp_path / "out")


def test_a_zip_of_many_small_files_and_large_ones_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is of what describes the files, not of what they hold."""
    monkeypatch.setattr(archives, "DIRECTORY", 100_000)
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as content:
        for number in range(100):
            content.writestr(f"{number}", bytes(5_000))
    assert len(unpack(archive, "zip", tmp_path / "out")) == 100
    with zipfile.ZipFile(archive, "a") as content:
        for number in range(3000):
            content.writestr(f"more-{number}", b"")
    with pytest.raises(CorpusError, match=r"a header in it is longer than 100000 bytes"):
        unpack(archive, "zip", tmp_path / "in")


def test_a_zip_whose_table_lies(tmp_path: Path) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as content:
        content.writestr("a", bytes(1 << 16))
    damaged = bytearray(archive.read_bytes())
    at = damaged.rindex(b"PK\x01\x02")
    damaged[at + 24 : at + 28] = struct.pack("<I", 9)  # the size that the table says
    archive.write_bytes(bytes(damaged))
    with pytest.raises(CorpusError, match=r"the archive is (refused|damaged)"):
        unpack(archive, "zip", tmp_path / "out")


def test_a_file_without_a_name(tmp_path: Path) -> None:
    """Found by experiments/fuzz, archives, seed 1, number 340: zipfile raises an IndexError."""
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as content:
        content.writestr("a", b"")
    archive.write_bytes(archive.read_bytes().replace(b"\x01\x00\x00\x00a", b"\x00\x00\x00\x00a"))
    damaged = bytearray(archive.read_bytes())
    at = damaged.rindex(b"PK\x01\x02")
    damaged[at + 28 : at + 30] = b"\0\0"
    damaged[at + 30 : at + 32] = b"\x01\0"  # what was its name is something extra now
    archive.write_bytes(bytes(damaged))
    with pytest.raises(CorpusError, match=r"a.zip: the archive is (damaged|refused)"):
        unpack(archive, "zip", tmp_path / "out")
