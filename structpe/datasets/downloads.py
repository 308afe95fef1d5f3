"""Download one file by http or https: resumed after an interruption, checked, and complete or absent."""

from __future__ import annotations

import errno
import hashlib
import http.client
import io
import json
import os
import shutil
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from http.client import HTTPMessage
from pathlib import Path
from typing import IO, Any, cast
from urllib.parse import urljoin, urlsplit

import msgspec

from structpe import __version__
from structpe.datasets.catalogue import CorpusError
from structpe.errors import foreign
from structpe.plain import from_json
from structpe.system.files import naming

__all__ = [
    "GONE_WRONG",
    "OPENERS",
    "Changed",
    "Download",
    "Redirects",
    "Retry",
    "Seen",
    "Short",
    "Version",
    "digest_of",
    "download",
    "failure",
    "opened",
    "sha256_of",
    "start_of",
    "sweep_note",
    "total_of",
    "validators",
    "writing",
]

LINES = 1_000
"""Consecutive lines without content: status, headers, headers of interim responses, trailers."""
ASIDE = 1 << 16
"""Bytes read of the body of a redirect."""


class _Counted:
    """A stream that raises after too many lines without content.

    Args:
        stream: stream of the connection.
    """

    def __init__(self, stream: Any) -> None:
        self._stream, self._lines = stream, 0

    def readline(self, *size: int) -> bytes:
        """Read the next line."""
        self._lines += 1
        if self._lines > LINES:
            raise http.client.HTTPException(f"the server sends more than {LINES} lines of headers")
        line: bytes = self._stream.readline(*size)
        return line

    def __getattr__(self, name: str) -> Any:
        if name in ("read", "read1", "readinto", "readinto1", "peek"):
            self._lines = 0
        return getattr(self._stream, name)


class _Answer(http.client.HTTPResponse):
    """A response that counts lines: http.client limits the length of a line, but not the number of responses 100."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fp: Any = _Counted(self.fp)


class _Http(urllib.request.HTTPHandler):
    class _Connection(http.client.HTTPConnection):
        response_class = _Answer

    def http_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(self._Connection, req)


class _Https(urllib.request.HTTPSHandler):
    class _Connection(http.client.HTTPSConnection):
        response_class = _Answer

    def https_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(self._Connection, req)


OPENERS = (_Http, _Https)
"""Handlers for urllib."""


class Short(io.BufferedIOBase):
    """The beginning of a response whose body is not needed.

    Args:
        stream: the response.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def read(self, size: int | None = -1, /) -> bytes:
        """Read the beginning, which urllib discards."""
        del size
        return self._stream.read(ASIDE)

    def close(self) -> None:
        """Close the response."""
        super().close()
        self._stream.close()


AGAIN = {408, 425, 429, 500, 502, 503, 504}
GONE_WRONG = (urllib.error.URLError, http.client.HTTPException, OSError)
REASON = 200
"""Characters of a server's message in an error."""
DIGITS = 18
"""Digits of a number of bytes or seconds."""
UNREACHABLE = (errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTUNREACH)


@dataclass(frozen=True)
class Version:
    """The version of a file on a server, stored with a partial download."""

    url: str
    etag: str | None
    modified: str | None
    total: int | None

    @property
    def named(self) -> bool:
        """Whether the server can recognise the version."""
        return bool(self.etag or self.modified)


class Retry(Exception):
    """An attempt has failed, and the next one may succeed.

    Args:
        reason: why it failed.
        wait: seconds that the server asks to wait.
    """

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class Changed(Exception):
    """The partial download is not part of the file that the server has now."""


def opened(url: str, timeout: float, have: int = 0, known: Version | None = None) -> Any:
    """Request a file, or the rest of a partial download.

    Args:
        url: URL of the file.
        timeout: seconds to wait for the server.
        have: bytes of the partial download.
        known: version of the partial download.

    Raises:
        Retry: the server does not respond, or reports a temporary failure.
        Changed: the server does not have the rest.
        CorpusError: the file does not exist, or there is no network.
    """
    headers = {"User-Agent": f"structpe/{__version__}", "Accept-Encoding": "identity"}
    if have and known is not None:
        headers["Range"] = f"bytes={have}-"
        validator = known.etag if known.etag and not known.etag.startswith("W/") else known.modified
        if validator:
            headers["If-Range"] = validator
    request = urllib.request.Request(_web(url), headers=headers)
    try:
        return urllib.request.build_opener(Redirects, *OPENERS).open(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        with error:
            said = f"{error.code} {_short(str(error.reason))}"
            if error.code == 416:
                raise Changed from None
            if error.code in AGAIN:
                raise Retry(f"the server says {said}", _number(error.headers.get("Retry-After"))) from None
            raise CorpusError(f"{url} could not be fetched: the server says {said}") from None
    except GONE_WRONG as error:
        raise failure(url, error) from None
    except ValueError as error:  # the URL, or the target of a redirect, is invalid
        raise CorpusError(f"{url} could not be fetched: {_short(str(error))}; check the address") from None


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= REASON else f"{line[:REASON]}..."


def failure(url: str, error: Exception) -> Exception:
    """The error for a failed attempt: Retry, or CorpusError if there is no network."""
    reason = error.reason if isinstance(error, urllib.error.URLError) and error.reason else error
    said = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__  # reasons have many types
    said = _short(str(said))
    if isinstance(reason, socket.gaierror) or getattr(reason, "errno", None) in UNREACHABLE:
        return CorpusError(f"{url} could not be reached: {said}; this machine seems to be offline")
    return Retry(said)


class Redirects(urllib.request.HTTPRedirectHandler):
    """Follow redirects to http and https only, and never from https to http."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        if urlsplit(req.full_url).scheme == "https" and urlsplit(newurl).scheme != "https":
            raise CorpusError(f"{req.full_url} redirects to {newurl}, which is not https; this is refused")
        return super().redirect_request(req, fp, code, msg, headers, newurl)

    def http_error_302(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any) -> Any:
        """Refuse other schemes before urllib does, with a clear error."""
        try:
            target = urljoin(req.full_url, headers.get("Location") or headers.get("URI") or "")
            _web(target, f"{req.full_url} redirects to ")
            return super().http_error_302(req, cast(IO[bytes], Short(fp)), code, msg, headers)
        except Exception:
            fp.close()
            raise

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


def _web(url: str, by: str = "") -> str:
    if urlsplit(url).scheme not in ("http", "https"):
        raise CorpusError(f"{by}{url}, which is not an http or https URL; this is refused")
    return url


def start_of(answer: Any, have: int) -> int:
    """First byte of the response: a server without ranges, or with another file now, sends the whole file."""
    if answer.status != 206:
        return 0
    unit = (answer.headers["Content-Range"] or "").partition("-")[0]
    if unit != f"bytes {have}":
        raise Changed
    return have


def total_of(answer: Any, start: int) -> int | None:
    """Bytes of the whole file; None if the server does not say."""
    length = _number(answer.headers["Content-Length"])
    return None if length is None else start + length


def validators(answer: Any) -> tuple[str | None, str | None]:
    """ETag and date of the response; None if they are missing, or cannot be sent back."""
    etag, modified = (answer.headers[name] for name in ("ETag", "Last-Modified"))
    return _sendable(etag), _sendable(modified)


def _sendable(text: str | None) -> str | None:
    return text if text is not None and len(text) <= REASON and text.isascii() and text.isprintable() else None


def _number(text: str | None) -> int | None:
    """The whole number in a header; None if the header has no number, or one too large for a file or a pause."""
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) <= DIGITS else None


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
        digest: another digest, as in :class:`structpe.datasets.catalogue.File`.
        attempts: number of attempts without progress before giving up.
        timeout: seconds without a response after which an attempt fails.
        pause: seconds before the second attempt; each further pause is twice as long.
    """

    url: str
    sha256: str | None = None
    bytes: int | None = None
    digest: str | None = None
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
        CorpusError: the file cannot be reached, does not exist, has another size or checksum, or cannot be written; or
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
            finally:  # the note goes last: a part without a note would not be recognised as ours
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


def digest_of(file: Path, like: str) -> str:
    """The digest of a file by the function of another digest, such as ``md5:...``."""
    kind = like.partition(":")[0]
    with file.open("rb") as content:
        if kind == "git":  # the name of a blob is the sha1 of a header and the content
            begun = hashlib.sha1(b"blob %d\0" % file.stat().st_size, usedforsecurity=False)
            return f"git:{hashlib.file_digest(content, lambda: begun).hexdigest()}"
        return f"{kind}:{hashlib.file_digest(content, kind).hexdigest()}"


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
    """Download the missing part, and check the whole file.

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
            with part.open("ab") as file:
                file.truncate(start)
            with part.open("rb") as file:
                hashlib.file_digest(file, lambda: digest)  # the checksum is of the whole file
        size = _copied(answer, part, start, digest, version.total, tell)
    seen = Seen(digest.hexdigest(), size)
    _check_content(wanted, part, seen, resumed=start > 0)
    return seen


def _had(wanted: Download, part: Path) -> tuple[int, Version | None]:
    """Bytes of a partial download that can be resumed, and its version."""
    known = _noted(part)
    if known is None or not part.exists():
        return 0, None
    have = part.stat().st_size
    usable = known.url == wanted.url and (known.named or wanted.sha256 or wanted.digest)
    return (have, known) if usable and have else (0, None)


def _noted(part: Path) -> Version | None:
    """The version in the note of a partial download; None without a note, or if it is damaged."""
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
        wrong = f"{wanted.url} has {total} bytes, and the card says {wanted.bytes}: it was changed"
        raise CorpusError(f"{wrong}; give the right one with --from, or tell the authors of structpe")
    if total is not None and total > LARGEST:
        raise CorpusError(f"{wanted.url} has {total} bytes, more than any data set has; this is refused")


def _enough(part: Path, needed: int) -> None:
    free = shutil.disk_usage(part.parent).free
    if needed > free:
        raise OSError(errno.ENOSPC, f"{needed} bytes are needed and {free} are free", str(part))


def _copied(answer: Any, part: Path, size: int, digest: Any, total: int | None, tell: Tell) -> int:
    """Append the response to the partial file; return the size of the whole."""
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
    other = None if wanted.digest is None else digest_of(part, wanted.digest)
    facts = (
        (wanted.bytes, seen.bytes, "bytes"),
        (wanted.sha256, seen.sha256, "sha256"),
        (wanted.digest, other, "digest"),
    )
    for expected, found, what in facts:
        if expected is not None and expected != found:
            if resumed:
                raise Changed
            _forget(part)
            wrong = f"the file from {wanted.url} has {what} {found}, and the card says {expected}"
            raise CorpusError(f"{wrong}: it was changed or damaged, and is not kept; give the right one with --from")


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
