"""A web server in this process, which does what it is told to: ranges, cut connections, errors, redirects."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Served:
    """A file, and how it is served.

    Args:
        content: of the file.
        ranges: whether the server knows them.
        etag: of the file; None sends none.
        length: whether its length is said.
        cuts: after how many bytes the next answers break off.
        errors: codes of the next answers.
        redirect: where it leads on to.
        chunked: whether it comes in pieces of unknown number.
    """

    content: bytes = b""
    ranges: bool = True
    etag: str | None = '"1"'
    length: bool = True
    cuts: list[int] = field(default_factory=list)
    errors: list[int] = field(default_factory=list)
    redirect: str | None = None
    chunked: bool = False


@dataclass
class Server:
    """Files by their paths, and what was asked for."""

    url: str
    files: dict[str, Served] = field(default_factory=dict)
    asked: list[tuple[str, str | None]] = field(default_factory=list)


@contextmanager
def serving() -> Iterator[Server]:
    """A server while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            server.asked.append((self.path, self.headers["Range"]))
            self.close_connection = True
            found = server.files.get(self.path)
            if found is None or found.errors:
                self._empty(found.errors.pop(0) if found else 404)
            elif found.redirect is not None:
                self._empty(302, {"Location": found.redirect})
            else:
                self._send(found)

        def _empty(self, code: int, headers: dict[str, str] | None = None) -> None:
            self.send_response(code)
            for name, value in {"Content-Length": "0", "Connection": "close", **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()

        def _send(self, found: Served) -> None:
            start = int((self.headers["Range"] or "bytes=0-").removeprefix("bytes=").rstrip("-"))
            same = self.headers["If-Range"] in (None, found.etag)
            start = start if found.ranges and same else 0
            if start and start >= len(found.content):
                self._empty(416)
                return
            body = found.content[start:]
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(found.content) - 1}/{len(found.content)}")
            if found.etag:
                self.send_header("ETag", found.etag)
            if found.chunked:
                self.send_header("Transfer-Encoding", "chunked")
            elif found.length:
                self.send_header("Content-Length", str(len(body)))
            self.send_header("Connection", "close")
            self.end_headers()
            body = body[: found.cuts.pop(0)] if found.cuts else body
            self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if found.chunked else body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Service(ThreadingHTTPServer):
        def handle_error(self, request: object, address: object) -> None:
            """A client that goes away in the middle is no error here."""

    service = Service(("127.0.0.1", 0), Handler)
    server = Server(f"http://127.0.0.1:{service.server_port}")
    thread = threading.Thread(target=service.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        service.shutdown()
        service.server_close()
        thread.join()
