"""Archives: zip, tar and gzip, with headers changed so that they still are headers."""

from __future__ import annotations

import gzip
import io
import random
import tarfile
import zipfile
from pathlib import Path

from mutate import TOKENS, mutated

from structpe.datasets.archives import unpack, unpack_gz

__all__ = ["make", "take"]


def _zip(method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as content:
        content.writestr("top/a.txt", b"a" * 50)
        content.writestr("top/b/c.txt", bytes(3000))
    return buffer.getvalue()


def _tar(format: int) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=format, pax_headers={"comment": "c"}) as content:
        for name in ("top/a.txt", "top/" + "long/" * 30 + "b.txt", "top/\u00e9.txt"):
            info = tarfile.TarInfo(name)
            info.size, info.mtime = 30, 1.5
            content.addfile(info, io.BytesIO(b"b" * 30))
    return buffer.getvalue()


ARCHIVES = {
    "zip": [_zip(), _zip(zipfile.ZIP_STORED)],
    "tar": [_tar(format) for format in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT)[:2]],
    "gz": [gzip.compress(b"a" * 5000, mtime=0)],
}


def make(chance: random.Random) -> bytes:
    """An archive of one of three kinds, with headers changed."""
    kind = chance.choice(("zip", "tar", "tar", "gz"))
    content = chance.choice(ARCHIVES[kind])
    if kind == "zip":
        return b"zip\n" + _poked(content, chance, (b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06"))
    if kind == "gz":
        return b"gz\n" + _poked(content, chance, (b"\x1f\x8b",))
    blocks = [content[at : at + 512] for at in range(0, len(content), 512)]
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(blocks))
        block = bytearray(blocks[at].ljust(512, b"\0"))
        field, width = chance.choice(
            ((0, 100), (124, 12), (124, 12), (156, 1), (156, 1), (157, 100), (257, 8), (345, 155), (386, 96))
        )
        new = chance.choice(
            (b"%011o\0" % chance.choice((0, 1, 511, 2**31, 2**32, 8**11 - 1)), b"\xff" * 12, b"\x80" + b"\xff" * 11)
        )
        if width == 1:
            new = chance.choice((b"x", b"g", b"L", b"K", b"S", b"X", b"1", b"2", b"5", b"7", b"V", b"D"))
        elif chance.random() < 0.4:
            new = chance.choice((*TOKENS, b"../a", b"/a", b"a\x1b[2J", b"path=../a\n", b"size=-1\n"))
        block[field : field + min(width, len(new))] = new[:width]
        if chance.random() < 0.8:
            block[148:156] = b" " * 8
            block[148:156] = b"%06o\0 " % sum(block)
        blocks[at] = bytes(block[:512])
        if chance.random() < 0.3:
            blocks.insert(at, chance.choice(blocks))
    return b"tar.gz\n" + gzip.compress(b"".join(blocks), 1)


def _poked(content: bytes, chance: random.Random, marks: tuple[bytes, ...]) -> bytes:
    """Numbers changed near what begins a header."""
    changed = bytearray(content)
    for _ in range(chance.randint(1, 3)):
        mark = chance.choice(marks)
        found = content.find(mark, chance.randrange(len(content)))
        at = (found if found >= 0 else max(0, content.find(mark))) + len(mark) + chance.randrange(44)
        width = chance.choice((1, 2, 4, 4, 8))
        number = chance.choice((0, 1, 255, 2**16 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1)) % (1 << 8 * width)
        changed[at : at + width] = number.to_bytes(width, "little")
    return mutated([bytes(changed)], chance.randrange(1 << 30), 0) if chance.random() < 0.3 else bytes(changed)


def take(content: bytes, folder: Path) -> None:
    """Unpack it; nothing may be outside of its folder then."""
    kind, _, packed = content.partition(b"\n")
    (folder / "a").write_bytes(packed)
    out = folder / "out"
    out.mkdir()
    if kind == b"gz":
        unpack_gz(folder / "a", out / "b")
    else:
        unpack(folder / "a", kind.decode(), out)
    outside = [path for path in folder.iterdir() if path.name not in ("a", "out")]
    assert not outside, f"{outside} is outside"
