"""Several batches of a step, and several devices, do what one batch of the same examples does."""

from __future__ import annotations

import csv
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from lightning.pytorch import Callback
from torch import Tensor, nn

from structpe.system.processes import ending
from structpe.tasks.config import make, merged, to_dict
from structpe.tasks.runs import train
from structpe.tasks.runs.base import run_of
from structpe.tasks.training.batches import Batches, BatchPlan
from structpe.tasks.training.config import TrainingConfig
from structpe.tasks.training.fit import fit
from structpe.tasks.training.result import WEIGHTS, load_weights
from structpe.tasks.training.task import Gather, Task
from tests.representatives import only
from tests.tasks.changes import with_training
from tests.tasks.graph_to_text import checkpoints, tiny
from tests.tasks.prediction import test_pairs as pairs
from tests.tasks.prediction import tiny as predictions

SGD: dict[str, Any] = {
    "optimiser": {
        "name": "SGD",
        "learning_rate": 1.0,
        "weight_decay": 0.0,
        "warmup": 0,
        "schedule": "constant",
        "clip": 0.0,
    },
    "steps": 1,
    "validation": {"every": 1},
    "checkpoint_every": 1,
    "logs": {"every": 1},
    "hardware": {"accelerator": "cpu"},
}
COUNTS = [0, 0, 0, 7, 1, 1, 3, 0, 0, 12, 1, 5]


class Counted(Task):
    """Targets of which some examples have many and some none: the mean of means is not the mean."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model: nn.Module = nn.Linear(3, 1)
        self.values = torch.randn(len(COUNTS), 3, generator=torch.Generator().manual_seed(1))

    def loss(self, batch: Sequence[int]) -> tuple[Tensor, Tensor]:
        counts = torch.tensor([COUNTS[i] for i in batch])
        return (self.model(self.values[list(batch)])[:, 0] ** 2 * counts).sum(), counts.sum()

    def validate(self, device: torch.device, share: int, shares: int, gather: Gather) -> dict[str, float]:
        return {}


@pytest.mark.parametrize("parts", [1, 2, 3, 6, 12])
@pytest.mark.parametrize("clip", [0.0, 0.5])
def test_a_step_is_the_mean_over_all_that_its_batches_count(parts: int, clip: float, tmp_path: Path) -> None:
    """Clipped after the division; batches that count nothing, also the first, take no part."""
    task = Counted()
    before = task.model.weight.detach().clone()
    counts = torch.tensor(COUNTS)
    mean = (task.model(task.values)[:, 0] ** 2 * counts).sum() / counts.sum()
    wanted = list(torch.autograd.grad(mean, list(task.model.parameters())))
    if clip:
        wanted = [each * min(1.0, clip / torch.cat([g.flatten() for g in wanted]).norm()) for each in wanted]
    plan = BatchPlan(np.ones(len(COUNTS), dtype=np.int64), len(COUNTS) // parts, seed=3)
    batches: Batches[int, Any] = Batches(range(len(COUNTS)), plan, list, parts)
    own = {"accumulate": parts, "batch_size": len(COUNTS) // parts, "optimiser": {"clip": clip}}
    config = make(TrainingConfig, merged(TrainingConfig, SGD, own))
    fit(task, batches, config, tmp_path)
    torch.testing.assert_close(before - task.model.weight.detach(), wanted[0], rtol=1e-5, atol=1e-6)
    assert logged(tmp_path) == pytest.approx(mean.item(), rel=1e-6)


class Asked(Callback):
    """A signal that comes after a batch."""

    def __init__(self, batch: int) -> None:
        self.batch = batch

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if batch_idx == self.batch:
            os.kill(os.getpid(), signal.SIGTERM)


def test_a_signal_in_the_middle_of_a_step_ends_the_training_after_it(tmp_path: Path) -> None:
    """With a checkpoint of it: no step is lost."""
    plan = BatchPlan(np.ones(len(COUNTS), dtype=np.int64), 3, seed=3)
    config = make(TrainingConfig, {**SGD, "accumulate": 4, "batch_size": 3, "steps": 8, "checkpoint_every": 8})
    batches: Batches[int, Any] = Batches(range(len(COUNTS)), plan, list, 32)
    with ending(), pytest.raises(SystemExit):
        fit(Counted(), batches, config, tmp_path, [Asked(9)])  # the second of the four batches of the third step
    assert [each.name for each in (tmp_path / "checkpoints").iterdir()] == ["step-00000003"]


def of_text(folder: Path) -> Any:
    config = tiny.tiny(folder, **SGD)
    return make(type(config), to_dict(config) | {"model": {**to_dict(config)["model"], "dropout": 0.0}})


def of_pretrained(folder: Path) -> Any:
    given = checkpoints.checkpoint(folder / "t5", "t5")
    plain = to_dict(checkpoints.tuned(folder, given, training=SGD))
    plain["model"]["options"] = {"dropout_rate": 0.0}
    return make(type(checkpoints.tuned(folder, given)), plain)


def of_graphs(folder: Path) -> Any:
    """Without batch normalisation, which each batch has of its own."""
    position = {"name": "t5", "encoding": "undirected-distance"}
    return predictions.single(folder, model={"dropout": 0.0, "norm": "layer"}, position=position, training=SGD)


def of_pairs(folder: Path) -> Any:
    return pairs.config(folder, training=SGD)


KINDS: dict[str, Callable[[Path], Any]] = {"text": of_text, "pretrained": of_pretrained, "graph": of_graphs}
KINDS["pair"] = of_pairs


def trained(config: Any, folder: Path, **training: Any) -> tuple[dict[str, Tensor], float]:
    """The weights after a step, and its logged loss."""
    train(with_training(replace(config, out=str(folder)), **training))
    return load_weights(folder / WEIGHTS, ""), logged(folder)


def logged(folder: Path) -> float:
    with (folder / "metrics.csv").open(encoding="utf-8") as file:
        (loss,) = (float(row["value"]) for row in csv.DictReader(file) if row["metric"] == "loss")
    return loss


def check(kind: str, folder: Path, optimiser: Mapping[str, Any] | None = None, **training: Any) -> None:
    config = with_training(KINDS[kind](folder), optimiser=optimiser or {})
    work = run_of(config)._prepared(True)[0]
    count = len(work.sizes)
    before = {name: each.clone() for name, each in work.task.model.state_dict().items()}
    whole, loss = trained(config, folder / "whole", batch_size=count)
    parts, mean = trained(config, folder / "parts", **{"batch_size": -(-count // 4), "accumulate": 4} | training)
    assert mean == pytest.approx(loss, rel=1e-6)
    one, other = (torch.cat([(each[n].double() - before[n]).flatten() for n in each]) for each in (whole, parts))
    assert (one - other).norm() < 1e-5 * one.norm()


@pytest.mark.parametrize("kind", only(["text", "pretrained"], "text"))
def test_four_batches_of_a_run_are_one(kind: str, tmp_path: Path) -> None:
    check(kind, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["graph", "pair"])
def test_four_batches_of_any_run_are_one(kind: str, tmp_path: Path) -> None:
    check(kind, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(280)
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_two_batches_on_two_devices_are_one(strategy: str, tmp_path: Path) -> None:
    config = KINDS["text"](tmp_path)
    count = len(run_of(config)._prepared(True)[0].sizes)
    hardware = {"devices": 2, "strategy": strategy}
    # Sharded parameters need AdamW. With a large eps its step is smooth in the gradient, where it would be its sign.
    optimiser = {"name": "AdamW", "options": {"eps": 1.0}} if strategy == "fsdp" else {}
    check("text", tmp_path, optimiser, hardware=hardware, accumulate=2, batch_size=-(-count // 2))
