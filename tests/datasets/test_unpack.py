"""Archives: good ones are unpacked, hostile ones leave nothing outside and are refused in words."""

from __future__ import annotations

import gzip
import io
import pickle
import stat
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from structpe.datasets import CorpusError, archives
from structpe.datasets.archives import unpack, unpack_gz
from structpe.datasets.pickles import pickled_numbers
from structpe.errors import ReadError
from tests.examples import examples


def a_zip(folder: Path, files: dict[str, bytes], **options: int) -> Path:
    file = folder / "a.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as content:
        for name, data in files.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = options.get("mode", stat.S_IFREG | 0o644) << 16
            content.writestr(info, data, zipfile.ZIP_DEFLATED)
    return file


def a_tar(folder: Path, files: dict[str, bytes], kind: bytes = tarfile.REGTYPE) -> Path:
    file = folder / "a.tar.gz"
    with tarfile.open(file, "w:gz") as content:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.type, info.size, info.linkname = kind, len(data), "/etc/passwd"
            content.addfile(info, io.BytesIO(data))
    return file


def packed(kind: str, folder: Path, files: dict[str, bytes]) -> Path:
    return (a_zip if kind == "zip" else a_tar)(folder, files)


KINDS = pytest.mark.parametrize("kind", ["zip", "tar.gz"])


@KINDS
def test_an_archive_is_unpacked(tmp_path: Path, kind: str) -> None:
    archive = packed(kind, tmp_path, {"top/a.txt": b"a", "top/b/c.txt": b"c" * 9, "__MACOSX/top/._a.txt": b"junk"})
    out = tmp_path / "out"
    assert unpack(archive, kind, out) == [out / "top" / "a.txt", out / "top" / "b" / "c.txt"]
    assert (out / "top" / "b" / "c.txt").read_bytes() == b"c" * 9
    assert unpack(archive, kind, tmp_path / "in", strip=True) == [tmp_path / "in/a.txt", tmp_path / "in/b/c.txt"]


@KINDS
@pytest.mark.parametrize("name", ["../a", "a/../../b", "/etc/a", "..", "a\\..\\b", "C:/a", "C:a"])
def test_a_way_out_is_refused_before_anything_is_written(tmp_path: Path, kind: str, name: str) -> None:
    archive = packed(kind, tmp_path, {"good.txt": b"a", name: b"b"})
    before = set(tmp_path.rglob("*"))
    with pytest.raises(CorpusError, match=r"a\.(zip|tar\.gz): the archive is refused: it holds .*; do not trust its"):
        unpack(archive, kind, tmp_path / "out")
    assert set(tmp_path.rglob("*")) == before


def test_what_the_filter_of_tarfile_refuses_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own rules refuse all that it refuses today; it may know more tomorrow."""

    def refuse(info: tarfile.TarInfo, folder: str) -> None:
        assert folder == str(tmp_path / "out")
        if info.name == "b.txt":
            raise tarfile.SpecialFileError(info)

    monkeypatch.setattr(tarfile, "data_filter", refuse)
    archive = a_tar(tmp_path, {"a.txt": b"a", "b.txt": b"b"})
    with pytest.raises(
        CorpusError, match=r"a\.tar\.gz: the archive is refused: it holds 'b.txt' is a special file; do not"
    ):
        unpack(archive, "tar.gz", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_in_a_tar_are_refused(tmp_path: Path, kind: bytes) -> None:
    with pytest.raises(CorpusError, match="refused: 'a' in it is a link or a device"):
        unpack(a_tar(tmp_path, {"a": b""}, kind), "tar.gz", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("mode", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO, stat.S_IFSOCK])
def test_links_and_devices_in_a_zip_are_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(CorpusError, match="refused: 'a' in it is a link or a device"):
        unpack(a_zip(tmp_path, {"a": b"/etc/passwd"}, mode=mode | 0o777), "zip", tmp_path / "out")


@KINDS
def test_what_swells_is_refused(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "SLACK", 1000)
    monkeypatch.setattr(archives, "RATIO", 10)
    archive = packed(kind, tmp_path, {"a": bytes(10_000_000)})
    with pytest.raises(CorpusError, match=r"refused: it grows from \d+ to 10000000 bytes"):
        unpack(archive, kind, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_swells_more_than_it_says_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "SLACK", 1000)
    monkeypatch.setattr(archives, "RATIO", 10)
    with gzip.open(tmp_path / "a.gz", "wb") as file:
        file.write(bytes(10_000_000))
    with pytest.raises(CorpusError, match=r"refused: it grows to more than \d+ bytes"):
        unpack_gz(tmp_path / "a.gz", tmp_path / "out")
    archive = a_zip(tmp_path, {"a": bytes(1_000_000)})
    content = archive.read_bytes()  # the size in the directory of the archive lies
    archive.write_bytes(content.replace((1_000_000).to_bytes(4, "little"), (10).to_bytes(4, "little")))
    with pytest.raises(CorpusError, match=r"archive is (refused|damaged)"):
        unpack(archive, "zip", tmp_path / "in")


@KINDS
def test_too_many_files_are_refused(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_FILES", 3)
    with pytest.raises(CorpusError, match="refused: it holds "):
        unpack(packed(kind, tmp_path, {str(i): b"" for i in range(9)}), kind, tmp_path / "out")


@KINDS
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_what_else_is_wrong_is_said(tmp_path: Path, kind: str) -> None:
    with pytest.raises(CorpusError, match="the archive is empty"):
        unpack(packed(kind, tmp_path, {}), kind, tmp_path / "out")
    with pytest.raises(CorpusError, match="the archive has more than one folder at its top: a, b"):
        unpack(packed(kind, tmp_path, {"a/c": b"", "b/c": b""}), kind, tmp_path / "out", strip=True)
    with pytest.raises(CorpusError, match="two of its files have one name"):
        unpack(packed(kind, tmp_path, {"a": b"", "./a": b""}), kind, tmp_path / "out")


@given(data=st.data())
@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.filterwarnings("ignore")
def test_a_damaged_archive_is_unpacked_or_refused_in_our_words(tmp_path: Path, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["zip", "tar.gz"]))
    archive = packed(kind, tmp_path, {"top/a.txt": b"abc" * 40, "top/b.txt": bytes(100)})
    content = bytearray(archive.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(content)))
        content[start : start + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=6))
    archive.write_bytes(bytes(content))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        try:
            written = unpack(archive, kind, tmp_path / "out", strip=True)
        except CorpusError as error:
            assert str(archive) in str(error) or "out" in str(error)  # noqa: PT017  unpacking is allowed to succeed
        else:
            assert all(path.resolve().is_relative_to(tmp_path / "out") for path in written)


def test_lists_of_numbers_are_read_without_running_anything(tmp_path: Path) -> None:
    lists = {"train": np.array([2, 0], dtype=np.int64), "val": np.array([1], dtype=np.int32), "test": [3]}
    (tmp_path / "a.pickle").write_bytes(pickle.dumps(lists, protocol=4))
    found = pickled_numbers(tmp_path / "a.pickle")
    assert {name: numbers.tolist() for name, numbers in found.items()} == {"train": [2, 0], "val": [1], "test": [3]}


class Harm:
    """Its pickle runs a command when it is read."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        import os

        return os.system, ("touch harmed",)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Harm(), "the file names posix.system, which no data needs; do not use it"),
        ({"a": Harm()}, "the file names posix.system"),
        ({"a": [1.5]}, "whole numbers were expected, the file holds: list"),
        ({"a": np.array([1.5])}, "whole numbers were expected, the file holds: array"),
        ({1: [1]}, "numbers by name were expected, the file holds: dict"),
        ([1], "numbers by name were expected, the file holds: list"),
        ({}, "numbers by name were expected, the file holds: dict"),
        ({"a": np.array([object()])}, "the file holds values of dtype 'O8', numbers are needed"),
    ],
)
def test_another_pickle_is_refused(
    tmp_path: Path, value: object, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.pickle").write_bytes(pickle.dumps(value, protocol=4))
    with pytest.raises(ReadError, match=message):
        pickled_numbers(tmp_path / "a.pickle")
    assert [file.name for file in tmp_path.iterdir()] == ["a.pickle"]


@pytest.mark.parametrize("content", [b"", b"abc", b"\x80\x04}", pickle.dumps({"a": np.arange(5)})[:-20]])
def test_a_damaged_pickle_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.pickle").write_bytes(content)
    with pytest.raises(ReadError, match="bring back the original"):
        pickled_numbers(tmp_path / "a.pickle")
