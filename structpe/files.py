"""Files and folders that are whole or absent, each with one writer at a time; and checksums of them.

A writer works in a hidden folder next to its place, ``.NAME.tmp``, and holds a lock in there. What was written
is brought to the disk and then renamed. When a process dies, by whatever signal, its lock goes and its folder stays;
the next writer of the same place takes the folder over and empties it. So leftovers do not pile up, and those of a
living writer are not touched.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from structpe.errors import StructPEError

if TYPE_CHECKING:
    from filelock import BaseFileLock

__all__ = [
    "Busy",
    "atomic_write",
    "atomic_write_folder",
    "finish",
    "left_in",
    "lock",
    "naming",
    "replacing",
    "sealed",
    "sha256_of",
    "sweep",
    "unsealed",
]

PATIENCE = 10.0
"""Seconds that a writer waits for another one of the same place."""

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)
OS_ERROR = re.compile(r"\(os error (\d+)\)")
"""How safetensors, which has errors of its own kind, repeats an error of the system."""


class Busy(StructPEError):
    """Another writer is at work at the same place."""


@contextmanager
def lock(path: Path, waiting: Callable[[], object] | None = None) -> Iterator[Path]:
    """Keep a place to this process, and give an empty hidden folder next to it to work in, on the same disk.

    The lock goes when the process does, however it ends. Errors of the disk name the place, not the hidden folder.

    Args:
        path: the place: a file or folder that there is, or will be.
        waiting: called if another process writes there; then its end is waited for, however long that takes. None
            waits for 10 seconds.

    Raises:
        Busy: another process still writes there.
        OSError: the folder of the place is missing or cannot be written to.
    """
    whole = Path(os.path.abspath(path))
    if not whole.name:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    work = whole.with_name(f".{whole.name}.tmp")
    with naming(path, work):
        lock = _locked(path, work, waiting)
        try:
            if (work / "old").is_dir() and not path.exists():  # a process died while it replaced a folder
                os.rename(work / "old", path)
            _empty(work)
            yield work
        finally:
            # What cannot be removed is left to the next writer. Who waits for the lock sees that its file is gone, and
            # makes another; the folder stays then.
            with suppress(OSError):
                _empty(work)
                (work / "lock").unlink()
                work.rmdir()
            lock.release()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give the name of a hidden file to write, which takes the place of ``path`` when the block ends without an error.

    Its permissions are those of any new file. A link is followed; what is no plain file, such as a pipe or
    ``/dev/null``, is written to as it is.

    Raises:
        Busy: another process writes to the same file.
        OSError: the disk is full, the folder cannot be written to, or ``path`` is a folder.
    """
    path = Path(os.path.realpath(path)) if path.is_symlink() and (path.is_file() or not path.exists()) else path
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if path.exists() and not path.is_file():
        yield path
        return
    with lock(path) as work:
        hidden = work / f"new{path.suffix}"
        yield hidden
        finish(hidden, path, work)


def atomic_write(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` make a file, and put it in place of ``path`` at one stroke; see :func:`replacing`."""
    with replacing(path) as hidden:
        write(hidden)


def atomic_write_folder(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` fill a folder, and put it in place of ``path``; one that is there already is replaced.

    Folders above it are made where they are missing.

    Where the system can exchange two names (Linux, most file systems) there is no moment without a whole folder.
    Elsewhere the old one is moved aside before the new one is moved in; if the process dies between, the next writer
    brings the old one back.

    Raises:
        Busy: another process writes to the same folder.
        OSError: the disk is full, the folder above cannot be written to, or ``path`` is a file.
    """
    path = Path(os.path.realpath(path)) if path.is_symlink() else path
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    with lock(path) as work:
        hidden = work / "new"
        hidden.mkdir()
        write(hidden)
        finish(hidden, path, work)


def finish(hidden: Path, path: Path, work: Path) -> None:
    """Bring a file, or a folder with all in it, to the disk, and give it the name ``path``; what has it is replaced.

    Args:
        hidden: the file or folder, on the same disk as the place.
        path: the place.
        work: the hidden folder that :func:`lock` gives for the place.
    """
    _settle(hidden, work)
    if not path.is_dir():
        os.replace(hidden, path)
    elif not _exchanged(hidden, path):
        os.rename(path, work / "old")
        os.rename(hidden, path)
    _sync(path.parent)


@contextmanager
def naming(path: Path, hidden: Path) -> Iterator[None]:
    """Let errors of the disk within a hidden folder name the place that somebody has chosen.

    Args:
        path: the place.
        hidden: the folder in which its content is made.

    Raises:
        OSError: whatever was raised of the disk, but for the name; that of libraries with errors of their own too.
    """
    try:
        yield
    except FileExistsError:  # something else has the name of the hidden folder, and must go
        raise
    except OSError as error:
        nameless = error.filename is None and error.errno in FULL
        if error.errno is None or not (nameless or _within(error.filename, hidden)):
            raise
        raise _told(path, error.errno, error.strerror or os.strerror(error.errno)) from error
    except StructPEError:
        raise
    except Exception as error:
        if (found := OS_ERROR.search(str(error))) is None or int(found[1]) not in (*FULL, *REFUSED, errno.EIO):
            raise
        raise _told(path, int(found[1]), os.strerror(int(found[1]))) from error


def sha256_of(file: Path) -> str:
    """The SHA-256 of a file's content, in hexadecimal."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sealed(content: Mapping[str, Any]) -> str:
    """JSON of a mapping with a checksum of all else in it, as its entry ``sha256``; :func:`unsealed` reads it."""
    return json.dumps({**content, "sha256": _seal(content)})


def unsealed(text: str) -> dict[str, Any]:
    """The mapping that :func:`sealed` wrote, without its checksum.

    Raises:
        ValueError: the text is no JSON, or not what was written.
    """
    content = json.loads(text)
    if not isinstance(content, dict):
        raise ValueError(f"it holds a {type(content).__name__} and not a mapping")
    if "sha256" not in content:
        raise ValueError("it has no checksum")
    if content.pop("sha256") != _seal(content):
        raise ValueError("its content does not have the checksum that was written with it")
    return content


def _seal(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _locked(path: Path, work: Path, waiting: Callable[[], object] | None) -> BaseFileLock:
    from filelock import FileLock, Timeout

    timeout = PATIENCE if waiting is None else 0.0
    while True:
        work.mkdir(exist_ok=True)
        lock = FileLock(work / "lock")
        try:
            lock.acquire(timeout)
            return lock
        except FileNotFoundError:  # its last writer has just removed the folder
            continue
        except Timeout:
            if waiting is None:
                busy = Busy("another writer is at work there; wait until it has ended, or choose another place")
                raise busy.at(str(path)) from None
            waiting()
            timeout = -1.0


def _empty(work: Path) -> None:
    for each in work.iterdir():
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each)
        elif each.name != "lock":
            each.unlink()


def _within(filename: Any, work: Path) -> bool:
    if not isinstance(filename, str | bytes | os.PathLike):
        return False
    place = Path(os.fsdecode(filename))
    return work in (place, *place.parents)


def _told(path: Path, number: int, said: str) -> OSError:
    """The error for the place, with what helps where the system says no more than its usual text."""
    if said == os.strerror(number) and number == errno.ENOSPC:
        said = f"{said}: it needs more than the {shutil.disk_usage(path.parent).free:,} bytes that are free"
    elif said == os.strerror(number) and number in REFUSED:
        said = f"its folder cannot be written to ({said})"
    return OSError(number, said, str(path))


def _settle(place: Path, work: Path) -> None:
    """Bring a file, or a folder with all in it, to the disk, with the permissions of new files at least.

    Some libraries make files that nobody else may read, whatever the umask says.
    """
    usual = _usual_mode(work)
    for each in (*(place.rglob("*") if place.is_dir() else ()), place):
        if each.is_symlink():
            continue
        if each.is_file() and (mode := each.stat().st_mode & 0o777) | usual != mode:
            each.chmod(mode | usual)
        _sync(each)


def _usual_mode(work: Path) -> int:
    """The permissions of new files; the umask itself cannot be read without changing it for all threads."""
    probe = work / "probe"
    probe.mkdir()
    mode = probe.stat().st_mode & 0o666
    probe.rmdir()
    return mode


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange two folders at one stroke; False where the system or the file system cannot."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        call = ctypes.CDLL(None).renameat2
    except AttributeError:  # a C library without it
        return False
    here, exchange = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux
    return bool(call(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0)


def _sync(path: Path) -> None:
    """Bring the content of a file, or the names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def left_in(folder: Path) -> list[Path]:
    """The places in a folder that have a working folder next to them: of a living writer, or left by a killed one."""
    return [folder / work.name[1:-4] for work in folder.glob(".*.tmp") if work.is_dir()]


def sweep(*places: Path) -> None:
    """Remove what a writer of a place has left that was killed when it was all but done, and whom none may follow."""
    for place in places:
        if place.with_name(f".{place.name}.tmp").exists():
            with lock(place):
                pass
