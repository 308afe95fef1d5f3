"""Answers of web servers: http and https only, redirects too, and which failures may be tried again."""

from __future__ import annotations

import errno
import http.client
import socket
import urllib.error
import urllib.request
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPMessage
from typing import IO, Any, cast
from urllib.parse import urljoin, urlsplit

from structpe import __version__
from structpe.datasets.card import CorpusError
from structpe.datasets.fetching._answers import OPENERS, Short

__all__ = [
    "GONE_WRONG",
    "Changed",
    "Redirects",
    "Retry",
    "Version",
    "failure",
    "opened",
    "start_of",
    "total_of",
    "validators",
]

AGAIN = {408, 425, 429, 500, 502, 503, 504}
GONE_WRONG = (urllib.error.URLError, http.client.HTTPException, OSError)
REASON = 200
"""Characters of what a server says of itself."""
DIGITS = 18
"""Of a number of bytes or seconds."""
UNREACHABLE = (errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTUNREACH)


@dataclass(frozen=True)
class Version:
    """By what a server tells two versions of a file apart, and what a half-fetched file is a part of."""

    url: str
    etag: str | None
    modified: str | None
    total: int | None

    @property
    def named(self) -> bool:
        """Whether the server will know it again."""
        return bool(self.etag or self.modified)


class Retry(Exception):
    """The attempt has failed, and the next may not.

    Args:
        reason: why.
        wait: seconds for which the server asks.
    """

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class Changed(Exception):
    """What is there is no part of what the server has now."""


def opened(url: str, timeout: float, have: int = 0, known: Version | None = None) -> Any:
    """The answer of the server, for the rest of the file if there is a part of it.

    Args:
        url: of the file.
        timeout: seconds without an answer.
        have: bytes of it that are there.
        known: the version that they are a part of.

    Raises:
        Retry: no answer, or one that may be another the next time.
        Changed: there is no such rest.
        CorpusError: there is no such file, or no network.
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
            if error.code == 416:
                raise Changed from None
            if error.code in AGAIN:
                raise Retry(f"the server says {_said(error)}", _wait(error.headers)) from None
            raise CorpusError(f"{url} could not be fetched: the server says {_said(error)}") from None
    except GONE_WRONG as error:
        raise failure(url, error) from None
    except ValueError as error:  # an address, or where it leads, that is none
        raise CorpusError(f"{url} could not be fetched: {_short(str(error))}; check the address") from None


def _said(error: urllib.error.HTTPError) -> str:
    return f"{error.code} {_short(str(error.reason))}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= REASON else f"{line[:REASON]}..."


def failure(url: str, error: Exception) -> Exception:
    """An attempt that may be repeated, or that the network cannot be reached at all."""
    reason = error.reason if isinstance(error, urllib.error.URLError) and error.reason else error
    said = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__  # reasons are of many kinds
    said = _short(str(said))
    if isinstance(reason, socket.gaierror) or getattr(reason, "errno", None) in UNREACHABLE:
        return CorpusError(f"{url} could not be reached: {said}; this machine seems to be offline")
    return Retry(said)


class Redirects(urllib.request.HTTPRedirectHandler):
    """Follows to http and https only, and never from https to http."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        if urlsplit(req.full_url).scheme == "https" and urlsplit(newurl).scheme != "https":
            raise CorpusError(f"{req.full_url} leads on to {newurl}, which is not https; this is refused")
        return super().redirect_request(req, fp, code, msg, headers, newurl)

    def http_error_302(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any) -> Any:
        """Refuses another kind of address before urllib does, in our words."""
        try:
            target = urljoin(req.full_url, headers.get("Location") or headers.get("URI") or "")
            _web(target, f"{req.full_url} leads on to ")
            return super().http_error_302(req, cast(IO[bytes], Short(fp)), code, msg, headers)
        except Exception:
            fp.close()
            raise

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


def _web(url: str, by: str = "") -> str:
    if urlsplit(url).scheme not in ("http", "https"):
        raise CorpusError(f"{by}{url}, which is no address of http or https; this is refused")
    return url


def start_of(answer: Any, have: int) -> int:
    """At which byte the answer begins: a server that knows no ranges, or has another file now, sends all of it."""
    if answer.status != 206:
        return 0
    unit = (answer.headers["Content-Range"] or "").partition("-")[0]
    if unit != f"bytes {have}":
        raise Changed
    return have


def total_of(answer: Any, start: int) -> int | None:
    """Bytes of the whole file; None where the server does not say."""
    length = _number(answer.headers["Content-Length"])
    return None if length is None else start + length


def validators(answer: Any) -> tuple[str | None, str | None]:
    """ETag and date of the answer; None where they are absent, or could not be sent back."""
    etag, modified = (answer.headers[name] for name in ("ETag", "Last-Modified"))
    return _sendable(etag), _sendable(modified)


def _sendable(text: str | None) -> str | None:
    return text if text is not None and len(text) <= REASON and text.isascii() and text.isprintable() else None


def _number(text: str | None) -> int | None:
    """A whole number; None where there is none, or one that no file and no pause is as large as."""
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) <= DIGITS else None


def _wait(headers: Message) -> float | None:
    """Seconds for which a server asks."""
    seconds = _number(headers.get("Retry-After"))
    return None if seconds is None else float(seconds)
