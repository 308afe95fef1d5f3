"""Download of one file by http or https: resumed after an interruption, checked, and complete or absent."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from structpe.datasets.card import CorpusError
from structpe.datasets.fetching._web import (
    GONE_WRONG,
    Changed,
    Retry,
    Version,
    failure,
    opened,
    start_of,
    total_of,
    validators,
)
from structpe.errors import foreign
from structpe.files import naming
from structpe.plain import from_json

__all__ = ["Download", "Seen", "download", "sha256_of", "sweep_note", "writing"]

Tell = Callable[[int, int | None], object]
"""(bytes so far, bytes in total if known)."""

PIECE = 1 << 18
LARGEST = 1 << 36
"""Largest file of a data set, in bytes: a response without an end must stop somewhere."""

ATTEMPTS, TIMEOUT, PATIENCE = 5, 30.0, 60.0


@dataclass(frozen=True)
class Seen:
    """Checksum and size of a file."""

    sha256: str
    bytes: int


@dataclass(frozen=True)
class Download:
    """A file to download.

    Args:
        url: its URL.
        sha256: its checksum, if known.
        bytes: its size, if known.
        attempts: number of attempts without progress before giving up.
        timeout: seconds without a response after which an attempt fails.
        pause: seconds before the second attempt; each further pause is twice as long.
    """

    url: str
    sha256: str | None = None
    bytes: int | None = None
    attempts: int = ATTEMPTS
    timeout: float = TIMEOUT
    pause: float = 1.0


def download(wanted: Download, place: Path, tell: Tell | None = None) -> Seen:
    """Download a file.

    A partial download is stored as ``place`` + ``.part``, with a note beside it, ``.part.json``, by which it is known.
    The next call resumes it if the server says that the file has not changed, and starts again otherwise. The file gets
    its name when its size and checksum are right.

    Args:
        wanted: the file.
        place: path to write to.
        tell: progress callback.

    Raises:
        CorpusError: the file cannot be reached, does not exist, is not what it should be, or cannot be written; or
            something else has the name of the partial download, and is left as it is.
    """
    part = _part(place)
    with writing(place):
        _check_ours(part)
    tries, furthest, anew = 0, _size(part), False
    while True:
        try:
            seen = _attempt(wanted, part, tell or (lambda done, total: None))
        except Changed:
            _forget(part)
            if anew:
                raise CorpusError(f"{wanted.url} changes while it is fetched; try again later") from None
            anew = True
            continue
        except Retry as failed:
            tries = 1 if _size(part) > furthest else tries + 1
            furthest = max(furthest, _size(part))
            if tries >= wanted.attempts:
                raise CorpusError(f"{wanted.url} could not be fetched: {failed}, {tries} times in a row") from None
            time.sleep(min(failed.wait or wanted.pause * 2 ** (tries - 1), PATIENCE))
            continue
        with writing(place):
            try:
                os.replace(part, place)
            finally:  # a part without a note is not ours
                if not part.exists():
                    _note(part).unlink(missing_ok=True)
        return seen


def sweep_note(place: Path) -> None:
    """Remove the note of a download whose process was killed when the file had got its name."""
    part = _part(place)
    if not os.path.lexists(part) and _noted(part) is not None:
        _note(part).unlink()


def sha256_of(file: Path, tell: Tell | None = None) -> Seen:
    """Checksum and size of a file."""
    digest, size = hashlib.sha256(), 0
    with file.open("rb") as content:
        while piece := content.read(PIECE):
            digest.update(piece)
            size += len(piece)
            if tell is not None:
                tell(size, None)
    return Seen(digest.hexdigest(), size)


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Convert an OSError while writing to a path into a CorpusError that says what to do."""
    try:
        yield
    except OSError as error:
        what = error.strerror or str(error)
        remedy = "choose another place with --to, or check its permissions"
        if error.errno == errno.EEXIST:
            remedy = "move it elsewhere, or choose another place with --to"
        if error.errno == errno.ENOSPC:
            remedy = "make room, then start the same command again: it goes on where it stopped"
        raise CorpusError(f"cannot write: {what}; {remedy}").at(str(error.filename or place)) from None


@contextmanager
def _writing_part(part: Path) -> Iterator[None]:
    """Like :func:`writing`, for a partial file: errors name the complete file."""
    place = part.with_name(part.name.removesuffix(".part"))
    with writing(place), naming(place, part), naming(place, _note(part)):
        yield


def _attempt(wanted: Download, part: Path, tell: Tell) -> Seen:
    """Download what is missing, and check the whole file.

    Raises:
        Retry: the connection failed.
        Changed: the partial download cannot be used and must be removed.
    """
    have, known = _had(wanted, part)
    with opened(wanted.url, wanted.timeout, have, known) as answer:
        start = start_of(answer, have)
        version = Version(wanted.url, *validators(answer), total_of(answer, start))
        if start and known is not None and known != version:
            raise Changed
        _check_size(wanted, version.total)
        digest = hashlib.sha256()
        with _writing_part(part):
            _enough(part, (version.total or 0) - start)
            _note(part).write_text(json.dumps(asdict(version)), encoding="utf-8")
            size = _resumed(part, start, digest)
        size = _copied(answer, part, size, digest, (version.total, tell))
    _check_content(wanted, part, Seen(digest.hexdigest(), size), resumed=start > 0)
    return Seen(digest.hexdigest(), size)


def _had(wanted: Download, part: Path) -> tuple[int, Version | None]:
    """Bytes of a partial download that can be resumed, and its version."""
    known = _noted(part)
    if known is None or not part.exists():
        return 0, None
    have = part.stat().st_size
    usable = known.url == wanted.url and (known.named or wanted.sha256 is not None)
    return (have, known) if usable and have else (0, None)


def _noted(part: Path) -> Version | None:
    """What is noted of a partial download; None without a note, or if it is damaged."""
    try:
        return None if _note(part).is_symlink() else msgspec.convert(from_json(_note(part).read_bytes()), Version)
    except (OSError, ValueError, msgspec.ValidationError):
        return None


def _check_ours(part: Path) -> None:
    """Check that what has the name of a partial download is one.

    Raises:
        FileExistsError: it is not.
    """
    for each in (part, _note(part)):
        if each.is_symlink() or (each.exists() and not each.is_file()):
            raise foreign(each)
    if part.exists() and not _note(part).exists():
        raise foreign(part)


def _check_size(wanted: Download, total: int | None) -> None:
    if total is not None and wanted.bytes is not None and total != wanted.bytes:
        raise CorpusError(
            f"{wanted.url} has {total} bytes, and the card says {wanted.bytes}: it was changed; give the right one "
            "with --from, or tell the authors of structpe"
        )
    if total is not None and total > LARGEST:
        raise CorpusError(f"{wanted.url} has {total} bytes, more than any data set has; this is refused")


def _enough(part: Path, needed: int) -> None:
    free = shutil.disk_usage(part.parent).free
    if needed > free:
        raise OSError(errno.ENOSPC, f"{needed} bytes are needed and {free} are free", str(part))


def _resumed(part: Path, start: int, digest: Any) -> int:
    """Cut the partial file at ``start``, and add it to the checksum."""
    with part.open("ab") as file:
        file.truncate(start)
    with part.open("rb") as file:
        hashlib.file_digest(file, lambda: digest)
    return start


def _copied(answer: Any, part: Path, size: int, digest: Any, course: tuple[int | None, Tell]) -> int:
    """Append the response to the partial file; return the size of the whole."""
    total, tell = course
    with _writing_part(part):
        file = part.open("ab")
    with file:
        while True:
            try:
                piece = answer.read1(PIECE)
            except GONE_WRONG as error:
                raise failure(answer.url, error) from None
            if not piece:
                break
            size += len(piece)
            if size > (LARGEST if total is None else total):
                raise CorpusError(f"{answer.url} sends more than it announced, or without end; this is refused")
            digest.update(piece)
            with _writing_part(part):
                file.write(piece)
            tell(size, total)
        with _writing_part(part):
            file.flush()
            os.fsync(file.fileno())
    if total is not None and size < total:
        raise Retry(f"the connection ended after {size} of {total} bytes")
    return size


def _check_content(wanted: Download, part: Path, seen: Seen, resumed: bool) -> None:
    wrong = [(wanted.bytes, seen.bytes, "bytes"), (wanted.sha256, seen.sha256, "sha256")]
    for expected, found, what in wrong:
        if expected is not None and expected != found:
            if resumed:
                raise Changed
            _forget(part)
            raise CorpusError(
                f"the file from {wanted.url} has {what} {found}, and the card says {expected}: it was changed or "
                "damaged, and is not kept; give the right one with --from"
            )


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _part(place: Path) -> Path:
    return place.with_name(f"{place.name}.part")


def _note(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _forget(part: Path) -> None:
    with _writing_part(part):
        part.unlink(missing_ok=True)
        _note(part).unlink(missing_ok=True)
