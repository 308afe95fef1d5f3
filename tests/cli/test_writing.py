"""One writer per output: every command that writes says so where another one is at work."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from structpe.system import files
from structpe.system.files import lock
from tests.cli.running import complaint
from tests.datasets import SAMPLES

TREES = str(SAMPLES / "trees_sample" / "sample.conllu")
WRITES = {
    "convert": (["convert", TREES], "out.amr"),
    "show": (["show", TREES, "--out"], "out.png"),
    "page": (["show", TREES, "--out"], "out.html"),
    "figure": (
        ["figure", "pattern", "--position", "t5", "--length", "8", "--width", "8", "--heads", "1", "--out"],
        "out.svg",
    ),
}


@pytest.mark.parametrize("command", WRITES)
def test_a_second_writer_is_refused_and_nothing_is_touched(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "PATIENCE", 0.0)
    words, name = WRITES[command]
    out = tmp_path / name
    out.write_text("before")
    with lock(out):
        said = complaint(*words, out, code=1)
    assert said == f"{out}: another writer is at work there; wait until it has ended, or choose another place"
    assert out.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("command", [*WRITES, "encode"])
def test_a_folder_that_is_read_only_is_told_with_the_output(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, *args: Any, **options: Any) -> None:
        if self.name.endswith(".tmp"):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(self))
        mkdir(self, *args, **options)

    mkdir = Path.mkdir
    monkeypatch.setattr(Path, "mkdir", refuse)
    words, name = WRITES.get(command, (["encode", TREES, "--encoding", "depth", "--out"], "out"))
    said = complaint(*words, tmp_path / name, code=1)
    place = tmp_path / name
    assert said == f"{place}: its folder cannot be written to (Read-only file system); choose another place"
