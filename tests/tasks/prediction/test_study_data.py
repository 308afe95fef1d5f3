"""Before a study trains anything, it has read all its data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from structpe.errors import ConfigError, StructPEError
from structpe.tasks.prediction import run_all as running
from structpe.tasks.prediction.run_all import run_all
from structpe.tasks.prediction.study import StudyConfig
from tests.tasks.prediction.tiny import MODEL, RWSE, study


@pytest.fixture(autouse=True)
def _nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*given: Any) -> None:
        raise AssertionError("a training has begun")

    monkeypatch.setattr(running.ProcessPool, "start", started)


def two(folder: Path, other: dict[str, Any], **changed: Any) -> StudyConfig:
    data = {"rings": {"name": "zinc-stand-in", "folder": "data"}, "other": other}
    return study(folder, data=data, models={"gps": MODEL}, **changed)


def test_a_file_that_is_missing_or_damaged_is_told_before_the_first_training(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    config = two(tmp_path, {"name": "zinc-stand-in", "folder": "empty"})
    with pytest.raises(StructPEError, match=r"zinc_altpool23k\.npz"):
        run_all(config, config.keys())
    (tmp_path / "empty" / "zinc_altpool23k.npz").write_bytes(b"PK")
    with pytest.raises(StructPEError, match=r"zinc_altpool23k\.npz"):
        run_all(config, config.keys())


def test_a_metric_that_the_second_data_do_not_have_is_told(tmp_path: Path) -> None:
    other = {
        "name": "zinc-stand-in",
        "folder": "data",
        "options": {"train": 20},
        "training": {"validation": {"metric": "rocauc"}},
    }
    config = two(tmp_path, other)
    with pytest.raises(
        ConfigError, match=r"training\.validation\.metric takes 'official', 'loss' or 'mae'; given is 'rocauc'"
    ):
        run_all(config, config.keys())


def test_every_row_that_cannot_run_is_named_with_the_reason(tmp_path: Path) -> None:
    """Rings have no order."""
    config = study(
        tmp_path,
        models={"gps": MODEL, "sorted": {**MODEL, "training": {"order": "by-size"}}},
        positions={"none": [], "order": "sinusoidal", "rwse": RWSE},
        rows=[["gps", "none"], ["gps", "order"], ["sorted", "order"], ["gps", "rwse"]],
    )
    with pytest.raises(StructPEError) as caught:
        run_all(config, config.keys())
    told = str(caught.value)
    assert told.startswith("2 of 4 rows cannot run, so nothing is trained: rings/gps/order, rings/sorted/order: ")
    assert "order" in told.partition("rings/sorted/order: ")[2]
    assert told.endswith(". Correct these rows, or choose others (only)")
    with pytest.raises(StructPEError, match=r"^rings/gps/order: "):
        run_all(config, config.keys(["rings/gps/*"]))
    with pytest.raises(AssertionError, match="a training has begun"):
        run_all(config, config.keys(["*/none/*", "*/rwse/*"]))


def test_data_that_are_not_there_are_of_all_their_rows(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    config = two(tmp_path, {"name": "zinc-stand-in", "folder": "empty"}, positions={"none": [], "rwse": RWSE})
    with pytest.raises(StructPEError, match=r"^2 of 4 rows .*: other/gps/none, other/gps/rwse: .*zinc_altpool23k\.npz"):
        run_all(config, config.keys())
    bad = two(tmp_path, {"name": "zinc-stand-in", "folder": "empty"}, positions={"none": [], "bad": "x"})
    with pytest.raises(ConfigError, match=r"^2 of 4 rows .*: rings/gps/bad, other/gps/bad: position: there is no posi"):
        run_all(bad, bad.keys())


def test_where_all_are_there_it_begins(tmp_path: Path) -> None:
    config = two(tmp_path, {"name": "zinc-stand-in", "folder": "data", "options": {"train": 20}})
    with pytest.raises(AssertionError, match="a training has begun"):
        run_all(config, config.keys())
