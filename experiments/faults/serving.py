"""A web server on this machine, slow enough to be interrupted; it knows ranges, so that downloads are gone on with."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection

__all__ = ["FILES", "serving"]

PIECE, PAUSE = 1 << 16, 0.005
FILES = {
    f"{name}.txt": f"{name} {name[::-1]}\n".encode() * lines for name, lines in (("train", 40_000), ("test", 9_000))
}


class Handler(BaseHTTPRequestHandler):
    """Serves :data:`FILES`, piece by piece."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        content = FILES[self.path.lstrip("/")]
        start = int((self.headers["Range"] or "bytes=0-").removeprefix("bytes=").rstrip("-"))
        self.close_connection = True
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("ETag", '"1"')
        self.send_header("Content-Length", str(len(content) - start))
        self.send_header("Connection", "close")
        self.end_headers()
        for at in range(start, len(content), PIECE):
            self.wfile.write(content[at : at + PIECE])
            time.sleep(PAUSE)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


class Service(ThreadingHTTPServer):
    """Clients that go away in the middle are what it is there for."""

    def handle_error(self, request: object, address: object) -> None:
        """Nothing."""


def _serve(tell: Connection) -> None:
    service = Service(("127.0.0.1", 0), Handler)
    tell.send(service.server_port)
    service.serve_forever()


@contextmanager
def serving() -> Iterator[str]:
    """The address of a server while the block runs; it is a process of its own, as one with threads must not fork."""
    here, there = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=_serve, args=(there,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{here.recv()}"
    finally:
        process.kill()
        process.join()
