"""Downloads from a real server: gone on with, begun anew, refused, and never half."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import re
import shutil
import socket
from collections.abc import Callable
from http.client import HTTPMessage
from pathlib import Path
from typing import Any
from urllib.request import Request

import pytest

from structpe.datasets import CorpusError
from structpe.datasets.downloads import Download, Redirects, digest_of, download, sweep_note
from tests.datasets.serving import Served, Server
from tests.foreign import FOREIGN, a_file, contents
from tests.killing import every_moment

CONTENT = bytes(range(256)) * 8_000
SHA = hashlib.sha256(CONTENT).hexdigest()


def wanted(server: Server, path: str = "/a", **changes: Any) -> Download:
    return Download(
        server.url + path, **{"sha256": SHA, "bytes": len(CONTENT), "pause": 0.001, "timeout": 5, **changes}
    )


def refused(server: Server, place: Path, message: str, **changes: Any) -> None:
    with pytest.raises(CorpusError, match=message):
        download(wanted(server, **changes), place)
    assert not place.exists()


def test_a_file_comes_whole(server: Server, tmp_path: Path) -> None:
    server.files["/a"] = Served(CONTENT)
    told: list[tuple[int, int | None]] = []
    seen = download(wanted(server), tmp_path / "a", lambda done, total: told.append((done, total)))
    assert (tmp_path / "a").read_bytes() == CONTENT
    assert (seen.sha256, seen.bytes) == (SHA, len(CONTENT))
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert told == sorted(told)
    assert [file.name for file in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("way", [{"length": False}, {"chunked": True}, {"etag": None}], ids=str)
def test_a_server_may_say_little(server: Server, tmp_path: Path, way: dict[str, Any]) -> None:
    server.files["/a"] = Served(CONTENT, **way)
    assert download(wanted(server), tmp_path / "a").sha256 == SHA
    assert download(wanted(server, sha256=None, bytes=None), tmp_path / "b").sha256 == SHA


def test_a_cut_connection_is_gone_on_with(server: Server, tmp_path: Path) -> None:
    server.files["/a"] = Served(CONTENT, cuts=[700_000, 600_000])
    download(wanted(server), tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == CONTENT
    assert server.asked == [("/a", None), ("/a", "bytes=700000-"), ("/a", "bytes=1300000-")]


def test_an_interrupted_download_is_gone_on_with_by_the_next_call(server: Server, tmp_path: Path) -> None:
    server.files["/a"] = Served(CONTENT, cuts=[700_000])

    def interrupt(done: int, total: int | None) -> None:
        if done >= 500_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(wanted(server), tmp_path / "a", interrupt)
    half = (tmp_path / "a.part").stat().st_size
    assert 500_000 <= half <= 700_000
    server.files["/a"].cuts = []
    download(wanted(server), tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == CONTENT
    assert server.asked[-1] == ("/a", f"bytes={half}-")


@pytest.mark.parametrize("sha", [SHA, None], ids=["known", "unknown"])
def test_a_server_without_ranges_begins_anew(server: Server, tmp_path: Path, sha: str | None) -> None:
    server.files["/a"] = Served(CONTENT, ranges=False, cuts=[700_000])
    assert download(wanted(server, sha256=sha), tmp_path / "a").sha256 == SHA


def test_a_file_that_changed_is_begun_anew(server: Server, tmp_path: Path) -> None:
    server.files["/a"] = Served(b"x" * len(CONTENT), etag='"0"', cuts=[700_000])
    with pytest.raises(CorpusError, match="in a row"):
        download(wanted(server, attempts=1), tmp_path / "a")
    assert (tmp_path / "a.part").stat().st_size == 700_000
    server.files["/a"] = Served(CONTENT)
    assert download(wanted(server, sha256=None), tmp_path / "a").sha256 == SHA
    assert (tmp_path / "a").read_bytes() == CONTENT


def test_a_part_of_another_file_that_no_server_names_is_found_out_by_its_checksum(
    server: Server, tmp_path: Path
) -> None:
    server.files["/a"] = Served(b"x" * len(CONTENT), etag=None, cuts=[700_000])
    with pytest.raises(CorpusError, match="in a row"):
        download(wanted(server, attempts=1), tmp_path / "a")
    server.files["/a"] = Served(CONTENT, etag=None)
    assert download(wanted(server), tmp_path / "a").sha256 == SHA
    assert server.asked[-2:] == [("/a", "bytes=700000-"), ("/a", None)]


@pytest.mark.parametrize(
    ("content", "digest"),
    [
        (b"", "git:e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"),  # the blob that git says an empty file is
        (b"abc", "git:f2ba8f84ab5c1bce84a7b441cb1959cfc7093b7f"),
        (b"abc", "sha1:a9993e364706816aba3e25717850c26c9cd0d89d"),  # FIPS 180
        (b"abc", "md5:900150983cd24fb0d6963f7d28e17f72"),  # RFC 1321
    ],
)
def test_digests_of_other_functions(content: bytes, digest: str, server: Server, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(content)
    assert digest_of(tmp_path / "a", digest) == digest
    server.files["/b"] = Served(content)
    seen = download(wanted(server, "/b", sha256=None, bytes=None, digest=digest), tmp_path / "b")
    assert seen.sha256 == hashlib.sha256(content).hexdigest()
    server.files["/c"] = Served(content + b"d")
    with pytest.raises(CorpusError, match=f"has digest {digest.partition(':')[0]}:.*, and the card says {digest}: it"):
        download(wanted(server, "/c", sha256=None, bytes=None, digest=digest), tmp_path / "c")
    assert not (tmp_path / "c").exists()


def test_a_part_of_another_file_is_found_out_by_another_digest(server: Server, tmp_path: Path) -> None:
    server.files["/a"] = Served(b"x" * len(CONTENT), etag=None, cuts=[700_000])
    known: dict[str, Any] = {"sha256": None, "bytes": None, "digest": f"md5:{hashlib.md5(CONTENT).hexdigest()}"}
    with pytest.raises(CorpusError, match="in a row"):
        download(wanted(server, attempts=1, **known), tmp_path / "a")
    server.files["/a"] = Served(CONTENT, etag=None)
    assert download(wanted(server, **known), tmp_path / "a").sha256 == SHA
    assert server.asked[-2:] == [("/a", "bytes=700000-"), ("/a", None)]


def test_a_damaged_note_or_part_does_no_harm(server: Server, tmp_path: Path) -> None:
    server.files["/a"] = Served(CONTENT)
    (tmp_path / "a.part").write_bytes(b"old")
    (tmp_path / "a.part.json").write_text("{")
    assert download(wanted(server), tmp_path / "a").sha256 == SHA
    (tmp_path / "b.part").write_bytes(CONTENT + b"more")
    (tmp_path / "b.part.json").write_text(
        f'{{"url": "{server.url}/a", "etag": "\\"1\\"", "modified": null, "total": {len(CONTENT)}}}'
    )
    assert download(wanted(server), tmp_path / "b").sha256 == SHA


@pytest.mark.parametrize("known", [{"bytes": None}, {}], ids=["size unknown", "size known"])
def test_another_content_is_not_kept(server: Server, tmp_path: Path, known: dict[str, Any]) -> None:
    server.files["/a"] = Served(CONTENT[:-1] + b"x")
    refused(server, tmp_path / "a", f"and the card says {SHA}: it was changed or damaged, and is not kept", **known)
    assert not list(tmp_path.iterdir())


def test_another_size_is_known_before_it_comes(server: Server, tmp_path: Path) -> None:
    server.files["/a"] = Served(CONTENT + b"x")
    refused(server, tmp_path / "a", f"has {len(CONTENT) + 1} bytes, and the card says {len(CONTENT)}: it was changed")


def test_errors_of_the_server(server: Server, tmp_path: Path) -> None:
    refused(server, tmp_path / "a", re.escape("the server says 404 Not Found"))
    assert len(server.asked) == 1, "what is not there is not asked for again"
    server.files["/a"] = Served(CONTENT, errors=[500, 503, 429])
    assert download(wanted(server), tmp_path / "a").sha256 == SHA
    server.files["/b"] = Served(CONTENT, errors=[500] * 9)
    with pytest.raises(CorpusError, match=r"could not be fetched: the server says 500 .*, 3 times in a row"):
        download(wanted(server, "/b", attempts=3), tmp_path / "b")


def test_a_connection_that_always_breaks_ends(server: Server, tmp_path: Path) -> None:
    server.files["/a"] = Served(CONTENT, ranges=False, cuts=[1000] * 20)
    refused(server, tmp_path / "a", "the connection ended after 1000 of 2048000 bytes, 3 times in a row", attempts=3)


def test_redirects(server: Server, tmp_path: Path) -> None:
    server.files["/a"] = Served(redirect="/b")
    server.files["/b"] = Served(redirect=f"{server.url}/c")
    server.files["/c"] = Served(CONTENT)
    assert download(wanted(server), tmp_path / "a").sha256 == SHA
    server.files["/d"] = Served(redirect="/d")
    with pytest.raises(CorpusError, match="could not be fetched"):
        download(wanted(server, "/d"), tmp_path / "d")


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/a", "data:,a", "javascript:1"])
def test_a_redirect_to_another_kind_of_address_is_refused(server: Server, tmp_path: Path, target: str) -> None:
    server.files["/a"] = Served(redirect=target)
    refused(server, tmp_path / "a", re.escape(f"redirects to {target}, which is not an http or https URL; this is re"))


def test_a_redirect_to_what_is_not_encrypted_is_refused() -> None:
    """Of addresses, as a server with a certificate would have to be trusted first."""
    asked = Request("https://a/b")
    with pytest.raises(CorpusError, match="https://a/b redirects to http://c, which is not https; this is refused"):
        Redirects().redirect_request(asked, io.BytesIO(), 302, "", HTTPMessage(), "http://c")
    onward = Redirects().redirect_request(asked, io.BytesIO(), 302, "", HTTPMessage(), "https://c")
    assert onward is not None
    assert onward.full_url == "https://c"


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://a/b", "/etc/passwd", ""])
def test_only_the_web_is_asked(tmp_path: Path, url: str) -> None:
    with pytest.raises(CorpusError, match="which is not an http or https URL"):
        download(Download(url), tmp_path / "a")


def test_without_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(
        CorpusError, match="could not be reached: Name or service not known; this machine seems to be off"
    ):
        download(Download("http://nowhere.invalid/a"), tmp_path / "a")


def test_a_server_that_does_not_answer(tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/a"
        with pytest.raises(CorpusError, match="timed out, 2 times in a row"):
            download(Download(url, attempts=2, timeout=0.05, pause=0.001), tmp_path / "a")


def test_a_full_disk_is_known_before_and_during(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.files["/a"] = Served(CONTENT)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
    refused(
        server,
        tmp_path / "a",
        "/a: cannot write: 2048000 bytes are needed and 1000 are free; make room, then st",
    )
    monkeypatch.undo()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    message = r"/a: cannot write: No space left on device: it needs more than the [\d,]+ bytes that are free; make room"
    refused(server, tmp_path / "a", message)
    assert (tmp_path / "a.part").stat().st_size == len(CONTENT)


def test_a_folder_that_may_not_be_written(server: Server, tmp_path: Path) -> None:
    server.files["/a"] = Served(CONTENT)
    (tmp_path / "a.part").mkdir()
    with pytest.raises(
        CorpusError, match=r"/a.part: cannot write: this is a folder that structpe did not make, .*; mo"
    ):
        download(wanted(server), tmp_path / "a")
    (tmp_path / "b").mkdir()
    with pytest.raises(
        CorpusError, match=r"/b.part: cannot write: .*; choose another place with --to, or check its permissions"
    ):
        download(wanted(server), tmp_path / "b")


@pytest.mark.parametrize(
    ("name", "make"),
    [(name, make) for name in ("a.part", "a.part.json") for make in FOREIGN if (name, make) != ("a.part.json", a_file)],
)
def test_what_has_the_name_of_a_part_and_is_none_stays(
    name: str, make: Callable[[Path], None], server: Server, tmp_path: Path
) -> None:
    server.files["/a"] = Served(CONTENT)
    make(tmp_path / name)
    before = contents(tmp_path)
    with pytest.raises(
        CorpusError, match=rf"/{name}: cannot write: this is a \w+ that structpe did not make, .*; move"
    ):
        download(wanted(server), tmp_path / "a")
    assert contents(tmp_path) == before


def test_the_note_of_a_process_killed_after_renaming_is_swept(server: Server, tmp_path: Path) -> None:
    server.files["/a"] = Served(CONTENT)
    moments = 0
    for _ in every_moment(lambda: download(wanted(server), tmp_path / "a")):
        download(wanted(server), tmp_path / "a") if not (tmp_path / "a").exists() else sweep_note(tmp_path / "a")
        assert [file.name for file in tmp_path.iterdir()] == ["a"]
        (tmp_path / "a").unlink()
        moments += 1
    assert moments > 3


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_process_that_ends_as_the_file_gets_its_name_leaves_nothing(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    server.files["/a"] = Served(CONTENT)
    replace = os.replace

    def ended(part: Path, place: Path) -> None:
        if after:
            replace(part, place)
        raise SystemExit(143)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", ended)
        with pytest.raises(SystemExit):
            download(wanted(server), tmp_path / "a")
    if not after:
        download(wanted(server), tmp_path / "a")
    assert [file.name for file in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == CONTENT
