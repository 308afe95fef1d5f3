"""What stands in an input folder is read, or told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from structpe.errors import ReadError
from structpe.formats import read


def folder(place: Path) -> Path:
    (place / "in" / "deep").mkdir(parents=True)
    (place / "in" / "a.tokens").write_text("a b\n")
    (place / "in" / "deep" / "b.tokens").write_text("c d\n")
    return place / "in"


def nodes(place: Path, reader: str = "tokens") -> list[tuple[str, ...]]:
    return [item.structure.nodes for item in read(place, reader)]


@pytest.mark.parametrize("name", ["c.tokens", "deep/c.tokens", "train"])
def test_a_link_that_leads_nowhere_is_named(name: str, tmp_path: Path) -> None:
    """As of DVC or git-annex, where the content was not fetched."""
    inside = folder(tmp_path)
    (inside / name).symlink_to("objects/ab12")
    with pytest.raises(ReadError, match=rf"{name}: the link leads to objects/ab12, where nothing is; fetch that fi"):
        read(inside, "tokens")
    (inside / name).rename(inside / "notes.md")  # of no reader
    (inside / ".c.tokens").symlink_to("none")  # hidden, as files are that are left out
    assert nodes(inside) == [("a", "b"), ("c", "d")]


def test_links_to_files_and_folders_are_followed_and_each_folder_is_read_once(tmp_path: Path) -> None:
    inside, disk = folder(tmp_path), tmp_path / "disk"
    disk.mkdir()
    (disk / "d.tokens").write_text("e f\n")
    (disk / "again").symlink_to(inside)
    (inside / "far").symlink_to(disk)
    (inside / "e.tokens").symlink_to(disk / "d.tokens")
    assert nodes(inside) == [("a", "b"), ("c", "d"), ("e", "f"), ("e", "f")]


@pytest.mark.parametrize("inner", [True, False])
def test_a_pipe_is_named(inner: bool, tmp_path: Path) -> None:
    inside = folder(tmp_path)
    os.mkfifo(inside / "p.tokens")
    with pytest.raises(ReadError, match=r"p\.tokens: this is a pipe or a device, which cannot be read twice; save"):
        read(inside if inner else inside / "p.tokens", "tokens")


def test_a_device_and_a_stream_are_named() -> None:
    for place in ("/dev/null", f"/dev/fd/{os.pipe()[0]}"):
        with pytest.raises(ReadError, match=rf"{place}: this is a pipe or a device"):
            read(place, "tokens")


def test_a_folder_that_cannot_be_listed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may list every folder, so the system is made to refuse."""
    inside, scandir = folder(tmp_path), os.scandir

    def refuse(place: str) -> object:
        if str(place).endswith("deep"):
            raise PermissionError(13, "Permission denied", str(place))
        return scandir(place)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(ReadError, match=r"in/deep: the file cannot be read: Permission denied; check its permissions"):
        read(inside, "tokens")
