"""Output and costs of a training: progress bar, logs, loggers, time and memory."""

from __future__ import annotations

import csv
import logging
import re
import resource
import statistics
import sys
import time
import warnings
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import Logger
from lightning.pytorch.utilities import rank_zero_only

from structpe.errors import ConfigError, located, reason_of, undamaged
from structpe.system.files import atomic_write
from structpe.system.progress import ProgressBars
from structpe.tasks.training.config import LoggerConfig
from structpe.tasks.training.lightning_module import ends_step

__all__ = ["Bar", "Cost", "CsvLog", "Silence", "extra_loggers", "peak_memory", "silenced"]


REMARKS = "lightning.pytorch.utilities.rank_zero"
IRRELEVANT = (
    r"`isinstance\(treespec, LeafSpec\)` is deprecated",  # Lightning's own use of torch
)


@contextmanager
def silenced() -> Iterator[None]:
    """Silence Lightning's remarks and irrelevant warnings inside this block."""
    logger = logging.getLogger(REMARKS)
    level = logger.level
    try:
        with warnings.catch_warnings():
            _silence()
            yield
    finally:
        logger.setLevel(level)


class Silence(Callback):
    """Silence the same messages in the processes of several devices, which start with settings of their own."""

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        _silence()


def _silence() -> None:
    logging.getLogger(REMARKS).setLevel(logging.WARNING)
    for irrelevant in IRRELEVANT:
        warnings.filterwarnings("ignore", message=irrelevant)


EVERY = 10
"""Steps between two reads of the loss, and between two timed steps on a GPU, as each waits for the GPU."""


class Bar(Callback):
    """A progress bar of steps, with the loss of the last batch.

    Lightning's own bar counts epochs, but here a training is one epoch.
    """

    def __init__(self) -> None:
        self._bars: ProgressBars | None = None

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if trainer.is_global_zero:
            self._bars = ProgressBars(transient=False).__enter__()
            self._bars.show("steps", trainer.global_step, trainer.max_steps)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if self._bars is not None:
            note = None if batch_idx % EVERY else f"loss {float(outputs['total'] / outputs['count']):.3f}"
            self._bars.show("steps", trainer.global_step, trainer.max_steps, note)

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        self.teardown(trainer, pl_module, "fit")

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        if self._bars is not None:
            self._bars.__exit__()
            self._bars = None


class CsvLog(Logger):
    """A log with one line ``step,metric,value`` per number, each written at once.

    Lightning's own logger starts an empty file when a run is resumed. This one drops the lines after the checkpoint,
    whose steps are repeated: at the end the file equals that of a run that was never killed.

    Args:
        path: the file.
        step: step of the checkpoint that training resumes from; 0 starts a new log.
    """

    def __init__(self, path: Path, step: int) -> None:
        super().__init__()
        self.path, self.step = path, step

    @property
    def name(self) -> str:
        return "csv"

    @property
    def version(self) -> str:
        return ""

    @rank_zero_only
    def begin(self) -> None:
        """Write the header and the lines up to the checkpoint."""
        with undamaged(self.path, "remove it; the log of earlier steps is then lost, the training goes on"):
            text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        old = list(csv.reader(text.splitlines()))
        kept = [row for row in old[1:] if len(row) == 3 and row[0].isdigit() and int(row[0]) <= self.step]

        def write(path: Path) -> None:
            with path.open("w", newline="") as file:
                csv.writer(file).writerows([("step", "metric", "value"), *kept])

        atomic_write(self.path, write)

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        with self.path.open("a", newline="") as file:
            csv.writer(file).writerows((step, name, repr(float(value))) for name, value in metrics.items())

    @rank_zero_only
    def log_hyperparams(self, params: Any, *args: Any, **kwargs: Any) -> None:
        """Do nothing: the configuration is in the same folder."""
        del params, args, kwargs


def extra_loggers(configs: Sequence[LoggerConfig]) -> list[Logger]:
    """The loggers of a configuration.

    Raises:
        ConfigError: a path is not a logger of Lightning, or its class does not take the options.
    """
    made = []
    for number, config in enumerate(configs):
        with located(f"training.logs.loggers[{number}]"):
            made.append(_built(_found(config.path), config))
    return made


def _found(path: str) -> Any:
    module, _, name = path.rpartition(".")
    if not module or not all(part.isidentifier() for part in path.split(".")):
        raise ConfigError(f"{path!r} is not the path of a class; give one such as lightning.pytorch.loggers.CSVLogger")
    try:
        found = getattr(import_module(module), name, None)
    except ImportError as error:
        raise ConfigError(
            f"{path} cannot be imported ({reason_of(error)}); check the path, and that its package is installed"
        ) from None
    if not (isinstance(found, type) and issubclass(found, Logger)):
        raise ConfigError(f"{path} is not a logger; give the path of a subclass of lightning.pytorch.loggers.Logger")
    return found


def _built(cls: Any, config: LoggerConfig) -> Logger:
    try:
        made: Logger = cls(**config.options)
    except Exception as error:  # of any kind, from another library
        raise ConfigError(
            f"{config.path} does not take these options, or lacks something ({reason_of(error)}); change its options, "
            f"or install what it needs"
        ) from error
    return made


PROCESS, PEAK = Path("/proc/self/status"), re.compile(r"VmHWM:\s*(\d+) kB")
"""The peak memory of this process in Linux. ``getrusage`` would return that of its parent, if larger."""
KEPT = 1000
"""Number of newest steps whose times are kept; their median is reported."""
WARM_UP = 5
"""Number of first steps that are not timed, as they load libraries and fill caches."""


class Cost(Callback):
    """Measures time and memory of a training. It runs before callbacks whose work does not belong to a step.

    A GPU is synchronised, but only in some steps. The time of a step includes all its batches, if gradients are
    accumulated, but not making them.
    """

    def __init__(self) -> None:
        self.times: deque[float] = deque(maxlen=KEPT)
        self.median, self.before, self.cpu, self.memory = 0.0, 0.0, 0.0, 0
        self._began = self._began_cpu = self._batch = self._step = 0.0

    def state_dict(self) -> dict[str, Any]:
        times = list(self.times)[WARM_UP:]
        if not times and not self.median:
            times = list(self.times)  # a very short training
        return {
            "step_seconds": statistics.median(times) if times else self.median,
            "seconds": self.before + time.monotonic() - self._began,
            "cpu_seconds": self.cpu + time.process_time() - self._began_cpu,
            "peak_bytes": max(self.memory, peak_memory()),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.median, self.before = state_dict["step_seconds"], state_dict["seconds"]
        self.cpu, self.memory = state_dict["cpu_seconds"], state_dict["peak_bytes"]

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._began, self._began_cpu = time.monotonic(), time.process_time()

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        if _timed(pl_module.device, trainer.global_step):
            self._batch = time.perf_counter()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        ends = ends_step(trainer, batch_idx)
        if _timed(pl_module.device, trainer.global_step - ends):
            self._step += time.perf_counter() - self._batch
            if ends:
                self.times.append(self._step)
                self._step = 0.0


def _timed(device: torch.device, step: int) -> bool:
    """Whether a step is timed; if so, wait until a GPU has finished."""
    if device.type == "cpu":
        return True
    if step % EVERY:
        return False
    torch.accelerator.synchronize(device)
    return True


def peak_memory() -> int:
    """Peak memory of this process, or of the GPU, in bytes."""
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated():
        return int(torch.cuda.max_memory_allocated())
    if PROCESS.exists():
        return int(PEAK.findall(PROCESS.read_text())[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
