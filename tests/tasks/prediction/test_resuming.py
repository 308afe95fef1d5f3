"""A run goes on with what it began with, from a checkpoint that is whole; a signal lets it end with one."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from structpe.errors import ConfigError, StoreError
from structpe.system.files import MARK
from structpe.tasks.config import make
from structpe.tasks.prediction.config import PredictionConfig
from structpe.tasks.prediction.report import Outcome
from structpe.tasks.prediction.study import StudyConfig
from structpe.tasks.prediction.task import Prediction
from structpe.tasks.runs import base, train
from structpe.tasks.runs.prediction import PredictionRun
from structpe.tasks.training.batches import BatchPlan
from structpe.tasks.training.folder import lock
from tests.representatives import only
from tests.tasks.changes import with_training
from tests.tasks.graph_to_text.tiny import tiny
from tests.tasks.prediction.test_survival import same_results
from tests.tasks.prediction.tiny import MODEL, TRAINING, data_in, single, that_act


@pytest.fixture(autouse=True)
def _hears_ctrl_c() -> Iterator[None]:
    """Also where tests run in the background of a shell, which lets Ctrl-C be ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Stop(Exception):
    """Amid a training."""


def stopped(config: PredictionConfig, at: int = 8, stop: Callable[[], object] | None = None) -> None:
    """Train, and stop in the step of a number."""
    loss, count = Prediction.loss, 0

    def told(self: Prediction, batch: Any) -> Any:
        nonlocal count
        count += 1
        if count == at:
            if stop is None:
                raise Stop
            stop()
        return loss(self, batch)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Prediction, "loss", told)
        train(config)


@pytest.fixture(scope="module")
def began(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data and a run on molecules and one on the nodes of a grid, stopped after steps 6 and 7."""
    folder = tmp_path_factory.mktemp("began")
    for config in (single(folder), nodes(folder)):
        with pytest.raises(Stop):
            stopped(config)
    return folder


def nodes(folder: Path) -> PredictionConfig:
    given = {
        "data": {"name": "minesweeper", "folder": str(data_in(folder))},
        "model": MODEL,
        "training": TRAINING,
        "out": str(folder / "nodes"),
    }
    return make(PredictionConfig, that_act(given))


@pytest.fixture
def copied(began: Path, tmp_path: Path) -> Path:
    """The same elsewhere; where data lie is no matter of the training."""
    shutil.copytree(began, tmp_path / "copy")
    return tmp_path / "copy"


@pytest.fixture(scope="module")
def ended(began: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, and the run on molecules has gone on to its end."""
    folder = shutil.copytree(began, tmp_path_factory.mktemp("ended") / "copy")
    train(single(folder))
    return folder


@pytest.fixture
def finished(ended: Path, tmp_path: Path) -> Path:
    shutil.copytree(ended, tmp_path / "finished")
    return tmp_path / "finished"


def changed(file: Path, key: str, change: Callable[[Any], Any]) -> None:
    with np.load(file) as content:
        arrays = dict(content)
    arrays[key] = change(arrays[key])
    np.savez(file, **arrays)


def other(at: int) -> Callable[[Any], Any]:
    def change(array: Any) -> Any:
        array = array.copy()
        array[at] = array[at] + 1
        return array

    return change


@pytest.mark.parametrize(
    ("file", "key", "change", "told"),
    [
        ("zinc_altpool23k", "y", other(3), "targets"),
        ("zinc12k_test", "y", other(0), "targets"),
        ("zinc12k_val", "x", lambda x: (x + 1) % 28, ".*features of the graphs"),
        ("zinc_altpool23k", "edge_attr", lambda x: 4 - x, ".*features of the graphs"),
    ],
)
def test_each_change_of_molecules_is_refused(copied: Path, file: str, key: str, change: Any, told: str) -> None:
    changed(copied / "data" / f"{file}.npz", key, change)
    with pytest.raises(StoreError, match=rf"have changed since this run began: {told}\. Restore them, or"):
        train(single(copied))


def test_other_splits_are_refused(copied: Path) -> None:
    file = copied / "data" / "minesweeper.npz"
    with np.load(file) as content:
        arrays = dict(content)  # the seed is 1, and so is the split
    train_mask, test_mask = arrays["train_masks"][1].copy(), arrays["test_masks"][1].copy()
    one, two = train_mask.argmax(), test_mask.argmax()
    for mask, leaves, comes in ((train_mask, one, two), (test_mask, two, one)):
        mask[leaves], mask[comes] = False, True
    arrays["train_masks"][1], arrays["test_masks"][1] = train_mask, test_mask
    np.savez(file, **arrays)
    with pytest.raises(StoreError, match=r"began: train split, test split\. Restore them, or train afresh"):
        train(nodes(copied))


def test_an_edited_position_model_is_refused(copied: Path) -> None:
    file = copied / "run" / "position.json"
    file.write_text(file.read_text() + " ")
    with pytest.raises(StoreError, match=r"run: the folder is damaged: its position\.json has other bytes than its ch"):
        train(single(copied))


MEAN = {"validation": {"average": 3, "every": 1}}


@pytest.mark.parametrize("training", only([{"order": "by-size"}, {"order": "shuffled"}, MEAN], MEAN), ids=str)
def test_with_each_option_it_goes_on_to_the_same_bits(training: dict[str, Any], tmp_path: Path) -> None:
    given = single(tmp_path, training={"steps": 6, **training})
    configs = [replace(given, out=str(tmp_path / name)) for name in ("one", "other")]
    train(configs[0])
    with pytest.raises(Stop):
        stopped(configs[1], at=5)
    train(configs[1])
    same_results(tmp_path / "one", tmp_path / "other")


def test_the_order_of_batches_is_that_of_the_task_unless_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bool] = []

    class Told(BatchPlan):
        def __post_init__(self) -> None:
            made.append(self.by_size)
            raise Stop

    monkeypatch.setattr(base, "BatchPlan", Told)
    text = tiny(tmp_path)
    for order in ("auto", "shuffled", "by-size"):
        for config in (single(tmp_path, training={"order": order}), text):
            with pytest.raises(Stop):
                train(replace(config, training=replace(config.training, order=order)), fresh=True)
    assert made == [False, True, False, False, True, True]


@pytest.mark.slow
@pytest.mark.parametrize("number", only([signal.SIGTERM, signal.SIGINT], signal.SIGINT))
def test_a_signal_ends_it_with_a_checkpoint_and_it_ends_the_same(
    number: signal.Signals, copied: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    config = replace(single(copied), out=str(copied / "signalled"))
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        stopped(config, at=5, stop=lambda: signal.raise_signal(number))
    assert "signalled: a checkpoint is written after step 5; the same command goes on with it" in capfd.readouterr().err
    assert (copied / "signalled" / "checkpoints" / "step-00000005").is_dir()
    train(with_training(config, hardware={"accelerator": "auto", "workers": 1}))  # as on another machine
    train(single(copied))  # which was stopped in another way
    same_results(copied / "signalled", copied / "run")


def test_an_edited_result_is_refused(finished: Path) -> None:
    config = single(finished)
    file = finished / "run" / "result.json"
    text = file.read_text()
    assert Outcome.load(file.parent) is not None
    file.write_text(text.replace('"test": ', '"test": 1', 1))
    with pytest.raises(StoreError, match=r"result\.json: the file is damaged .*; remove the folder, and train again"):
        train(config)


def test_a_run_or_study_without_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^out is empty; give the folder of the run"):
        replace(single(tmp_path), out="")
    with pytest.raises(ConfigError, match=r"^out is empty; give the folder of the run"):
        StudyConfig(data={"a": {}}, models={"b": {}}, out=" ")


def test_what_a_process_killed_at_the_very_end_has_left_goes(finished: Path, tmp_path: Path) -> None:
    """Its result was written, its checkpoints were not removed yet, or the folder that a writer works in was not."""
    config = single(finished)
    folder = finished / "run"
    whole = sorted(folder.rglob("*"))
    for again in (lambda: train(config), lambda: PredictionRun(config).finished()):
        (folder / "checkpoints" / ".step-00000012.tmp").mkdir(parents=True)
        for place in (folder / "checkpoints" / ".step-00000012.tmp", folder / ".result.json.tmp"):
            place.mkdir(exist_ok=True)
            (place / MARK).touch()
        again()
        assert sorted(folder.rglob("*")) == whole
    (folder / "checkpoints").mkdir()
    with lock(folder):  # somebody is about to remove it
        assert PredictionRun(config, folder).finished()
    assert not PredictionRun(config, tmp_path / "nowhere").finished()
