"""Requests to web servers: http and https only, also after redirects; which failures can be retried."""

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
            if error.code == 416:
                raise Changed from None
            if error.code in AGAIN:
                raise Retry(f"the server says {_said(error)}", _wait(error.headers)) from None
            raise CorpusError(f"{url} could not be fetched: the server says {_said(error)}") from None
    except GONE_WRONG as error:
        raise failure(url, error) from None
    except ValueError as error:  # the URL, or the target of a redirect, is invalid
        raise CorpusError(f"{url} could not be fetched: {_short(str(error))}; check the address") from None


def _said(error: urllib.error.HTTPError) -> str:
    return f"{error.code} {_short(str(error.reason))}"


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
    """First byte of the response: servers without ranges, or with another file now, send the whole file."""
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


def _wait(headers: Message) -> float | None:
    """Seconds that a server asks to wait."""
    seconds = _number(headers.get("Retry-After"))
    return None if seconds is None else float(seconds)
