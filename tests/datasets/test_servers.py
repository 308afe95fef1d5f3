"""Servers that send whatever they like: each download ends in the file, or in one error, soon and in little memory."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import repeat
from pathlib import Path

import pytest

from structpe.datasets import CorpusError, downloads
from structpe.datasets.downloads import Download, download

OK = b"HTTP/1.1 200 OK\r\n"
END = b"\r\n\r\n"
FOREVER = 1 << 40


@contextmanager
def saying(*answers: Iterable[bytes]) -> Iterator[str]:
    """A server that sends these pieces to one client after another, the last of them again and again."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        threading.Thread(target=serve, args=(listening, answers), daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/a"


def serve(listening: socket.socket, answers: tuple[Iterable[bytes], ...]) -> None:
    for number in range(100):
        with suppress(OSError):
            client, _ = listening.accept()
            with client:
                client.recv(65536)
                for piece in answers[min(number, len(answers) - 1)]:
                    client.sendall(piece)


def fetch(url: str, folder: Path, **more: object) -> object:
    return download(Download(url, attempts=2, timeout=5, pause=0.001, **more), folder / "a")  # type: ignore[arg-type]


REDIRECT = b"HTTP/1.1 302 Found\r\nLocation: "
ANSWERS: dict[str, tuple[list[Iterable[bytes]], str]] = {
    "headers without end": ([[OK, *repeat(b"A: b\r\n", 5000)]], "got more than 100 headers"),
    "a line without end": ([[OK, b"A: ", *repeat(b"b" * 65536, 50)]], "got more than 65536 bytes"),
    "a status without end": ([repeat(b"H" * 65536, 50)], "could not be fetched"),
    "interim answers without end": (
        [repeat(b"HTTP/1.1 100 Continue" + END, 100_000)],
        "the server sends more than 1000 lines of headers",
    ),
    "a body without end": ([[OK, END[2:], *repeat(bytes(65536), 64)]], "sends more than it announced, or without end"),
    "a trailer without end": (
        [[OK + b"Transfer-Encoding: chunked" + END + b"1\r\na\r\n0\r\n", *repeat(b"A: b\r\n", 100_000)]],
        "the server sends more than 1000 lines of headers",
    ),
    "a chunk of no size": ([[OK + b"Transfer-Encoding: chunked" + END + b"x\r\n"]], "could not be fetched"),
    "a chunk below 0": ([[OK + b"Transfer-Encoding: chunked" + END + b"-1\r\na"]], "could not be fetched"),
    "a huge length": (
        [[OK + b"Content-Length: 99999999999999999" + END]],
        "more than any data set has; this is refused",
    ),
    "a redirect with a body": (
        [[REDIRECT + b"/b" + END, *repeat(bytes(65536), 1000)]],
        "the server says 302 The HTTP server returned a redirect error that would lead to an infinite loop",
    ),
    "a redirect to a port of letters": ([[REDIRECT + b"http://a:b/" + END]], "could not be fetched"),
    "a redirect to half an address": (
        [[REDIRECT + b"http://[::1" + END]],
        "could not be fetched: .*; check the address",
    ),
    "a redirect to a name of dots": ([[REDIRECT + b"http://a..b/" + END]], "could not be "),
    "a redirect with a zero": ([[REDIRECT + b"http://127.0.0.1/\0" + END]], "could not be fetched"),
    "a reason of 60,000 letters": ([[b"HTTP/1.1 404 " + b"n" * 60_000 + END]], "the server says 404 n{200}[.]{3}"),
    "a pause of 5,000 digits": (
        [[b"HTTP/1.1 503 No\r\nRetry-After: " + b"\xb2" * 9 + END]],
        "503 No, 2 times in a row",
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_what_servers_send(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "LARGEST", 1 << 20)
    monkeypatch.setattr(downloads, "PATIENCE", 0.01)
    answers, message = ANSWERS[name]
    with saying(*answers) as url, pytest.raises(CorpusError, match=message) as caught:
        fetch(url, tmp_path)
    assert len(str(caught.value)) < 600
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("length", [b"9" * 5000, b"-5", b"\xb2", b"x", b""], ids=len)
def test_lengths_that_are_none(length: bytes, tmp_path: Path) -> None:
    with saying([OK + b"Content-Length: " + length + END + b"content"]) as url:
        fetch(url, tmp_path)
    assert (tmp_path / "a").read_bytes() == b"content"


@pytest.mark.parametrize("etag", [b'"\x80\xff"', b'"a"\r\n b', b'"' + b"e" * 60_000 + b'"', b"\x7f"], ids=len)
def test_tags_that_cannot_be_sent_back(etag: bytes, tmp_path: Path) -> None:
    """The connection breaks off after half of the file; the second attempt begins anew."""
    answer = OK + b"ETag: " + etag + b"\r\nContent-Length: 4" + END
    with saying([answer + b"ab"], [answer + b"abcd"]) as url:
        fetch(url, tmp_path)
    assert (tmp_path / "a").read_bytes() == b"abcd"


@pytest.mark.parametrize("part", ["[" * 100_000, "{}", '{"url": 1}', "9" * 5000, "\udcff"], ids=lambda text: text[:9])
def test_notes_that_were_edited(part: str, tmp_path: Path) -> None:
    (tmp_path / "a.part").write_bytes(b"ab")
    (tmp_path / "a.part.json").write_bytes(part.encode("utf-8", "surrogateescape"))
    with saying([OK + b"Content-Length: 4" + END + b"abcd"]) as url:
        fetch(url, tmp_path)
    assert (tmp_path / "a").read_bytes() == b"abcd"


@pytest.mark.parametrize("wrong", [{"etag": 3}, {"modified": [1]}, {"total": "9"}, {"total": [1]}, {"total": 1e999}])
def test_notes_of_other_types(wrong: dict[str, object], tmp_path: Path) -> None:
    with saying([OK + b"Content-Length: 4" + END + b"abcd"]) as url:
        note = {"url": url, "etag": '"1"', "modified": None, "total": 4, **wrong}
        (tmp_path / "a.part").write_bytes(b"ab")
        (tmp_path / "a.part.json").write_text(json.dumps(note), encoding="utf-8")
        fetch(url, tmp_path)
    assert (tmp_path / "a").read_bytes() == b"abcd"


@pytest.mark.parametrize(
    "told",
    [b"bytes 9-3/4", b"bytes 2-3", b"bytes */4", b"x", b"", b"bytes 2-" + b"9" * 5000 + b"/*"],
    ids=lambda text: text[:12],
)
def test_ranges_that_lie(told: bytes, tmp_path: Path) -> None:
    """Whatever a server says of what it sends, the file that is kept has the checksum of the card."""
    whole = OK + b'ETag: "1"\r\nContent-Length: 4' + END
    rest = b'HTTP/1.1 206 Partial\r\nETag: "1"\r\nContent-Range: ' + told + b"\r\nContent-Length: 2" + END + b"cd"
    sha256 = "88d4266fd4e6338d13b845fcf289579d209c897823b9217da3e161936f031589"  # of abcd
    with saying([whole + b"ab"], [rest], [whole + b"abcd"]) as url:
        fetch(url, tmp_path, sha256=sha256)
    assert (tmp_path / "a").read_bytes() == b"abcd"


def test_a_redirect_is_not_read_to_its_end() -> None:
    class Endless:
        def read(self, size: int = -1) -> bytes:
            assert 0 < size <= 1 << 20, "all of it was asked for"
            return bytes(size)

        def close(self) -> None:
            """Python 3.13 closes a response that nobody keeps."""

    assert len(downloads.Short(Endless()).read()) == downloads.ASIDE  # type: ignore[arg-type]
