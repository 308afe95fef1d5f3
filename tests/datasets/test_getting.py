"""Data sets in their folders: from a server, from local copies, interrupted, two at once, offline."""

from __future__ import annotations

import gzip
import hashlib
import io
import pickle
import re
import shutil
import socket
import threading
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from structpe.datasets import Corpus, CorpusError, Hooks, catalogue, find, get, verify
from structpe.datasets.catalogue import Card, card_of, read_card
from structpe.datasets.downloads import Download
from structpe.datasets.fetching import folder_of, root
from structpe.errors import ConfigError
from structpe.system.files import MARK
from tests.datasets.serving import Served, Server
from tests.datasets.test_ogb import check_molecules, molecules

LINES = {"train.txt": b"a b\nc d\n", "test.txt": b"e\n"}
QUICK = Download("", attempts=2, pause=0.001, timeout=5)


def zipped(files: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as content:
        for name, data in files.items():
            content.writestr(name, data)
    return target.getvalue()


def entry(name: str, content: bytes, **more: Any) -> dict[str, Any]:
    return {"name": name, "sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content), **more}


def plain(files: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    texts = {"description": "d.", "licence": "MIT", "citation": "c.", "reader": "tokens", "notes": "Ask its owner."}
    return {"name": "set", "kind": "sequences", **texts, "files": files, **more}


SPLITS = {"train": {"file": "train.txt", "items": 2}, "test": {"file": "test.txt", "items": 1}}


@pytest.fixture
def carded(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes a card be the one of the set ``set``."""

    def put(data: dict[str, Any]) -> None:
        card_of(data, "test")
        monkeypatch.setattr(catalogue, "_data", lambda: {"set": data})

    return put


@pytest.fixture
def two_files(carded: Any, server: Server) -> Server:
    """A set of two files with checksums, one in each part, which the server has."""
    files = [entry(name, content, part=name.partition(".")[0]) for name, content in LINES.items()]
    carded(plain(files, base=f"{server.url}/", splits=SPLITS))
    server.files |= {f"/{name}": Served(content) for name, content in LINES.items()}
    return server


def fetched(to: Path, **given: Any) -> tuple[Corpus, list[str]]:
    said: list[str] = []
    return get("set", to, hooks=Hooks(say=said.append, download=QUICK), **given), said


def test_a_set_is_fetched_and_read(two_files: Server, tmp_path: Path) -> None:
    corpus, said = fetched(tmp_path)
    assert corpus.folder == tmp_path / "set"
    assert [item.structure.nodes for item in corpus.read("train")] == [("a", "b"), ("c", "d")]
    assert [item.structure.nodes for item in corpus.stream("test")] == [("e",)]
    assert said == [f"{name}: from {two_files.url}/{name}" for name in LINES]
    report = verify(corpus, read=True)
    assert report.good
    assert {state.word for state in (*report.files, *report.splits)} == {"ok"}


def test_what_is_there_is_not_fetched_again(two_files: Server, tmp_path: Path) -> None:
    fetched(tmp_path)
    asked = len(two_files.asked)
    assert fetched(tmp_path)[1] == []
    (tmp_path / "set" / "test.txt").unlink()
    assert fetched(tmp_path)[1] == [f"test.txt: from {two_files.url}/test.txt"]
    (tmp_path / "set" / "test.txt").write_bytes(b"longer than before\n")
    fetched(tmp_path)
    assert (tmp_path / "set" / "test.txt").read_bytes() == LINES["test.txt"]
    assert len(two_files.asked) == asked + 2


def test_a_newer_card_fetches_what_it_means(two_files: Server, tmp_path: Path, carded: Any) -> None:
    fetched(tmp_path)
    newer = {**LINES, "test.txt": b"f\n"}
    carded(plain([entry(name, text) for name, text in newer.items()], base=f"{two_files.url}/", splits=SPLITS))
    two_files.files["/test.txt"] = Served(newer["test.txt"], etag='"2"')
    assert fetched(tmp_path)[1] == [f"test.txt: from {two_files.url}/test.txt"]
    assert (tmp_path / "set" / "test.txt").read_bytes() == newer["test.txt"]


def test_what_somebody_put_there_is_taken_if_it_is_right(two_files: Server, tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "train.txt").write_bytes(LINES["train.txt"])
    (tmp_path / "set" / "test.txt").write_bytes(b"?\n")
    assert fetched(tmp_path)[1] == [f"test.txt: from {two_files.url}/test.txt"]


def test_only_a_part_is_fetched(two_files: Server, tmp_path: Path) -> None:
    corpus, _ = fetched(tmp_path, parts=["test"])
    assert not corpus.is_there
    assert len(corpus.read("test")) == 1
    message = f"there is no file train.txt in {corpus.folder}; fetch it: structpe data get set"
    with pytest.raises(CorpusError, match=re.escape(message)):
        corpus.read("train")
    assert fetched(tmp_path, parts=["train.txt"])[0].is_there
    with pytest.raises(ConfigError, match=r"set has no part 'tset'; its parts and files: train, test, train.txt, test"):
        fetched(tmp_path, parts=["tset"])


def test_an_interrupted_get_goes_on(two_files: Server, tmp_path: Path) -> None:
    two_files.files["/test.txt"].errors = [500, 500]
    with pytest.raises(CorpusError, match="2 times in a row"):
        fetched(tmp_path)
    assert fetched(tmp_path)[1] == [f"test.txt: from {two_files.url}/test.txt"]


def test_offline_one_error_says_all(carded: Any, tmp_path: Path) -> None:
    carded(plain([entry("a.txt", b"a\n", url="http://127.0.0.1:1/a.txt")], splits={"all": {"file": "a.txt"}}))
    with pytest.raises(CorpusError) as caught:
        fetched(tmp_path)
    assert str(caught.value) == (
        "http://127.0.0.1:1/a.txt could not be fetched: Connection refused, 2 times in a row. To use a local copy, "
        "fetch http://127.0.0.1:1/a.txt elsewhere and give the command: "
        f"structpe data get set --to {tmp_path} --from a.txt"
    )
    (tmp_path / "brought").write_bytes(b"a\n")
    corpus, said = fetched(tmp_path, source=tmp_path / "brought")
    assert said == [f"a.txt: from {tmp_path / 'brought'}"]
    assert len(corpus.read("all")) == 1


def test_offline_a_set_of_several_files_asks_for_a_folder(
    two_files: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(CorpusError) as caught:
        fetched(tmp_path)
    assert str(caught.value) == (
        f"{two_files.url}/train.txt could not be reached: Name or service not known; this machine seems to be offline. "
        f"To use a local copy, fetch {two_files.url}/train.txt elsewhere, with the other files that 'structpe data "
        f"show set' lists, into a folder, and give the command: structpe data get set --to {tmp_path} --from FOLDER"
    )


def test_a_local_folder_is_searched(two_files: Server, tmp_path: Path) -> None:
    deep = tmp_path / "mine" / "deep"
    deep.mkdir(parents=True)
    for name, content in LINES.items():
        (deep / f"my-{name}").write_bytes(content)
    (tmp_path / "mine" / "other.txt").write_bytes(b"12345678")  # of the same size, with another checksum
    corpus, _ = fetched(tmp_path / "to", source=tmp_path / "mine")
    assert verify(corpus, read=True).good
    assert not two_files.asked, "with --from nothing is fetched"


def test_a_local_copy_that_is_wrong_or_incomplete_is_refused(two_files: Server, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "train.txt").write_bytes(LINES["train.txt"])
    with pytest.raises(CorpusError, match=r"mine lacks files of set: test.txt. Give the folder that h"):
        fetched(tmp_path, source=mine)
    (mine / "test.txt").write_bytes(b"?\n")
    with pytest.raises(
        CorpusError, match=r"mine/test.txt: it has sha256 \w+, and the card of set says \w+: another ver"
    ):
        fetched(tmp_path, source=mine)
    assert not (tmp_path / "set" / "test.txt").exists()
    with pytest.raises(CorpusError, match="none: there is no such file or folder; check --from"):
        fetched(tmp_path, source=tmp_path / "none")


def test_what_has_no_address_needs_a_local_copy(carded: Any, tmp_path: Path) -> None:
    carded(plain([entry("a.txt", b"a\n", url=None)], splits={"all": {"file": "a.txt"}}))
    message = (
        f"get a.txt from its owner and give the command: structpe data get set --to {tmp_path} --from a.txt. Ask its"
    )
    with pytest.raises(CorpusError, match=re.escape(message)):
        fetched(tmp_path)


def test_without_a_checksum_the_first_fetch_is_trusted_and_later_ones_are_not(
    carded: Any, server: Server, tmp_path: Path
) -> None:
    carded(plain([{"name": "a.txt", "url": f"{server.url}/a"}], splits={"all": {"file": "a.txt"}}))
    server.files["/a"] = Served(b"a\n")
    corpus, said = fetched(tmp_path)
    sha = hashlib.sha256(b"a\n").hexdigest()
    assert said[-1] == f"a.txt: the card has no checksum; sha256 {sha} is trusted on first use"
    assert [(state.word, state.detail) for state in verify(corpus).files] == [("as first seen", sha)]
    (corpus.folder / "a.txt").write_bytes(b"b\n")
    (state,) = verify(corpus).files
    assert state.word == "changed"
    assert state.detail.endswith(f"first seen was {sha}")
    (corpus.folder / ".structpe.json").write_text("[")
    assert [state.word for state in verify(corpus).files] == ["not checked"]
    (corpus.folder / "a.txt").unlink()
    assert [state.word for state in verify(corpus).files] == ["missing"]


ARCHIVE = zipped({"top/train.txt": LINES["train.txt"], "top/test.txt": LINES["test.txt"], "top/more/x": b"x"})


def an_archive(server: Server, **more: Any) -> dict[str, Any]:
    leaves = ["in/train.txt", "in/test.txt"]
    file = entry(
        "a.zip", ARCHIVE, url=f"{server.url}/a.zip", unpack="zip", strip=True, into="in", leaves=leaves, **more
    )
    return plain([file], splits={"train": {"file": "in/train.txt", "items": 2}})


def test_another_digest_is_as_good(carded: Any, server: Server, tmp_path: Path) -> None:
    """Fetched, brought along, read again: the digest of the card decides, as a sha256 does."""
    digest = f"md5:{hashlib.md5(b'a').hexdigest()}"
    card = {"name": "a.txt", "url": f"{server.url}/a", "digest": digest}
    carded(plain([card], splits={"all": {"file": "a.txt"}}))
    server.files["/a"] = Served(b"a")
    corpus, said = fetched(tmp_path)
    assert not [line for line in said if "trusted" in line]
    assert [state.word for state in verify(corpus).files] == ["ok"]
    (corpus.folder / "a.txt").write_bytes(b"b")
    (state,) = verify(corpus).files
    assert (state.word, state.detail) == (
        "changed",
        f"digest md5:{hashlib.md5(b'b').hexdigest()}, the card says {digest}",
    )
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a.txt").write_bytes(b"b")
    with pytest.raises(
        CorpusError, match=r"a.txt: it has digest md5:\w+, and the card of set says md5:\w+: another ver"
    ):
        fetched(tmp_path / "other", source=tmp_path / "mine")
    (tmp_path / "mine" / "a.txt").write_bytes(b"a")
    assert fetched(tmp_path / "other", source=tmp_path / "mine")[0].is_there


def test_an_archive_of_another_digest_is_not_used(carded: Any, tmp_path: Path) -> None:
    """But what somebody has unpacked is, as for one of another sha256."""
    archive = zipped(LINES)
    wrong = {"name": "a.zip", "digest": f"md5:{'0' * 32}", "unpack": "zip", "leaves": list(LINES)}
    carded(plain([wrong], splits=SPLITS))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a.zip").write_bytes(archive)
    with pytest.raises(CorpusError, match=r"mine lacks files of set: a\.zip"):
        fetched(tmp_path, source=tmp_path / "mine")
    for name, content in LINES.items():
        (tmp_path / "mine" / name).write_bytes(content)
    assert fetched(tmp_path, source=tmp_path / "mine")[0].is_there


def test_an_archive_is_unpacked_and_goes(carded: Any, server: Server, tmp_path: Path) -> None:
    carded(an_archive(server))
    server.files["/a.zip"] = Served(ARCHIVE)
    corpus, _ = fetched(tmp_path)
    assert len(corpus.read("train")) == 2
    assert {path.name for path in corpus.folder.iterdir() if not path.name.startswith(".")} == {"in"}
    assert (corpus.folder / "in" / "more" / "x").exists()
    assert verify(corpus, read=True).good
    assert fetched(tmp_path)[1] == []


@pytest.mark.parametrize("way", ["archive", "unpacked"])
def test_an_archive_may_be_brought_along_packed_or_not(carded: Any, server: Server, tmp_path: Path, way: str) -> None:
    carded(an_archive(server))
    mine = tmp_path / "mine"
    mine.mkdir()
    if way == "archive":
        (mine / "a.zip").write_bytes(ARCHIVE)
    else:
        for name, content in LINES.items():
            (mine / name).write_bytes(content)
    corpus, _ = fetched(tmp_path, source=mine)
    assert len(corpus.read("train")) == 2
    assert (mine / "a.zip").exists() == (way == "archive"), "what is the user's stays"


def test_unpacking_that_was_interrupted_is_done_again(carded: Any, server: Server, tmp_path: Path) -> None:
    carded(an_archive(server))
    for name in (".unpacking.tmp/new", ".unpacking-mine"):
        (tmp_path / "set" / name).mkdir(parents=True)
    (tmp_path / "set" / ".unpacking.tmp" / MARK).touch()
    (tmp_path / "set" / "in").mkdir()
    (tmp_path / "set" / "in" / "train.txt").write_bytes(LINES["train.txt"])
    (tmp_path / "set" / "a.zip").write_bytes(ARCHIVE)
    corpus, _ = fetched(tmp_path)
    assert verify(corpus, read=True).good
    assert not (corpus.folder / ".unpacking.tmp").exists()
    assert (corpus.folder / ".unpacking-mine").exists()
    assert not server.asked, "the archive was whole already"


def test_another_archive_is_refused(carded: Any, server: Server, tmp_path: Path) -> None:
    other = zipped({"top/other.txt": b""})
    carded(
        plain([{"name": "a.zip", "url": f"{server.url}/a.zip", "unpack": "zip", "strip": True, "leaves": ["b.txt"]}])
    )
    server.files["/a.zip"] = Served(other)
    with pytest.raises(CorpusError, match=r"the archive has no b.txt; it is not the one that the card describes"):
        fetched(tmp_path)


EVIL = {
    "a file of the set": "b.txt",
    "half of one": "b.txt.part",
    "what is known of half of one": "b.txt.part.json",
    "another archive": "other.zip",
    "what another leaves": "left.txt",
}


@pytest.mark.parametrize("name", EVIL)
@pytest.mark.parametrize("into", ["", "in"])
def test_an_archive_takes_no_place_of_another_file(
    carded: Any, server: Server, tmp_path: Path, name: str, into: str
) -> None:
    """Nobody knows a checksum of it; the files beside it are verified."""
    place = f"{into}/".lstrip("/")
    other = zipped({"left.txt": b"good"})
    carded(
        plain(
            [
                entry(f"{place}b.txt", b"good", url=f"{server.url}/b"),
                entry(
                    f"{place}other.zip",
                    other,
                    url=f"{server.url}/other",
                    unpack="zip",
                    into=into,
                    leaves=[f"{place}left.txt"],
                ),
                {
                    "name": "a.zip",
                    "url": f"{server.url}/a.zip",
                    "unpack": "zip",
                    "into": into,
                    "leaves": [f"{place}a.txt"],
                },
            ],
            splits={"train": {"file": f"{place}b.txt", "items": 1}},
        )
    )
    server.files |= {"/b": Served(b"good"), "/other": Served(other)}
    server.files["/a.zip"] = Served(zipped({"a.txt": b"a", EVIL[name]: b"evil"}))
    with pytest.raises(
        CorpusError, match=rf"refused: it holds '{place}{EVIL[name]}', which is another file of the set"
    ):
        fetched(tmp_path)
    found = {path.name: path.read_bytes() for path in (tmp_path / "set").rglob("*.txt*")}
    assert {found["b.txt"], found["left.txt"]} == {b"good"}
    assert b"evil" not in found.values()


def test_only_what_is_wanted_leaves_an_archive(carded: Any, server: Server, tmp_path: Path) -> None:
    """With a folder of its own all of it, otherwise what the card names: not a record, not an archive's remarks."""
    carded(
        plain(
            [
                {"name": "a.zip", "url": f"{server.url}/a", "unpack": "zip", "leaves": ["a.txt"]},
                {"name": "c.zip", "url": f"{server.url}/c", "unpack": "zip", "into": "in", "leaves": ["in/c.txt"]},
            ],
            splits={"train": {"file": "a.txt", "items": 1}},
        )
    )
    record = b'{"files": {"b.txt": {"sha256": "0", "bytes": 4}}}'
    server.files["/c"] = Served(zipped({"c.txt": b"c", "more/d": b"d", ".structpe.json": record}))
    server.files["/a"] = Served(zipped({"a.txt": b"a", "README": b"", ".structpe.json": record}))
    corpus, _ = fetched(tmp_path)
    found = {path.relative_to(corpus.folder).as_posix() for path in corpus.folder.rglob("*") if path.is_file()}
    assert found - {".structpe.lock"} == {"a.txt", ".structpe.json", "in/c.txt", "in/more/d", "in/.structpe.json"}
    assert b"b.txt" not in (corpus.folder / ".structpe.json").read_bytes()
    assert verify(corpus).good


def test_compressed_files_and_pickles(carded: Any, server: Server, tmp_path: Path) -> None:
    packed, numbers = gzip.compress(LINES["train.txt"]), pickle.dumps({"train": np.arange(3)}, protocol=4)
    carded(
        plain(
            [
                entry("train.txt.gz", packed, url=f"{server.url}/gz", unpack="gz", leaves=["train.txt"]),
                entry("n.pickle", numbers, url=f"{server.url}/n", unpack="numbers", leaves=["n.npz"]),
            ],
            splits={"train": {"file": "train.txt", "items": 2}},
        )
    )
    server.files |= {"/gz": Served(packed), "/n": Served(numbers)}
    corpus, _ = fetched(tmp_path)
    assert verify(corpus, read=True).good
    with np.load(corpus.folder / "n.npz") as found:
        assert found["train"].tolist() == [0, 1, 2]


def test_a_release_of_files_of_unknown_names(carded: Any, tmp_path: Path) -> None:
    release = tmp_path / "release" / "inner" / "data" / "train"
    release.mkdir(parents=True)
    for name in ("b.txt", "a.txt"):
        (release / name).write_text(f"{name}\n")
    carded(plain([{"name": "data/train/*.txt"}], splits={"train": {"file": "data/train/*.txt", "items": 2}}))
    corpus, _ = fetched(tmp_path, source=tmp_path / "release")
    assert [item.structure.nodes for item in corpus.read("train")] == [("a.txt",), ("b.txt",)]
    assert verify(corpus, read=True).good
    assert Corpus(corpus.card, tmp_path / "release" / "inner").is_there, "the release can be read where it lies"
    (tmp_path / "release" / "again" / "data" / "train").mkdir(parents=True)
    (tmp_path / "release" / "again" / "data" / "train" / "a.txt").touch()
    with pytest.raises(
        CorpusError, match=r"files data/train/\*.txt are in several folders, such as .*; give one of them"
    ):
        fetched(tmp_path / "other", source=tmp_path / "release")


def test_several_files_of_a_name_are_not_guessed(carded: Any, tmp_path: Path) -> None:
    carded(plain([{"name": "a.txt", "url": "http://127.0.0.1:1/a"}], splits={"all": {"file": "a.txt"}}))
    for folder in ("x", "y"):
        (tmp_path / "mine" / folder).mkdir(parents=True)
        (tmp_path / "mine" / folder / "a.txt").write_text(folder)
    with pytest.raises(CorpusError, match=r"several files could be meant: .*; give one of them, or its folder"):
        fetched(tmp_path, source=tmp_path / "mine")
    assert fetched(tmp_path, source=tmp_path / "mine" / "y")[0].read("all")[0].structure.nodes == ("y",)


def test_two_at_once_wait_for_each_other(two_files: Server, tmp_path: Path) -> None:
    threads = [threading.Thread(target=fetched, args=(tmp_path,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(path for path, _ in two_files.asked) == ["/test.txt", "/train.txt"]


def test_where_sets_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STRUCTPE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("sys.platform", "linux")
    assert root() == tmp_path / "cache" / "structpe" / "data"
    monkeypatch.setattr("sys.platform", "darwin")
    assert root() == Path.home() / "Library" / "Caches" / "structpe" / "data"
    monkeypatch.setenv("STRUCTPE_DATA", str(tmp_path))
    assert root() == tmp_path
    assert root("a") == Path("a")
    assert folder_of(catalogue.card("ud:French-GSD:fr")) == tmp_path / "ud-French-GSD-fr"
    assert find("cora").folder == tmp_path / "cora"


def test_wrong_questions_are_answered(two_files: Server, tmp_path: Path) -> None:
    corpus, _ = fetched(tmp_path)
    with pytest.raises(ConfigError, match=r"there is no split of set named 'trian'. Did you mean 'train'"):
        corpus.read("trian")
    with pytest.raises(ConfigError, match="no benchmark reads set; read its splits: train, test"):
        corpus.benchmark()
    with pytest.raises(CorpusError, match="there is no such folder; fetch the set: structpe data get cora"):
        verify(Corpus(catalogue_card(), tmp_path / "none"))
    with pytest.raises(ConfigError, match=r"there is no benchmark of cora named 'coar'. Did you mean 'cora'"):
        Corpus(catalogue_card(), tmp_path).benchmark("coar")
    with pytest.raises(CorpusError, match=r"split 'train' of cora is read by the benchmark cora; call .benchmark\(\)"):
        Corpus(catalogue_card(), tmp_path).read("train")


def catalogue_card() -> Card:
    """A card that is shipped, where :func:`catalogue.card` gives that of the test."""
    return read_card(Path(catalogue.__file__).parent / "cards" / "cora.yaml")


def test_a_folder_that_may_not_be_written(two_files: Server, tmp_path: Path) -> None:
    (tmp_path / "set").write_text("a file")
    with pytest.raises(
        CorpusError, match=r"set: cannot write: File exists; move it elsewhere, or choose another place with"
    ):
        fetched(tmp_path)


@pytest.mark.filterwarnings("ignore:Weights only load failed")  # PyG says it of its own file
def test_a_set_of_tu_dortmund_lies_where_pyg_looks_for_it(tmp_path: Path) -> None:
    files = {"A": "1, 2\n2, 1\n3, 4\n4, 3\n", "graph_indicator": "1\n1\n2\n2\n", "graph_labels": "0\n1\n"}
    (tmp_path / "S.zip").write_bytes(zipped({f"S/S_{name}.txt": text.encode() for name, text in files.items()}))
    found = get("tu:S", tmp_path, tmp_path / "S.zip")
    assert found.folder == tmp_path / "tu-S"
    assert [item.metadata["label"] for item in found.read("all")] == [0, 1]
    from torch_geometric.datasets import TUDataset

    assert len(TUDataset(str(found.folder), "S")) == 2


def test_a_set_of_ogb_lies_where_ogb_looks_for_it(tmp_path: Path) -> None:
    molecules(tmp_path / "hiv")
    shutil.make_archive(str(tmp_path / "hiv"), "zip", tmp_path, "hiv")
    found = get("ogbg-molhiv", tmp_path / "to", tmp_path / "hiv.zip")
    check_molecules(found.benchmark())
    assert {state.word for state in verify(found).files} == {"as first seen"}
