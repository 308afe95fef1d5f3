"""Code of the user that has been edited: stores and runs do not take numbers of the earlier code for those of now."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import structpe
from structpe.code import source_of
from structpe.data.store import load, write
from structpe.data.store_writer import _shard
from structpe.encodings import ENCODINGS, Distance
from structpe.errors import ConfigError, EncodingError, StoreError
from structpe.formats.reading import READERS
from structpe.registry import IMPORTS, code_in, import_code
from structpe.tasks.runs import load_run
from tests.cli.running import new_process
from tests.tasks.test_own_data import GRAPHS

LEAVES = '''
from dataclasses import dataclass

import numpy as np

from structpe.encodings import Encoded, Encoding
from structpe.formats import reader


@reader("leaves-words", suffixes=".leaves")
def words(path):
    """Nothing."""


@dataclass(frozen=True)
class LeavesBelow(Encoding, name="leaves-below"):
    """A number for each unit."""

    most: int = 9
    arity = 1

    def one(self, structure):
        from leaves_scale import SCALE

        return Encoded(np.arange(structure.unit_count, dtype=np.int64) * SCALE)
'''
PATHS = [structpe.path(["x"] * n, name=str(n)) for n in (2, 3)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "leaves.py").write_text(LEAVES, encoding="utf-8")
    (tmp_path / "leaves_scale.py").write_text("SCALE = 1\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv(IMPORTS, raising=False)
    yield tmp_path
    for name in ("leaves", "leaves_scale"):
        sys.modules.pop(name, None)
    if "leaves-below" in ENCODINGS:
        ENCODINGS.forget("leaves-below")
        READERS.forget("leaves-words")


def imported() -> Any:
    """The encoding of the file, as a new process would import it."""
    for name in ("leaves", "leaves_scale"):
        sys.modules.pop(name, None)
    if "leaves-words" in READERS:
        READERS.forget("leaves-words")
    import_code("leaves.py")
    return ENCODINGS["leaves-below"]()


def edit(file: Path) -> None:
    file.write_text(file.read_text(encoding="utf-8") + "# edited\n", encoding="utf-8")


@pytest.mark.parametrize("name", ["leaves.py", "leaves_scale.py"])
def test_an_edit_is_another_version(folder: Path, name: str) -> None:
    """Also one of a file beside it that is imported in a function; the code in memory counts, not that on the disk."""
    first = imported()
    reads = code_in({"data": {"reader": "leaves-words"}})
    assert list(reads) == ["reader 'leaves-words'"]
    write("store", PATHS, [first])
    edit(folder / name)
    assert load("store", [first]).value(1, first).values.tolist() == [0, 1, 2]
    now = imported()
    assert code_in(["leaves-words"]) != reads
    assert (first.versions() == now.versions(), now.version) == (False, 1)
    told = r"store was encoded by other code of 'leaves-below'; remove store and encode again, or choose another folder"
    with pytest.raises(StoreError, match=told):
        load("store")
    with pytest.raises(StoreError, match=told):
        write("store", PATHS, [now])
    write("other", PATHS, [now])
    (folder / name).write_text((folder / name).read_text().removesuffix("# edited\n"), encoding="utf-8")
    again = imported()  # the earlier code is back
    assert write("store", PATHS, [again]).encodings == (again,)


def test_a_worker_with_other_code_does_not_encode(folder: Path) -> None:
    with pytest.raises(StoreError, match="a worker has other code of 'leaves-below'; start the workers again"):
        _shard(folder / "0", PATHS, [imported()], [{"leaves-below": "1+0"}], None)


def test_structpe_itself_has_versions_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Distance().versions() == {"distance": Distance.version}
    assert code_in({"position": {"name": "t5", "encoding": "distance"}}) == {}
    monkeypatch.setitem(sys.modules, "leaves", type(sys)("leaves"))  # as of a session: no file
    assert source_of("leaves") == source_of("no.such.module") == ""


def test_an_option_whose_type_has_no_hash_is_told_before_anything_is_encoded(folder: Path) -> None:
    (folder / "leaves.py").write_text(LEAVES.replace("most: int = 9", "most: list = (1,)"), encoding="utf-8")
    with pytest.raises(
        EncodingError, match=r"option 'most' is of type list.* in the class: most: tuple\[int, \.\.\.\]"
    ):
        write("store", PATHS, [imported()])
    assert not (folder / "store").exists()


def test_a_run_of_other_code_is_refused_and_its_use_warns(folder: Path) -> None:
    imported()
    items = [structpe.formats.Item(structpe.path(["x"] * n), metadata={"size": n}) for n in range(2, 14)]
    position = {"name": "learned", "encoding": {"name": "leaves-below"}}
    config = {**GRAPHS, "position": position, "imports": ["leaves.py"], "out": "run"}
    structpe.train(config, data=items)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        structpe.train(config, data=items)  # it is finished
        structpe.load("run", "cpu")
    edit(folder / "leaves_scale.py")
    imported()
    changed = "encoding 'leaves-below'"
    with pytest.raises(
        ConfigError, match=rf"run holds a run of other code of {changed}; bring that code back .*\(fresh"
    ):
        structpe.train(config, data=items)
    with pytest.warns(UserWarning, match=rf"run: the code of {changed} has changed since this model was trained"):
        structpe.load("run", "cpu")
    structpe.train(config, data=items, fresh=True)
    assert load_run("run").finished()
    (folder / "run" / "code.json").write_text("{", encoding="utf-8")
    with pytest.raises(StoreError, match=r"code\.json: the file is damaged"):
        structpe.load("run", "cpu")


STUDY = """
imports: [leaves.py]
data: {paths: {name: graphs, options: {file: paths.jsonl, targets: [size]}}}
models: {small: {width: 8, layers: 1, heads: 2}}
positions: {own: {name: learned, encoding: leaves-below}, walks: rwse}
training: {steps: 2, batch_size: 4, optimiser: {warmup: 1}, hardware: {accelerator: cpu}}
out: study
"""


@pytest.mark.slow
def test_commands_do_not_take_the_numbers_of_earlier_code(folder: Path) -> None:
    lines = [f'{{"facts": [["a", "r", "b"]], "size": {n}}}' for n in range(20)]
    (folder / "paths.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "study.yaml").write_text(STUDY, encoding="utf-8")
    (folder / "a.txt").write_text("(a / b :ARG0 (c / d))\n", encoding="utf-8")
    encode = ("encode", "a.txt", "--reader", "amr", "--encoding", "leaves-below", "--import", "leaves.py", "--out")
    for words in ((*encode, "stored"), ("study", "study.yaml")):
        done = new_process(*words, folder=folder)
        assert done.returncode == 0, done.stderr
    edit(folder / "leaves_scale.py")
    done = new_process(*encode, "stored", folder=folder)
    assert (done.returncode, "stored was encoded by other code of 'leaves-below'; remove" in done.stderr) == (1, True)
    done = new_process("study", "study.yaml", folder=folder)
    assert done.returncode == 2, done.stderr
    assert "holds a run of other code of encoding 'leaves-below'; bring" in done.stderr, done.stderr
    for words in (("--only", "*/own/*", "--fresh"), ()):  # the other row is still finished
        done = new_process("study", "study.yaml", *words, folder=folder)
        assert done.returncode == 0, done.stderr
    assert "2 runs, 2 of them finished" in done.stderr + done.stdout
    assert len([each for each in (folder / "study" / "encodings").iterdir() if each.is_dir()]) == 3
