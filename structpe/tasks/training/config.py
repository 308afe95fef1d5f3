"""The configuration of a training."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, is_dataclass
from typing import Any, ClassVar, Literal, get_type_hints

from structpe.errors import ConfigError
from structpe.plain.options import BATCH, PROCESSES, STEPS, Inert, bounded, refuse_inert

__all__ = [
    "HardwareConfig",
    "LoggerConfig",
    "LogsConfig",
    "OptimiserConfig",
    "TrainingConfig",
    "ValidationConfig",
]


@dataclass(frozen=True)
class OptimiserConfig:
    """An optimiser, and its learning rate.

    Args:
        name: name of a class of ``torch.optim``, such as ``AdamW`` or ``Adafactor``, or the path of a class. Its module
            is imported, so give only one that you trust.
        options: arguments of the class, except ``lr`` and ``weight_decay``, which are ``learning_rate`` and
            ``weight_decay`` here.
        learning_rate: the highest learning rate, after the warm-up.
        warmup: number of steps in which the learning rate grows from 0.
        schedule: after the warm-up, ``inverse-sqrt`` falls with 1/sqrt(step), ``cosine`` falls to 0 at
            ``training.steps``, ``constant`` stays.
        weight_decay: weight decay of matrices; vectors (biases, norms) are not decayed.
        clip: largest norm of the gradient; 0 for no limit.
    """

    name: str = "AdamW"
    options: dict[str, Any] = field(default_factory=dict)
    learning_rate: float = 5e-4
    warmup: int = 1_000
    schedule: Literal["inverse-sqrt", "cosine", "constant"] = "inverse-sqrt"
    weight_decay: float = 0.01
    clip: float = 1.0

    def __post_init__(self) -> None:
        where, any_size = "training.optimiser.", (0, math.inf)
        if self.learning_rate <= 0:
            raise ConfigError(f"{where}learning_rate is {self.learning_rate}; it must be above 0")
        bounded(self, where, learning_rate=any_size, warmup=(0, STEPS), weight_decay=any_size, clip=any_size)


@dataclass(frozen=True)
class ValidationConfig:
    """Validations, the model that they select, and when they end the training.

    Args:
        every: number of steps between validations.
        metric: the metric on the validation split that selects the best model: ``loss``, or ``bleu`` or ``chrf`` for
            graph to text, ``official`` for benchmarks.
        patience: number of validations without a better model before training stops; 0 trains all steps.
        average: number of last validations whose weights are averaged to the model that is scored and kept; 1 for the
            last alone. Each adds its weights to the checkpoints.
    """

    every: int = 500
    metric: str = "loss"
    patience: int = 10
    average: int = 1

    def __post_init__(self) -> None:
        bounded(self, "training.validation.", every=(1, STEPS), patience=(0, STEPS), average=(1, PROCESSES))


@dataclass(frozen=True)
class HardwareConfig:
    """Where a training runs: it says how fast, and not what is computed, except for rounding and dropout.

    Args:
        accelerator: ``auto``, ``cpu`` or ``gpu``.
        devices: number of devices on each machine; several have a process each.
        nodes: number of machines, which run the same command; see the page on scale.
        strategy: for several devices: with ``ddp`` each holds all parameters and optimiser states, with ``fsdp`` a
            shard, except during a step.
        precision: ``float32``, or ``bf16-mixed`` for bfloat16 where it is safe.
        workers: number of processes per device that collate batches; with 0, the training process does.
        jobs: number of processes that encode structures before training; the encodings do not depend on it.
        deterministic: whether to use only GPU kernels that give the same bits each time.
    """

    accelerator: Literal["auto", "cpu", "gpu"] = "auto"
    devices: int = 1
    nodes: int = 1
    strategy: Literal["ddp", "fsdp"] = "ddp"
    precision: Literal["float32", "bf16-mixed"] = "float32"
    workers: int = 0
    jobs: int = 1
    deterministic: bool = False

    inert: ClassVar[tuple[Inert, ...]] = (Inert(("strategy",), "there is one device", lambda c: c.processes == 1),)

    def __post_init__(self) -> None:
        where, some = "training.hardware.", (1, PROCESSES)
        bounded(self, where, devices=some, nodes=some, jobs=some, workers=(0, PROCESSES))
        refuse_inert(self, where)

    @property
    def processes(self) -> int:
        """Number of devices on all machines; each has a process."""
        return self.nodes * self.devices

    @property
    def shards(self) -> bool:
        """Whether parameters are sharded."""
        return self.processes > 1 and self.strategy == "fsdp"


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
class LogsConfig:
    """The logs of a training.

    Args:
        every: number of steps between lines of the logs.
        loggers: loggers of Lightning, in addition to ``metrics.csv`` and TensorBoard: for each the ``path`` of its
            class, such as ``lightning.pytorch.loggers.WandbLogger``, and its ``options``.
    """

    every: int = 50
    loggers: list[LoggerConfig] = field(default_factory=list)

    def __post_init__(self) -> None:
        bounded(self, "training.logs.", every=(1, STEPS))


@dataclass(frozen=True)
class TrainingConfig:
    """The configuration of a training. Trainings of texts and of predictions each have their own defaults.

    Args:
        steps: largest number of updates of the parameters.
        batch_size: number of examples per batch, over all devices.
        accumulate: number of batches per step, equivalent to one batch of all their examples, with less memory.
        order: how examples are grouped to batches: ``shuffled``, at random; ``by-size``, by similar size, with less
            padding, but a batch is not a fair sample if targets correlate with sizes; ``auto``, by size for texts,
            which are padded, and shuffled otherwise.
        seed: seed of the initial parameters, the order of examples and dropout.
        checkpoint_every: number of steps between checkpoints; a killed run loses no more steps.
        optimiser: the optimiser, and its learning rate.
        validation: validations, and the model that they select.
        hardware: where the training runs.
        logs: what is logged.
    """

    steps: int = 20_000
    batch_size: int = 64
    accumulate: int = 1
    order: Literal["auto", "shuffled", "by-size"] = "auto"
    seed: int = 1
    checkpoint_every: int = 500
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    validation: ValidationConfig = field(default_factory=ValidationConfig)
    hardware: HardwareConfig = field(default_factory=HardwareConfig)
    logs: LogsConfig = field(default_factory=LogsConfig)

    def __post_init__(self) -> None:
        bounded(self, "training.", steps=(1, STEPS), checkpoint_every=(1, STEPS), seed=(0, 2**63 - 1))
        bounded(self, "training.", batch_size=(1, BATCH), accumulate=(1, BATCH))
        for name, hint in get_type_hints(type(self)).items():
            # A group of another task would have other defaults, which nobody would notice.
            if isinstance(hint, type) and is_dataclass(hint) and not isinstance(given := getattr(self, name), hint):
                raise ConfigError(f"training.{name} is a {type(given).__name__}; give a {hint.__name__}")
        if self.hardware.shards:
            for key, given, only in (
                ("validation.average", self.validation.average, 1),
                ("optimiser.name", self.optimiser.name, "AdamW"),
            ):
                if given != only:
                    wrong = f"training.{key} is {given!r}"
                    raise ConfigError(f"{wrong}; it must be {only} where parameters are shared out (fsdp)")
