"""Unpack untrusted archives: inside one folder, without links and devices, with a limit on the size.

An archive may name files anywhere, contain links to anywhere, or grow a thousandfold. So every name is checked before
the first byte is written, bytes are counted while they are written, and callers unpack into a hidden folder.
"""

from __future__ import annotations

import errno
import gzip
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple, cast

from structpe.datasets.catalogue import CorpusError
from structpe.datasets.downloads import writing
from structpe.errors import StructPEError

__all__ = ["MOST_FILES", "RATIO", "SLACK", "check_methods", "check_zip", "unpack", "unpack_gz"]

RATIO, SLACK = 200, 1 << 28
"""A file may grow to RATIO times its size plus SLACK bytes."""
KNOWN = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
"""Methods that unpack piece by piece; the others unpack a block of any size at once."""


def check_zip(archive: zipfile.ZipFile, size: int) -> None:
    """Check the size and the methods of an archive.

    Args:
        archive: the archive.
        size: its size in bytes.

    Raises:
        ValueError: it grows too much, or uses a method that cannot be limited.
    """
    check_methods(archive)
    unpacked = sum(info.file_size for info in archive.infolist())
    if unpacked > size * RATIO + SLACK:
        raise ValueError(f"it grows from {size} to {unpacked} bytes")


def check_methods(archive: zipfile.ZipFile) -> None:
    """Check that an archive only uses methods that unpack piece by piece.

    Raises:
        ValueError: it uses another method.
    """
    for info in archive.infolist():
        if info.compress_type not in KNOWN:
            raise ValueError(f"{info.filename!r} in it is packed by method {info.compress_type}, 0 or 8 are allowed")


PIECE = 1 << 18
MOST_FILES = 1_000_000
HEADERS = 1 << 20
"""Bytes of the headers of one file in a tar archive."""
DIRECTORY = 1 << 27
"""Bytes of the directory at the end of a zip archive."""
LONGEST = 4096
"""Characters of a path in an archive."""

JUNK = ("__MACOSX", ".DS_Store")
"""Files that macOS adds to archives."""


class _Member(NamedTuple):
    """A file in an archive: its name, the size in its header, and a function that opens it."""

    name: PurePosixPath
    size: int
    open: Callable[[], IO[bytes]]


def unpack(archive: Path, kind: str, folder: Path, strip: bool = False) -> list[Path]:
    """Unpack an archive.

    Args:
        archive: path of the archive.
        kind: ``zip`` or ``tar.gz``.
        folder: folder to unpack into. It may exist; files of the same name are replaced.
        strip: whether to leave out the single folder at the top of the archive.

    Returns:
        The paths of the written files.

    Raises:
        CorpusError: the archive is damaged, grows too much, or contains something that is not allowed.
    """
    budget = archive.stat().st_size * RATIO + SLACK
    opened = _zip(archive, budget) if kind == "zip" else _tar(archive, budget, folder)
    with _undamaged(archive), opened as members:
        named = _placed(archive, members, strip)
        for path, member in named:
            place = folder / path
            with writing(place):
                place.parent.mkdir(parents=True, exist_ok=True)
            with member.open() as source:
                budget -= _copy(source, place, budget, archive)
    return [folder / path for path, _ in named]


def unpack_gz(archive: Path, place: Path) -> None:
    """Unpack one compressed file.

    Args:
        archive: path of the compressed file.
        place: path to write to.

    Raises:
        CorpusError: the file is damaged, or grows too much.
    """
    with _undamaged(archive), gzip.open(archive) as source:
        _copy(cast(IO[bytes], source), place, archive.stat().st_size * RATIO + SLACK, archive)


def _placed(archive: Path, members: list[_Member], strip: bool) -> list[tuple[PurePosixPath, _Member]]:
    """Check all names, and return each member with its path."""
    if len(members) > MOST_FILES:
        raise _refused(archive, f"it holds {len(members)} files")
    for member in members:
        if member.name.is_absolute() or ".." in member.name.parts or not member.name.parts:
            raise _refused(archive, f"it holds {str(member.name)!r}, which is outside its folder")
        if any(c in "\\:" or not c.isprintable() for c in str(member.name)):
            raise _refused(archive, f"it holds {str(member.name)[:80]!r}, which is not a plain name")
    kept = [member for member in members if not any(part in JUNK for part in member.name.parts)]
    if not kept:
        raise CorpusError("the archive is empty; bring back the original").at(archive)
    if strip and len({member.name.parts[0] for member in kept}) != 1:
        tops = ", ".join(sorted({member.name.parts[0] for member in kept})[:5])
        raise CorpusError(f"the archive has more than one folder at its top: {tops}").at(archive)
    placed = [(PurePosixPath(*member.name.parts[1:]) if strip else member.name, member) for member in kept]
    paths = [path for path, _ in placed]
    if len(set(paths)) < len(paths) or not all(path.parts for path in paths):
        raise _refused(archive, "two of its files have one name")
    return placed


@contextmanager
def _zip(archive: Path, budget: int) -> Iterator[list[_Member]]:
    with archive.open("rb") as raw, zipfile.ZipFile(watched := cast(Any, _Watched(archive, raw, DIRECTORY))) as content:
        watched.renew(None)  # the directory has been read; contents are counted when they are copied
        _affordable(archive, sum(info.file_size for info in content.infolist()), budget)
        check_methods(content)
        for info in content.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise _refused(archive, f"{info.filename!r} in it is a link or a device")
            if info.flag_bits & 1:
                raise CorpusError(f"{info.filename!r} in it is locked by a password").at(archive)
        yield [
            _Member(PurePosixPath(info.filename), info.file_size, lambda info=info: content.open(info))  # type: ignore[misc]
            for info in content.infolist()
            if not info.is_dir()
        ]


@contextmanager
def _tar(archive: Path, budget: int, folder: Path) -> Iterator[list[_Member]]:
    """Members of a tar file. One that is too large is refused at once: to find the next, its content must be read."""
    size = 0
    with (
        gzip.open(archive) as raw,
        tarfile.open(fileobj=(headers := cast(Any, _Watched(archive, raw, HEADERS))), mode="r:") as content,
    ):
        members: list[_Member] = []
        for info in content:
            if not (info.isfile() or info.isdir()) or info.issparse():
                raise _refused(archive, f"{info.name[:80]!r} in it is a link or a device, or is sparse")
            if info.size < 0 or len(info.name) > LONGEST:
                wrong = f"{info.name[:80]!r} in it has {info.size} bytes and a name of {len(info.name)}"
                raise _refused(archive, wrong)
            try:
                tarfile.data_filter(info, str(folder))
            except tarfile.FilterError as error:
                raise _refused(archive, f"it holds {error}") from None
            _forget(content, info)
            headers.renew()
            size += info.size
            _affordable(archive, size, budget)
            if len(members) > MOST_FILES:
                raise _refused(archive, f"it holds more than {MOST_FILES} files")
            if info.isfile():
                members.append(_Member(PurePosixPath(info.name), info.size, lambda info=info: _taken(content, info)))  # type: ignore[misc]
        headers.renew(None)
        yield members


def _forget(content: tarfile.TarFile, info: tarfile.TarInfo) -> None:
    """Drop the metadata of a member other than name and size: an open tar archive keeps it for all its members."""
    info.pax_headers = {}
    info.linkname = info.uname = info.gname = ""
    content.pax_headers = {}


class _Watched:
    """A file with a limit on the bytes read, since a header may claim any length.

    Args:
        archive: path for errors.
        raw: the file.
        most: number of bytes that can be read until :meth:`renew`.
    """

    def __init__(self, archive: Path, raw: Any, most: int) -> None:
        self.archive, self.raw, self.most = archive, raw, most
        self._left: int | None = most
        self.seek, self.tell, self.seekable = raw.seek, raw.tell, lambda: True

    def renew(self, most: int | None = -1) -> None:
        """Restart the count; None removes the limit."""
        self._left = self.most if most == -1 else most

    def read(self, size: int | None = -1) -> bytes:
        """Read as a file does."""
        if self._left is None:
            return cast(bytes, self.raw.read(size))
        most = self._left + 1  # one byte more than allowed shows that the limit is passed
        piece = self.raw.read(most if size is None or size < 0 else min(size, most))
        if len(piece) > self._left:
            raise _refused(self.archive, f"a header in it is longer than {self.most} bytes")
        self._left -= len(piece)
        return cast(bytes, piece)


def _affordable(archive: Path, size: int, budget: int) -> None:
    if size > budget:
        raise _refused(archive, f"it grows from {archive.stat().st_size} to {size} bytes")


def _taken(content: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    opened = content.extractfile(info)
    if opened is None:
        raise tarfile.TarError(f"{info.name!r} has no content")
    return opened


def _copy(source: IO[bytes], place: Path, most: int, archive: Path) -> int:
    """Write at most ``most`` bytes; return their number."""
    size = 0
    with writing(place), place.open("wb") as target:
        while piece := source.read(PIECE):
            size += len(piece)
            if size > most:
                raise _refused(archive, f"it grows to more than {most} bytes")
            target.write(piece)
    return size


@contextmanager
def _undamaged(archive: Path) -> Iterator[None]:
    try:
        yield
    except (StructPEError, MemoryError):
        raise
    except Exception as error:  # archive modules raise errors of any type
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise  # an error of the disk; EINVAL comes from a damaged directory, which may point before the file
        wrong = f"the archive is damaged ({str(error) or type(error).__name__}); fetch it again"
        raise CorpusError(wrong).at(archive) from None


def _refused(archive: Path, why: str) -> CorpusError:
    return CorpusError(f"the archive is refused: {why}; do not trust its source").at(archive)
