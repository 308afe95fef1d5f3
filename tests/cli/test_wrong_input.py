"""Plausible wrong input to every command: one line that says what to do, and nothing that is called a fault of ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import complaint
from tests.datasets import SAMPLES
from tests.together import together

TREES = str(SAMPLES / "trees_sample" / "sample.conllu")
EMPTY = "the path is empty; give a file or folder, '.' for the current one"
PIPE = "'-' is not a file, and pipes are not supported; give a file"
NO_RUN = "holds no config.yaml; give the folder of a run"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with an empty file, a folder, a file of no known suffix."""
    monkeypatch.chdir(tmp_path)
    Path("empty.conllu").touch()
    Path("folder").mkdir()
    Path("a.xyz").write_text("x", encoding="utf-8")
    Path("list.yaml").write_text("- a\n", encoding="utf-8")


@together(
    "words, code, message",
    [
        (["convert", "", "a.amr"], 2, f"convert: argument FILE: {EMPTY}; see"),
        (["convert", "-", "a.amr"], 2, f"argument FILE: {PIPE}"),
        (["convert", TREES, "-"], 2, f"argument OUT: {PIPE}"),
        (["convert", TREES, "folder"], 2, "OUT folder is a folder; give a file"),
        (["convert", "a.xyz", "b.amr"], 1, "no reader claims '.xyz' files; say which with reader= or --reader, one of"),
        (["convert", TREES, "b.xyz"], 1, "no writer claims '.xyz' files; say which with to= or --writer, one of"),
        (
            ["convert", "empty.conllu", "b.amr"],
            1,
            "empty.conllu: there is no item in the file; reader 'conllu' reads: ",
        ),
        (["encode", "", "--encoding", "depth", "--out", "o"], 2, EMPTY),
        (["encode", TREES, "--encoding", "depth", "--out", ""], 2, EMPTY),
        (["encode", "folder", "--encoding", "depth", "--out", "o"], 1, "the folder has no file whose name ends in"),
        (["show", "-"], 2, PIPE),
        (["show", TREES, "--out", "folder"], 2, "--out folder has no known suffix"),
        (
            ["show", TREES, "--position", "t5", "--seed", "-1"],
            2,
            "a seed is 0 or more and has at most 63 bits; given is -1",
        ),
        (["show", TREES, "--position", "t5", "--seed", "x"], 2, "a seed is a whole number; given is 'x'"),
        (["show", TREES, "--checkpoint", "a.xyz"], 1, NO_RUN),
        (["figure", "rank", "--position", "t5", "--seed", "9" * 30], 2, "at most 63 bits"),
        (["figure", "rank", "--position", "t5", "--out", ""], 2, EMPTY),
        (
            ["figure", "rank", "--position", "t5", "--reader", "amr"],
            2,
            "--reader is an option of reading, and no file is",
        ),
        (["app", ""], 2, EMPTY),
        (["evaluate", "folder", TREES], 1, NO_RUN),
        (["generate", "a.xyz", TREES], 1, NO_RUN),
        (["generate", "folder", TREES, "--out", "-"], 2, PIPE),
        (["parse", "--file", "none"], 1, "none: there is no such file; check the path"),
        (["parse", "--file", ""], 2, EMPTY),
        (["parse", "--evaluate", "none"], 1, "none: there is no such file or folder; check the path"),
        (["data", "verify", "cora", "a.xyz"], 1, "a.xyz: this is a file; give the folder that the set is in"),
        (["data", "get", "cora", "--from", "none"], 1, "none: there is no such file or folder; check --from"),
        (["data", "list", "--all"], 2, "data list takes no --all; --all belongs to show and get and verify"),
        (["cite", ""], 2, "there is no position model named ''"),
        (["positions", "--width", "-3"], 2, "the width is -3; give 1 or more"),
        (["study", "list.yaml"], 2, "list.yaml: a configuration is a mapping of keys; the file holds a list"),
        (["study", "folder"], 2, "folder is a folder; give the configuration file in it"),
        (["train", "none.yaml"], 2, "there is no configuration file none.yaml; check the path"),
        (["train", "list.yaml", "--option", "graph"], 2, "--option 'graph' is not of the form KEY=VALUE"),
    ],
)
def test_it_is_said_in_one_line(words: list[str], code: int, message: str) -> None:
    before = sorted(Path.cwd().rglob("*"))
    told = complaint(*words, code=code)
    assert message in told
    assert "bug in structpe" not in told
    assert sorted(Path.cwd().rglob("*")) == before, "nothing is left behind"
