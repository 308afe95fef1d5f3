"""How a model is trained."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal

from structpe.errors import ConfigError
from structpe.plain.bounds import BATCH, PROCESSES, STEPS, bounded
from structpe.plain.inert import Inert, refuse_inert

__all__ = ["LoggerConfig", "OptimiserConfig", "TrainingConfig"]


@dataclass(frozen=True)
class LoggerConfig:
    """A logger of Lightning.

    Args:
        path: of its class, such as ``lightning.pytorch.loggers.WandbLogger``. Its module is imported, so give one that
            you trust.
        options: arguments of the class.
    """

    path: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class OptimiserConfig:
    """An optimiser.

    Args:
        name: of a class of ``torch.optim``, such as ``AdamW`` or ``Adafactor``, or the path of a class. Its module is
            imported, so give one that you trust.
        options: arguments of the class, except ``lr`` and ``weight_decay``, which are keys of ``training``.
    """

    name: str = "AdamW"
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TrainingConfig:
    """How a model is trained: optimiser, label smoothing, early stopping, and where it runs.

    Args:
        steps: updates of the parameters, at most.
        batch_size: examples of a batch, over all devices together.
        accumulate: batches per step, which do what one batch of all their examples does, with less memory.
        order: which examples meet in a batch: ``shuffled``, any; ``by-size``, those of like size, so that less is
            padded, but a batch is no fair sample where targets go with sizes; ``auto``, what the task needs: by size
            for texts, which are padded, shuffled for all else.
        optimiser: its ``name``, a class of ``torch.optim`` or the path of a class, and its ``options``.
        learning_rate: the highest, reached after the warm-up.
        warmup: steps in which the learning rate grows from 0.
        schedule: after the warm-up: ``inverse-sqrt`` falls with 1/sqrt(step), ``cosine`` reaches 0 at ``steps``,
            ``constant`` stays.
        weight_decay: of the optimiser, on matrices; vectors (biases, norms) are not decayed.
        clip: largest norm of the gradient; 0 for no limit.
        smoothing: e of label smoothing.
        precision: ``float32``, or ``bf16-mixed`` for bfloat16 where it is safe.
        validate_every: steps between validations.
        metric: what decides which model is best, on the validation split: ``loss``, or what the task has: ``bleu`` or
            ``chrf`` of graph to text, ``official`` of benchmarks.
        average: how many of the last validations have their weights averaged into the model that is scored and kept;
            1 for that of the last alone. Checkpoints grow by the weights of each.
        patience: validations without a better model before training stops; 0 trains all steps.
        checkpoint_every: steps between checkpoints; a killed run loses no more than these.
        log_every: steps between lines of the logs.
        loggers: further loggers of Lightning, besides ``metrics.csv`` and TensorBoard: of each the ``path`` of its
            class, such as ``lightning.pytorch.loggers.WandbLogger``, and its ``options``.
        accelerator: ``auto``, ``cpu`` or ``gpu``.
        devices: how many on each machine; above 1 each has a process.
        nodes: machines that train together, each by the same command; see the page on scale.
        strategy: of several devices: with ``ddp`` each has all parameters and optimiser states, with ``fsdp`` a part,
            except in a step.
        workers: processes per device that collate batches; 0 collates when a batch is due.
        jobs: processes that encode structures before training; the encodings do not depend on their number.
        seed: of the parameters' first values, the order of examples and dropout.
        deterministic: whether only those GPU kernels may be used that give the same bits each time.
    """

    steps: int = 20_000
    batch_size: int = 64
    accumulate: int = 1
    order: Literal["auto", "shuffled", "by-size"] = "auto"
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    learning_rate: float = 5e-4
    warmup: int = 1_000
    schedule: Literal["inverse-sqrt", "cosine", "constant"] = "inverse-sqrt"
    weight_decay: float = 0.01
    clip: float = 1.0
    smoothing: float = 0.1
    precision: Literal["float32", "bf16-mixed"] = "float32"
    validate_every: int = 500
    metric: str = "loss"
    average: int = 1
    patience: int = 10
    checkpoint_every: int = 500
    log_every: int = 50
    loggers: list[LoggerConfig] = field(default_factory=list)
    accelerator: Literal["auto", "cpu", "gpu"] = "auto"
    devices: int = 1
    nodes: int = 1
    strategy: Literal["ddp", "fsdp"] = "ddp"
    workers: int = 0
    jobs: int = 1
    seed: int = 1
    deterministic: bool = False

    inert: ClassVar[tuple[Inert, ...]] = (Inert(("strategy",), "there is one device", lambda c: c.processes == 1),)

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            self._require(each.name, not isinstance(value, float) or math.isfinite(value), "must be a finite number")
        counts = (
            "steps",
            "batch_size",
            "accumulate",
            "validate_every",
            "checkpoint_every",
            "log_every",
            "devices",
            "nodes",
            "average",
            "jobs",
        )
        for name in counts:
            self._require(name, getattr(self, name) >= 1, "must be 1 or more")
        for name in ("warmup", "weight_decay", "clip", "patience", "workers", "seed"):
            self._require(name, getattr(self, name) >= 0, "must not be negative")
        counted = dict.fromkeys(
            ("steps", "warmup", "validate_every", "patience", "checkpoint_every", "log_every"), STEPS
        )
        shared = {"batch_size": BATCH, "accumulate": BATCH, "devices": PROCESSES, "workers": PROCESSES}
        shared |= {"jobs": PROCESSES, "average": PROCESSES, "nodes": PROCESSES}
        bounded(self, "training.", **counted, **shared)
        self._require("seed", self.seed < 2**63, "must be below 2^63")
        self._require("learning_rate", self.learning_rate > 0, "must be above 0")
        self._require(
            "average", self.average == 1 or not self.shards, "must be 1 where parameters are shared out (fsdp)"
        )
        if self.shards and self.optimiser.name != "AdamW":
            raise ConfigError(
                f"training.optimiser.name is {self.optimiser.name!r}; it must be AdamW where parameters are shared out "
                f"(fsdp)"
            )
        self._require("smoothing", 0 <= self.smoothing < 1, "must be 0 or more and below 1")
        refuse_inert(self, "training.")

    @property
    def processes(self) -> int:
        """Devices of all machines; each has a process."""
        return self.nodes * self.devices

    @property
    def shards(self) -> bool:
        """Whether parameters are shared out to the devices."""
        return self.processes > 1 and self.strategy == "fsdp"

    def _require(self, name: str, holds: bool, rule: str) -> None:
        if not holds:
            raise ConfigError(f"training.{name} is {getattr(self, name)}; it {rule}")
