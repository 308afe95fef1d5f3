"""A registry finds what stands in its folder, refuses two of one name, and names the nearest of what it knows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from structpe.errors import EncodingError, PositionError
from structpe.positions import MODELS
from structpe.registry import Registry


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
