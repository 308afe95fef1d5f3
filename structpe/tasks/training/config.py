"""The configuration of a training."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal

from structpe.errors import ConfigError
from structpe.plain.options import BATCH, PROCESSES, STEPS, Inert, bounded, refuse_inert

__all__ = ["LoggerConfig", "OptimiserConfig", "TrainingConfig"]


@dataclass(frozen=True)
class LoggerConfig:
    """A logger of Lightning.

    Args:
        path: path of the class, such as ``lightning.pytorch.loggers.WandbLogger``. Its module is imported, so give only
            one that you trust.
        options: arguments of the class.
    """

    path: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class OptimiserConfig:
    """An optimiser.

    Args:
        name: name of a class of ``torch.optim``, such as ``AdamW`` or ``Adafactor``, or the path of a class. Its module
            is imported, so give only one that you trust.
        options: arguments of the class, except ``lr`` and ``weight_decay``, which are keys of ``training``.
    """

    name: str = "AdamW"
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TrainingConfig:
    """The configuration of a training: optimiser, label smoothing, early stopping and hardware.

    Args:
        steps: largest number of updates of the parameters.
        batch_size: number of examples per batch, over all devices.
        accumulate: number of batches per step, equivalent to one batch of all their examples, with less memory.
        order: how examples are grouped to batches: ``shuffled``, at random; ``by-size``, by similar size, with less
            padding, but a batch is not a fair sample if targets correlate with sizes; ``auto``, by size for texts,
            which are padded, and shuffled otherwise.
        optimiser: its ``name``, a class of ``torch.optim`` or the path of a class, and its ``options``.
        learning_rate: the highest learning rate, after the warm-up.
        warmup: number of steps in which the learning rate grows from 0.
        schedule: after the warm-up, ``inverse-sqrt`` falls with 1/sqrt(step), ``cosine`` falls to 0 at ``steps``,
            ``constant`` stays.
        weight_decay: weight decay of matrices; vectors (biases, norms) are not decayed.
        clip: largest norm of the gradient; 0 for no limit.
        smoothing: e of label smoothing.
        precision: ``float32``, or ``bf16-mixed`` for bfloat16 where it is safe.
        validate_every: number of steps between validations.
        metric: the metric on the validation split that selects the best model: ``loss``, or ``bleu`` or ``chrf`` for
            graph to text, ``official`` for benchmarks.
        average: number of last validations whose weights are averaged to the model that is scored and kept; 1 for the
            last alone. Each adds its weights to the checkpoints.
        patience: number of validations without a better model before training stops; 0 trains all steps.
        checkpoint_every: number of steps between checkpoints; a killed run loses no more steps.
        log_every: number of steps between lines of the logs.
        loggers: loggers of Lightning, in addition to ``metrics.csv`` and TensorBoard: for each the ``path`` of its
            class, such as ``lightning.pytorch.loggers.WandbLogger``, and its ``options``.
        accelerator: ``auto``, ``cpu`` or ``gpu``.
        devices: number of devices on each machine; several have a process each.
        nodes: number of machines, which run the same command; see the page on scale.
        strategy: for several devices: with ``ddp`` each holds all parameters and optimiser states, with ``fsdp`` a
            shard, except during a step.
        workers: number of processes per device that collate batches; with 0, the training process does.
        jobs: number of processes that encode structures before training; the encodings do not depend on it.
        seed: seed of the initial parameters, the order of examples and dropout.
        deterministic: whether to use only GPU kernels that give the same bits each time.
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
        positive = "steps batch_size accumulate validate_every checkpoint_every log_every devices nodes average jobs"
        for name in positive.split():
            self._require(name, getattr(self, name) >= 1, "must be 1 or more")
        for name in ("warmup", "weight_decay", "clip", "patience", "workers", "seed"):
            self._require(name, getattr(self, name) >= 0, "must not be negative")
        of_steps = ("steps", "warmup", "validate_every", "patience", "checkpoint_every", "log_every")
        of_processes = ("devices", "workers", "jobs", "average", "nodes")
        limits = dict.fromkeys(of_steps, STEPS) | dict.fromkeys(of_processes, PROCESSES)
        bounded(self, "training.", batch_size=BATCH, accumulate=BATCH, **limits)
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
        """Number of devices on all machines; each has a process."""
        return self.nodes * self.devices

    @property
    def shards(self) -> bool:
        """Whether parameters are sharded."""
        return self.processes > 1 and self.strategy == "fsdp"

    def _require(self, name: str, holds: bool, rule: str) -> None:
        if not holds:
            raise ConfigError(f"training.{name} is {getattr(self, name)}; it {rule}")
