"""Weights, configuration and result of a run name each other: parts of two runs are never taken for one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import structpe
from structpe.errors import StoreError, StructPEError
from structpe.tasks.config import make, to_dict
from structpe.tasks.runs import load_run, train
from structpe.tasks.training import lightning_module
from structpe.tasks.training.result import WEIGHTS, digest
from tests.tasks.changes import with_training
from tests.tasks.graph_to_text import checkpoints, tiny
from tests.tasks.prediction import tiny as predictions

SHORT = {"steps": 2, "validation": {"every": 1}, "checkpoint_every": 1, "optimiser": {"warmup": 0}}


def of_text(folder: Path) -> Any:
    return tiny.tiny(folder, **SHORT)


def of_pretrained(folder: Path) -> Any:
    given = folder / "t5"
    return checkpoints.tuned(folder, given if given.exists() else checkpoints.checkpoint(given, "t5"), training=SHORT)


def of_graphs(folder: Path) -> Any:
    return predictions.single(folder, training=SHORT, position=[])


KINDS: dict[str, Callable[[Path], Any]] = {"text": of_text, "pretrained": of_pretrained, "prediction": of_graphs}


@pytest.fixture(scope="module", params=KINDS)
def two(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two finished runs that differ in their learning rate: weights of equal names and shapes."""
    folder = tmp_path_factory.mktemp(request.param)
    config = KINDS[request.param](folder)
    one, other = (folder / f"run-{number}" for number in range(2))
    for out, rate in ((one, 0.01), (other, 0.02)):
        train(with_training(replace(config, out=str(out)), optimiser={"learning_rate": rate}))
    return one, other


@pytest.fixture
def run(two: tuple[Path, Path], tmp_path: Path) -> Path:
    """A copy of the first."""
    return Path(shutil.copytree(two[0], tmp_path / "copy"))


def test_a_run_is_loaded_wherever_it_lies(run: Path) -> None:
    structpe.load(run, "cpu")
    assert load_run(run).finished()


def test_its_parts_name_each_other(run: Path) -> None:
    with safe_open(run / WEIGHTS, "pt") as file:
        written = file.metadata()["sha256"].split(":")
    named = json.loads((run / "result.json").read_text())["of"]
    assert written == ["4", digest(load_file(run / WEIGHTS)), load_run(run).identity]
    assert named == {"run": written[2], "weights": written[1]}


def test_weights_of_another_run_are_refused(run: Path, two: tuple[Path, Path]) -> None:
    shutil.copy(two[1] / WEIGHTS, run / WEIGHTS)
    with pytest.raises(StoreError, match=r"model\.safetensors: the weights are those of another run: "):
        structpe.load(run, "cpu")


def test_a_result_of_another_run_is_refused(run: Path, two: tuple[Path, Path]) -> None:
    shutil.copy(two[1] / "result.json", run / "result.json")
    with pytest.raises(StoreError, match=r"result\.json: the result belongs to another run; "):
        load_run(run).finished()
    with pytest.raises(StoreError, match="the result of the run belongs to other weights"):
        structpe.load(run, "cpu")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused(run: Path, value: float) -> None:
    with safe_open(run / WEIGHTS, "pt") as file:
        _, _, owner = file.metadata()["sha256"].split(":")
    spoilt = load_file(run / WEIGHTS)
    spoilt[next(name for name in spoilt if spoilt[name].is_floating_point())].view(-1)[-1] = value
    save_file(spoilt, run / WEIGHTS, metadata={"sha256": f"4:{digest(spoilt)}:{owner}"})
    with pytest.raises(StoreError, match=r"model\.safetensors: the weights '.*' are not finite, and"):
        structpe.load(run, "cpu")


@pytest.mark.parametrize("kind", KINDS)
def test_a_training_that_diverges_says_so_and_keeps_what_was_written(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the second of three steps a weight is no number: neither weights nor checkpoint are written."""
    config = to_dict(KINDS[kind](tmp_path))
    config["training"] |= {"steps": 3, "validation": {"every": 1 if kind == "prediction" else 2}}
    spoilt = lightning_module.Metrics.on_train_batch_end

    def after(self: Any, trainer: Any, module: Any, *others: Any) -> None:
        spoilt(self, trainer, module, *others)
        if trainer.global_step == 2:
            with torch.no_grad():
                next(module.model.parameters()).fill_(float("nan"))

    monkeypatch.setattr(lightning_module.Metrics, "on_train_batch_end", after)
    monkeypatch.setattr(lightning_module.Validation, "_scores", lambda self, trainer, module: {})
    with pytest.raises(StructPEError, match=r"are no longer finite: training has diverged; lower"):
        train(make(type(KINDS[kind](tmp_path)), config))
    kept = sorted(each.name for each in (Path(config["out"]) / "checkpoints").iterdir())
    assert kept == ["step-00000001"]
