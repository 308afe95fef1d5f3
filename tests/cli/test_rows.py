"""Rows of lists that a file remembers, and what commands do not import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from structpe.cli import rows
from structpe.cli.rows import EncodingRow, ModelRow
from structpe.encodings import ENCODINGS
from structpe.positions import MODELS, Dims
from structpe.system import files
from tests.cli.running import SAMPLE
from tests.modules import ROOT
from tests.representatives import fewer

SIZES = Dims(16, 2, 2)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(files, "user_cache", lambda: tmp_path)
    assert rows._file("list").parent == tmp_path / "structpe"
    return rows._file("list")


class Found:
    """Finds a value, and counts how often it is asked to."""

    def __init__(self, value: list[int]) -> None:
        self.value, self.times = value, 0

    def __call__(self) -> list[int]:
        self.times += 1
        return self.value

    def remembered(self, package: str = "structpe.that_nobody_imports") -> list[int]:
        return rows._remembered("list", package, list[int], self)


def test_what_was_found_is_remembered(cache: Path) -> None:
    find = Found([1, 2])
    assert [find.remembered() for _ in range(3)] == [[1, 2]] * 3
    assert find.times == 1
    assert cache.is_file()


def test_other_code_finds_it_anew(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Found([1]).remembered()
    monkeypatch.setattr(rows, "_stamp", lambda: "of another version")
    assert Found([2]).remembered() == [2]
    assert Found([3]).remembered() == [2]


def test_each_installation_has_files_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = rows._file("list")
    monkeypatch.setattr(rows.structpe, "__file__", str(tmp_path / "__init__.py"))
    assert rows._file("list") not in (before, rows._file("other"))


def test_the_stamp_changes_with_a_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows.structpe, "__file__", str(tmp_path / "__init__.py"))
    source = tmp_path / "positions" / "own.py"
    source.parent.mkdir()
    stamps = [rows._stamp()]
    for text in ("class Own: ...", "class Other: ..."):
        source.write_text(text)
        stamps += [rows._stamp()]
    os.utime(source, ns=(0, 0))
    stamps += [rows._stamp()]
    assert rows._stamp() == stamps[-1]
    assert len(set(stamps)) == 4


@pytest.mark.parametrize("content", [b"", b"\xff", b"[1, 2]", b'["stamp", ["one"]]', b'{"rows": 1}'])
def test_a_damaged_file_is_written_anew(content: bytes, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_stamp", lambda: "stamp")
    cache.parent.mkdir()
    cache.write_bytes(content)
    assert Found([1]).remembered() == [1]
    assert json.loads(cache.read_bytes()) == ["stamp", [1]]


def test_without_a_folder_to_write_to_it_is_found_each_time(cache: Path) -> None:
    cache.parent.write_text("a file where the folder would be")
    find = Found([1])
    assert [find.remembered(), find.remembered()] == [[1], [1]]
    assert find.times == 2


def test_what_others_may_have_added_is_not_remembered(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process, which has imported the package, or other distributions."""
    find = Found([1])
    find.remembered("structpe.positions")
    entry = metadata.EntryPoint("own", "own_package.models", "structpe.that_nobody_imports")
    monkeypatch.setattr(metadata, "entry_points", lambda group: [entry] if group == entry.group else [])
    find.remembered()
    assert find.times == 2
    assert not cache.exists()


def test_rows_are_the_same_when_they_are_read_again(cache: Path) -> None:
    models = [ModelRow.measured(name, SIZES) for name in MODELS]
    encodings = [EncodingRow.of(name, each) for name, each in ENCODINGS.items()]
    for kind, made in ((ModelRow, models), (EncodingRow, encodings)):
        for _ in range(2):
            found = rows._remembered(kind.__name__, "structpe.that_nobody_imports", list[kind], lambda made=made: made)  # type: ignore[valid-type,misc]
            assert found == made
    assert [row.plain() for row in models] == json.loads(json.dumps([row.plain() for row in models]))


def test_the_values_of_the_surveys_formulas() -> None:
    dims = Dims(512, 8, 6)
    assert ModelRow.measured("t5", dims).survey == (2 * 512 - 1) * 8
    assert ModelRow.measured("sinusoidal", dims).survey == 0
    assert ModelRow.measured("alibi", dims).survey is None


LIGHT = """
import sys
from structpe.cli.main import main
codes = [main(words.split()) for words in sys.argv[1:]]
heavy = ("torch", "numba", "networkx", "pandas", "matplotlib", "transformers", "lightning")
print(codes, [each for each in heavy if each in sys.modules])
"""


def test_lists_and_encoding_do_without_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They would take seconds to begin. What is remembered here was found by the process of this test."""
    monkeypatch.setattr(files, "user_cache", lambda: tmp_path)
    made = [ModelRow.measured(name, SIZES) for name in ("t5", "alibi")]
    rows._remembered("positions-16-2-2", "structpe.that_nobody_imports", list[ModelRow], lambda: made)
    given = ["positions --width 16 --heads 2 --layers 2", "encodings"]
    store, small = tmp_path / "store", SAMPLE / "test.txt"
    given += [
        f"encode {small} --reader amr --encoding undirected-distance --encoding random-walk:steps=4 --out {store}"
    ]
    env = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", LIGHT, *given], capture_output=True, text=True, env=env, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "[0, 0, 0] []", done.stdout + done.stderr
    assert [line.split()[1] for line in done.stdout.splitlines()[2:4]] == ["alibi", "t5"]


@pytest.mark.parametrize("name", fewer(MODELS))
def test_large_models_are_counted_without_numbers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    small = ModelRow.measured(name, SIZES)
    monkeypatch.setattr(rows, "_LARGE", 0)
    assert ModelRow.measured(name, SIZES) == small
    assert all(each.is_meta for each in rows._built(name, SIZES).parameters())
