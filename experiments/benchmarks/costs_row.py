"""What a row of a study costs, measured in this process."""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback

from structpe.datasets import load
from structpe.nn.graph_model import GraphModel
from structpe.objectives import LEVELS
from structpe.positions.build import build, fitted
from structpe.tasks.prediction.config import PredictionConfig
from structpe.tasks.prediction.sources import SOURCES, Data
from structpe.tasks.prediction.study import Key, StudyConfig
from structpe.tasks.prediction.task import Prediction
from structpe.tasks.training.batches import Batches, BatchPlan
from structpe.tasks.training.fit import fit, result
from structpe.tasks.training.reporting import peak_memory

__all__ = ["measured"]

LEAST, MOST = 12, 400
"""Steps; the first few load libraries and fill caches, and are not counted."""


class Enough(Callback):
    """Ends a training after a while, and remembers how long whole steps took, batches made ready included.

    Args:
        seconds: after which there are enough steps, if there are a few.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds, self.ends = seconds, [time.perf_counter()]

    def on_train_start(self, trainer: Any, module: Any) -> None:
        self.ends = [time.perf_counter()]

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self.ends.append(time.perf_counter())
        if trainer.global_step >= LEAST and self.ends[-1] - self.ends[0] > self.seconds:
            trainer.should_stop = True

    @property
    def whole(self) -> float:
        """Median seconds from the end of a step to that of the next."""
        return statistics.median(b - a for a, b in zip(self.ends[5:], self.ends[6:], strict=False))


def measured(study: StudyConfig, key: Key, seconds: float, scratch: Path) -> dict[str, Any]:
    """Time of encoding and of a step, minutes that the whole training would take, peak of memory."""
    torch.set_num_threads(1)
    config = study.run(key)
    task, data = prepared(config, scratch)
    training = replace(
        config.training,
        steps=MOST,
        validation=replace(config.training.validation, every=MOST, patience=0),
        checkpoint_every=MOST,
        logs=replace(config.training.logs, every=MOST),
    )
    # Without a validation split there is no validation; with one it is measured by itself.
    enough, task.dev = Enough(seconds), []
    plan = BatchPlan(data.sizes, training.batch_size, training.seed)
    batches = Batches(data.train, plan, data.collate, MOST * training.accumulate)
    (scratch / "run").mkdir(parents=True)
    fit(task, batches, training, scratch / "run", [enough])
    ended = result(scratch / "run", training, plan.per_epoch)
    validation = validated(task, data)
    planned = config.training
    validations = math.ceil(planned.steps / planned.validation.every)
    return {
        "encoding_seconds": data.encoding_seconds,
        "step_ms": 1e3 * ended.step_seconds,
        "minutes": (planned.steps * planned.accumulate * enough.whole + validations * validation) / 60,
        "peak_mib": peak_memory() / 2**20,
        "steps": ended.steps,
        "validation_seconds": validation,
    }


def prepared(config: PredictionConfig, scratch: Path) -> tuple[Prediction, Data]:
    """The model and its data, as a training has them; encodings are computed anew."""
    benchmark = load(config.data.name, config.data.folder, **config.data.options)
    objective, split = benchmark.objective, benchmark.splits[config.training.seed % len(benchmark.splits)]
    seen = [0] if LEVELS[objective.level].single else split.train
    position = fitted(config.position, config.model.dims, lambda: [benchmark.graphs[i] for i in seen])
    torch.manual_seed(config.training.seed)
    built = build(position, config.model.dims)
    model = GraphModel(config.model, built, benchmark.nodes, benchmark.edges, objective.numbers, objective.level)
    data = SOURCES[objective.level].data(config, benchmark, split, model, scratch / "encodings")
    return Prediction(model, objective, data.valid, data.scored), data


def validated(task: Prediction, data: Data) -> float:
    """Seconds that a validation takes."""
    task.model.eval()
    began = time.perf_counter()
    with torch.no_grad():
        task.scores(data.valid, torch.device("cpu"), 0, 1, lambda mine: [mine])
    return time.perf_counter() - began
