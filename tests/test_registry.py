"""A registry finds what stands in its folder, refuses two of one name, and names the nearest of what it knows."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from structpe.encodings import ENCODINGS
from structpe.errors import EncodingError, PositionError
from structpe.positions import MODELS, PositionModel
from structpe.registry import Registry
from tests.modules import ROOT


@dataclass(frozen=True)
class Thing:
    """Something to enter."""

    size: int


def test_two_of_one_name_are_refused_whatever_they_are() -> None:
    registry: Registry[object] = Registry("structpe.encodings", "thing", EncodingError)
    first = Thing(1)
    registry.add("a", first)
    registry.add("a", first)
    with pytest.raises(
        EncodingError, match=r"two things are named 'a': Thing\(size=1\) and Thing\(size=1\); rename one"
    ):
        registry.add("a", Thing(1))
    registry.add("b", Thing)
    with pytest.raises(EncodingError, match="two things are named 'b'"):
        registry.add("b", Registry)


def test_a_class_defined_again_takes_its_place() -> None:
    registry: Registry[object] = Registry("structpe.encodings", "thing", EncodingError)
    for _ in range(2):
        again = type("Again", (), {})
        registry.add("again", again)
    assert registry["again"] is again


def test_unknown_names_get_the_nearest_and_all_known() -> None:
    with pytest.raises(
        PositionError, match=r"no position model named 'rotery'. Did you mean 'rotary'\? Nearest of \d+: rotary, "
    ):
        MODELS["rotery"]


@pytest.mark.parametrize(
    ("given", "near"),
    [
        ("tree-distance", "distance, root-distance, undirected-distance"),  # words that are shared, not letters
        ("distnace", "distance, "),  # a slip, though 'root-distance' shares more letters
        ("distance-undirected", "undirected-distance, "),
        ("laplacain", "laplacian"),
    ],
)
def test_the_nearest_names_share_words(given: str, near: str) -> None:
    with pytest.raises(EncodingError, match=rf"Did you mean '{near.partition(',')[0]}'\? Nearest of \d+: {near}"):
        ENCODINGS[given]


def test_every_file_of_a_folder_is_found() -> None:
    assert {"t5", "zhu-cnn", "cai", "graformer"} <= set(MODELS)
    assert len(MODELS) == len(list(MODELS))


@pytest.mark.parametrize("second", ["b", "a"])
def test_folders_in_the_folder_are_searched(second: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = f"things_{second}_of_a_test"
    monkeypatch.syspath_prepend(tmp_path)
    registry: Registry[object] = Registry(package, "thing", EncodingError)
    monkeypatch.setattr(f"{__name__}.MODELS", registry)
    for inner, name in [("", ""), ("first", "a"), ("second", second)]:
        (tmp_path / package / inner).mkdir()
        (tmp_path / package / inner / "__init__.py").touch()
        text = f"from {__name__} import MODELS\nclass Found: ...\nMODELS.add({name!r}, Found)\n"
        (tmp_path / package / inner / "found.py").write_text(text if name else "")
    if second == "b":
        assert sorted(registry) == ["a", "b"]
    else:
        text = rf"two things are named 'a': {package}.first.found.Found and {package}.second.found.Found; rename one"
        with pytest.raises(EncodingError, match=text):
            list(registry)


MODULE = """
from structpe.positions import PositionModel


class Elsewhere(PositionModel, name={name!r}):
    '''Nothing, from another distribution.'''
"""


def distribution(folder: Path, entry: str, text: str, group: str = "structpe.positions") -> None:
    """Install a distribution with one entry point, as ``pip install`` leaves it."""
    info = folder / "of_others-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: of-others\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(f"[{group}]\nmine = {entry}\n")
    (folder / f"{entry}.py").write_text(text)


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry[type[PositionModel]]]:
    """The registry of position models, which looks for entry points again."""
    monkeypatch.syspath_prepend(tmp_path)
    len(MODELS)
    monkeypatch.setattr(MODELS, "_complete", False)
    known = set(MODELS._classes)
    yield MODELS
    for name in set(MODELS._classes) - known:
        MODELS.forget(name)


def test_an_installed_distribution_adds_its_own(models: Registry[type[PositionModel]], tmp_path: Path) -> None:
    before = set(models._classes)
    distribution(tmp_path, "of_others_models", MODULE.format(name="elsewhere"))
    assert set(models) - before == {"elsewhere"}
    assert models["elsewhere"].__module__ == "of_others_models"


def test_a_name_of_ours_is_not_taken_by_others(models: Registry[type[PositionModel]], tmp_path: Path) -> None:
    distribution(tmp_path, "of_others_t5", MODULE.format(name="t5"))
    text = r"of-others 1\.2: entry point 'mine' of structpe\.positions \(of_others_t5\): two position models are named"
    with pytest.raises(PositionError, match=text):
        list(models)


def test_a_distribution_that_cannot_be_imported_is_named(models: Registry[type[PositionModel]], tmp_path: Path) -> None:
    distribution(tmp_path, "of_others_broken", "import no_such_package")
    text = r"of-others 1\.2: entry point 'mine' .* cannot be imported \(ModuleNotFoundError: No module named 'no_such_"
    with pytest.warns(UserWarning, match=text):
        assert "t5" in set(models)


def test_a_command_of_others_is_on_the_command_line(tmp_path: Path) -> None:
    distribution(tmp_path, "of_others_command", COMMAND, "structpe.cli")
    done = subprocess.run(
        [sys.executable, "-m", "structpe", "greet", "--help"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])},
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    assert "Say hello." in done.stdout


COMMAND = """
from structpe.cli.base import Command


class Greet(Command, name="greet"):
    '''Say hello.'''

    example = "structpe greet"

    def arguments(self, parser):
        pass

    def run(self, given):
        print("hello")
"""
