"""Atomic files and folders, each with one writer at a time; and their checksums.

A writer works in a hidden folder next to the target, ``.NAME.tmp``, and holds a lock in it. The content is synced to
disk and then renamed. When a process is killed, its lock is released and its folder remains; the next writer of the
same target takes over the folder and empties it. So remains do not accumulate, and the files of a running writer are
not touched.

The file of the lock, ``structpe.lock``, is the mark of such a folder: the first file in it and the last. Any other
folder of that name, a file or a link is an error; no link is followed. An empty folder is taken over.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import json
import os
import re
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from structpe.errors import StoreError, StructPEError, foreign

if TYPE_CHECKING:
    from filelock import BaseFileLock

__all__ = [
    "SUMS",
    "Busy",
    "append_line",
    "atomic_text",
    "atomic_write",
    "atomic_write_folder",
    "check",
    "finish",
    "followed",
    "left_in",
    "lock",
    "naming",
    "read_sealed",
    "replacing",
    "seal",
    "sealed",
    "sealed_lines",
    "sha256_of",
    "sums_of",
    "sweep",
    "unsealed",
    "user_cache",
    "wrong",
]

MARK = "structpe.lock"
"""The lock of a hidden folder, by which it is known."""
PATIENCE = 10.0
"""Seconds that a writer waits for another writer of the same target."""

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)
OS_ERROR = re.compile(r"\(os error (\d+)\)")
"""The notation of system errors in safetensors, which has its own exceptions."""


class Busy(StructPEError):
    """Another process writes to the same target."""


@contextmanager
def lock(path: Path, waiting: Callable[[], object] | None = None) -> Iterator[Path]:
    """Lock a target for this process, and yield an empty hidden folder next to it, on the same disk.

    The lock is released when the process ends in any way. Errors of the disk name the target, not the hidden folder.

    Args:
        path: the target: an existing or a new file or folder.
        waiting: called if another process writes there; then wait for its end without a limit. None waits for 10
            seconds.

    Raises:
        Busy: another process still writes there.
        FileExistsError: the hidden folder's name is taken by something else, which is left as it is.
        OSError: the folder of the target is missing or cannot be written to.
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
            # Files that cannot be removed are left to the next writer. A process that waits for the lock notices that
            # its file is gone and creates another; then the folder stays.
            with suppress(OSError):
                _empty(work)
                (work / MARK).unlink()
                work.rmdir()
            lock.release()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the name of a hidden file, which replaces ``path`` when the block ends without an error.

    Its permissions are those of any new file. A link is followed. If ``path`` is not a regular file, but for example a
    pipe or ``/dev/null``, it is written to directly.

    Raises:
        Busy: another process writes to the same file.
        OSError: the disk is full, the folder cannot be written to, ``path`` is a folder or a link that leads to itself,
            or the name of the hidden folder is taken; see :func:`lock`.
    """
    path = followed(path) if path.is_file() or not path.exists() else path
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
    """Write a file atomically by calling ``write`` with a temporary path; see :func:`replacing`."""
    with replacing(path) as hidden:
        write(hidden)


def atomic_text(path: Path, text: str) -> None:
    """Like :func:`atomic_write`, of a text in UTF-8."""
    atomic_write(path, lambda hidden: hidden.write_text(text, encoding="utf-8"))


def append_line(path: Path, line: str) -> None:
    """Append a line to a file in UTF-8. The file is created if it does not exist.

    If a killed process left the last line unfinished, the new line still starts on a line of its own.
    """
    with path.open("ab+") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - 1, 0))
        torn = file.read(1) not in (b"", b"\n")
        file.write(b"\n" * torn + line.encode() + b"\n")


def atomic_write_folder(path: Path, write: Callable[[Path], object]) -> None:
    """Write a folder atomically by calling ``write`` with a temporary path; an existing folder is replaced.

    Missing parent folders are created.

    If the system can exchange two names (Linux, most file systems), there is always a complete folder. Otherwise the
    old folder is renamed before the new one is moved to its place; if the process is killed in between, the next writer
    restores the old one.

    Raises:
        Busy: another process writes to the same folder.
        OSError: the disk is full, the folder above cannot be written to, ``path`` is a file or a link that leads to
            itself, or the name of the hidden folder is taken; see :func:`lock`.
    """
    path = followed(path)
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    with lock(path) as work:
        hidden = work / "new"
        hidden.mkdir()
        write(hidden)
        finish(hidden, path, work)


def followed(path: Path) -> Path:
    """The target of a link, even if it does not exist; any other path unchanged. A link to itself is an OSError."""
    place = Path(os.path.realpath(path)) if path.is_symlink() else path
    if place.is_symlink():
        raise OSError(errno.ELOOP, f"the link leads to itself ({os.strerror(errno.ELOOP)})", str(path))
    return place


def finish(hidden: Path, path: Path, work: Path) -> None:
    """Sync a file, or a folder with its contents, to disk, and rename it to ``path``, which is replaced.

    Args:
        hidden: the file or folder, on the same disk as the target.
        path: the target.
        work: the hidden folder from :func:`lock`.
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
    """A context in which errors of the disk in a hidden folder name the target.

    Args:
        path: the target.
        hidden: the hidden folder.

    Raises:
        OSError: the error of the disk, with the name of the target; also for errors of other kinds from libraries.
    """
    try:
        yield
    except FileExistsError:  # a file with the name of the hidden folder must be removed
        raise
    except OSError as error:
        nameless = error.filename is None and error.errno in FULL
        if error.errno is None or not (nameless or _within(error.filename, hidden)):
            raise
        raise _named(path, error.errno, error.strerror or os.strerror(error.errno)) from error
    except StructPEError:
        raise
    except Exception as error:
        if (found := OS_ERROR.search(str(error))) is None or int(found[1]) not in (*FULL, *REFUSED, errno.EIO):
            raise
        raise _named(path, int(found[1]), os.strerror(int(found[1]))) from error


def sha256_of(file: Path) -> str:
    """The SHA-256 of a file's content, in hexadecimal."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sealed(content: Mapping[str, Any]) -> str:
    """JSON of a mapping with a checksum of its other entries as ``sha256``; :func:`unsealed` reads it."""
    return json.dumps({**content, "sha256": _seal(content)})


def unsealed(text: str) -> dict[str, Any]:
    """The mapping that :func:`sealed` wrote, without its checksum.

    Raises:
        ValueError: the text is not JSON, or has changed.
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
        try:
            work.mkdir()
        except FileExistsError:
            try:
                ours = _ours(work)
            except FileNotFoundError:  # the folder of a writer that has removed it since
                continue
            if not ours:
                raise foreign(work) from None
        lock = FileLock(work / MARK)
        try:
            lock.acquire(timeout)
            return lock
        except (FileNotFoundError, FileExistsError):  # its last writer removes the folder while the lock looks for it
            continue
        except Timeout:
            if waiting is None:
                wrong = "another writer is at work there; wait until it has ended, or choose another place"
                raise Busy(wrong).at(path) from None
            waiting()
            timeout = -1.0


@contextmanager
def _opened(work: Path) -> Iterator[int]:
    """A handle of a folder that is not a link. It stays this folder, even if another process renames it."""
    handle = os.open(work, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield handle
    finally:
        os.close(handle)


def _ours(work: Path) -> bool:
    """Whether this is the hidden folder of a writer: it has its lock, or is empty, if a process died before it locked.

    Raises:
        FileNotFoundError: there is nothing.
    """
    try:
        with _opened(work) as folder:
            names = os.listdir(folder)
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
        return False
    return not names or MARK in names


def _empty(work: Path) -> None:
    """Remove everything except the lock; of a link, the link itself."""
    with _opened(work) as folder:
        for name in os.listdir(folder):
            if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                shutil.rmtree(name, dir_fd=folder)
            elif name != MARK:
                os.unlink(name, dir_fd=folder)


def _within(filename: Any, work: Path) -> bool:
    if not isinstance(filename, str | bytes | os.PathLike):
        return False
    place = Path(os.fsdecode(filename))
    return work in (place, *place.parents)


def _named(path: Path, number: int, message: str) -> OSError:
    """The error for the target, with advice if the system has only its usual text."""
    if message == os.strerror(number) and number == errno.ENOSPC:
        message = f"{message}: it needs more than the {shutil.disk_usage(path.parent).free:,} bytes that are free"
    elif message == os.strerror(number) and number in REFUSED:
        message = f"its folder cannot be written to ({message})"
    return OSError(number, message, str(path))


def _settle(place: Path, work: Path) -> None:
    """Sync a file, or a folder with its contents, to disk, with at least the permissions of new files.

    Some libraries create files that no other user can read, regardless of the umask.
    """
    usual = _usual_mode(work)
    for each in (*(place.rglob("*") if place.is_dir() else ()), place):
        if each.is_symlink():
            continue
        if each.is_file() and (mode := each.stat().st_mode & 0o777) | usual != mode:
            each.chmod(mode | usual)
        _sync(each)


def _usual_mode(work: Path) -> int:
    """The permissions of new files; reading the umask would change it for all threads."""
    probe = work / "probe"
    probe.mkdir()
    mode = probe.stat().st_mode & 0o666
    probe.rmdir()
    return mode


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange two folders atomically; False if the system or the file system cannot."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        call = ctypes.CDLL(None).renameat2
    except AttributeError:  # a C library without it
        return False
    here, exchange = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux
    return bool(call(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0)


def _sync(path: Path) -> None:
    """Sync the content of a file, or the names in a folder, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def left_in(folder: Path) -> list[Path]:
    """The targets in a folder with a hidden folder next to them, of a running or a killed writer."""
    return [folder / work.name[1:-4] for work in folder.glob(".?*.tmp") if _remains(work)]


def sweep(*places: Path) -> None:
    """Remove the remains of writers that were killed after renaming; there may be no later writer that would do so."""
    for place in places:
        if _remains(place.with_name(f".{place.name}.tmp")):
            with lock(place):
                pass


def _remains(work: Path) -> bool:
    try:
        return _ours(work)
    except OSError:  # the folder is missing, or not readable for this user
        return False


SUMS = "SHA256SUMS"
"""The file with a line for each file of its folder: the checksum, two spaces, the name."""


def sums_of(folder: Path, names: Iterable[str]) -> str:
    """The content of :data:`SUMS` for the current files of a folder."""
    return "".join(f"{sha256_of(folder / name)}  {name}\n" for name in sorted(names))


def seal(folder: Path, names: Iterable[str]) -> None:
    """Write the checksums of files, which must not change afterwards."""
    atomic_text(folder / SUMS, sums_of(folder, names))


def wrong(folder: Path, names: Iterable[str]) -> str:
    """The damage to the files of a folder; empty if they are unchanged.

    Args:
        folder: the folder, with :data:`SUMS`.
        names: the required files.
    """
    for name in (*names, SUMS):
        if not (folder / name).is_file():
            return f"it has no {name}"
    now, written = sums_of(folder, names), (folder / SUMS).read_bytes()
    if written == now.encode():
        return ""
    lines = written.decode("utf-8", "replace").splitlines(keepends=True)
    listed = [line.partition("  ")[2] for line in lines]
    changed = [
        name for line, name in zip(now.splitlines(keepends=True), sorted(names), strict=True) if line not in lines
    ]
    if changed and listed == [f"{name}\n" for name in sorted(names)]:
        return f"its {changed[0]} has other bytes than its checksum says"
    return f"its {SUMS} is not whole"


def check(folder: Path, names: Iterable[str], remedy: str) -> None:
    """Compare files with their checksums.

    Raises:
        StoreError: a file is missing or has changed.
    """
    if found := wrong(folder, tuple(names)):
        raise StoreError(f"the folder is damaged: {found}; {remedy}").at(folder)


def sealed_lines(content: Mapping[str, Any]) -> str:
    """The JSON of :func:`structpe.system.files.sealed`, indented."""
    return json.dumps(json.loads(sealed(content)), indent=2)


def read_sealed(text: str) -> dict[str, Any]:
    """The inverse of :func:`sealed`; text of an older structpe, without a checksum, is not checked.

    Raises:
        ValueError: it is not a JSON object, or has changed.
    """
    content = json.loads(text)
    return content if isinstance(content, dict) and "sha256" not in content else unsealed(text)


def user_cache() -> Path:
    """The folder for caches of this user, by the rules of the system."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
