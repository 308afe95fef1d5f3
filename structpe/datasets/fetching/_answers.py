"""Limits on HTTP responses: urllib itself reads any number of header lines, and the whole body of a redirect."""

from __future__ import annotations

import http.client
import io
import urllib.request
from typing import IO, Any

__all__ = ["OPENERS", "Short"]

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
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fp: Any = _Counted(self.fp)


class _Plain(http.client.HTTPConnection):
    response_class = _Answer


class _Safe(http.client.HTTPSConnection):
    response_class = _Answer


class _Http(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_Plain, req)


class _Https(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_Safe, req)


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
