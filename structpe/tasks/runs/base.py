"""The skeleton of a run: check, lock, learn encodings, fit, save, resume.

The folder of every run:

=====================  ==================================================================================
config.yaml            the configuration, every key
...                    what the run learned of the training data before training, as its kind says
SHA256SUMS             checksums of these
model.safetensors      weights of the best model so far
checkpoints/step-N/    what training goes on from: ``tensors.safetensors`` and ``state.json``, no pickle
metrics.csv            step, metric, value
tensorboard/           the same for TensorBoard
result.json            how the run ended; there is none before
=====================  ==================================================================================
"""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from torch import nn

from structpe.checksums import SUMS, seal
from structpe.data.digests import Content
from structpe.data.prepare import AFRESH
from structpe.errors import ConfigError, MissingExtra, StoreError, undamaged
from structpe.files import atomic_write, left_in
from structpe.registry import Registry
from structpe.structure import Ids
from structpe.tasks import config as configurations
from structpe.tasks.training import folder as folders
from structpe.tasks.training.batches import Batches, Plan
from structpe.tasks.training.config import TrainingConfig
from structpe.tasks.training.folder import InUse, clear, learned, lock
from structpe.tasks.training.progress import say
from structpe.tasks.training.result import Result
from structpe.tasks.training.task import Task
from structpe.tasks.training.weights import WEIGHTS, load_weights

__all__ = ["RUNS", "Run", "Work", "load_run", "run_of", "train"]

RUNS: Registry[type[Run[Any, Any, Any, Any]]] = Registry("structpe.tasks.runs", "kind of run", ConfigError)
"""Every kind of run by its name."""


class Configured(Protocol):
    """What the configurations of all runs have."""

    @property
    def out(self) -> str:
        """The folder of the run."""

    @property
    def training(self) -> TrainingConfig:
        """How the model is trained."""


class Ended(Protocol):
    """What a run came to."""

    def save(self, folder: Path) -> None:
        """Write it; from then on the run is finished."""

    @classmethod
    def load(cls, folder: Path) -> Self | None:
        """Of a finished run; None where training has not ended."""


C = TypeVar("C", bound=Configured)
D = TypeVar("D")
L = TypeVar("L")
R = TypeVar("R", bound=Ended)


@dataclass(frozen=True, eq=False)
class Work(Generic[R]):
    """What is trained, and on what.

    Attributes:
        task: with its model.
        training: how.
        examples: the training examples.
        sizes: of each, whatever makes it costly.
        collate: from some of them to a batch.
        content: digests of all that the run follows from besides its configuration.
        end: from how training went to what the run came to.
    """

    task: Task
    training: TrainingConfig
    examples: Sequence[Any]
    sizes: Ids
    collate: Callable[[Sequence[Any]], Any]
    content: Content
    end: Callable[[Result], R]


class Run(ABC, Generic[C, D, L, R]):
    """A training in its folder. ``C`` is its configuration, ``D`` its data, ``L`` what it learns of them beforehand.

    Args:
        config: everything that the run follows from.
        folder: where it is; by default ``config.out``.

    Attributes:
        result: the class of what it comes to.
        learns: the files that hold what is learned before training.
        free: keys of the configuration that may change when a run goes on, as nothing in training follows from them.
        extra: what must be installed to train.
        keeps_checkpoints: whether a finished run has its last checkpoints.
    """

    name: ClassVar[str]
    configured: ClassVar[type[Any]]
    result: ClassVar[type[Any]]
    learns: ClassVar[tuple[str, ...]]
    free: ClassVar[tuple[str, ...]]
    extra: ClassVar[str]
    keeps_checkpoints: ClassVar[bool] = False

    def __init_subclass__(cls, name: str = "", **options: Any) -> None:
        super().__init_subclass__(**options)
        if name:
            cls.name = name
            RUNS.add(name, cls)

    def __init__(self, config: C, folder: Path | None = None) -> None:
        self.config, self.folder = config, folder or Path(config.out)

    @classmethod
    def of(cls, folder: str | Path) -> Self:
        """The run in a folder.

        Raises:
            StoreError: the folder holds none, or a file is damaged.
        """
        folder = _with_config(folder)
        folders.unbroken(folder, cls._sealed())
        return cls(configurations.load(cls.configured, folder / "config.yaml"), folder)

    # --- what a kind of run says ---

    @abstractmethod
    def check(self) -> None:
        """Check the configuration as far as that is possible before any data are read.

        Raises:
            PositionError: there is no such position model, encoding or option, or it does not fit.
            ConfigError: something else does not make sense, or there are fewer GPUs than are asked for.
        """

    @abstractmethod
    def read(self) -> D:
        """The data."""

    @abstractmethod
    def learn(self, data: D) -> L:
        """What is learned of the training data before training, such as a vocabulary and labels of encodings."""

    @abstractmethod
    def write(self, learned: L) -> None:
        """Write the files ``learns``."""

    @abstractmethod
    def restore(self) -> L:
        """What :meth:`write` wrote.

        Raises:
            StoreError: a file is missing or damaged.
        """

    @abstractmethod
    def work(self, data: D, learned: L) -> Work[R]:
        """The model and the examples, as they are before training."""

    @abstractmethod
    def load(self) -> tuple[nn.Module, Any]:
        """The best model so far, ready for use, and what else its use needs.

        Raises:
            StoreError: training has not yet written a model, or a file is damaged.
        """

    # --- what all have ---

    def train(self, fresh: bool = False) -> R:
        """Train to the end. A run that was killed goes on from its newest checkpoint, and ends as if it had not been.

        On the CPU, with the same number of threads, the resumed run gives the same bits.

        Args:
            fresh: remove what the folder holds of an earlier run, and begin anew. It is removed when the new
                configuration is known to make sense, and its data are read and encoded.

        Raises:
            ConfigError: the folder holds a run of another configuration, another process trains in it, or the model
                does not suit the data.
            PositionError, EncodingError: as in :meth:`check`, or a structure does not suit the position model.
            StoreError: checkpoints are damaged, or the data are not those that the run began with.
            ReadError: a file of the data is missing or bad.
            MissingExtra: Lightning is not installed.
        """
        self.check()
        with lock(self.folder):
            fresh = fresh or not learned(self.folder)
            if not fresh:
                self.same()
                if (done := self._done()) is not None:
                    self._tidy()
                    told = f"{done}; to train again, ask for a fresh one or another folder"
                    say(f"{self.folder}: this run is finished: {told}")
                    return done
            data = self.read()
            found = self.learn(data) if fresh else self.restore()
            work = self.work(data, found)
            if fresh:
                self.begin(found)
            ended = work.end(self._fit(work))
            ended.save(self.folder)
            self._tidy()
            say(f"{self.folder}: finished: {ended}")
            return ended

    def same(self) -> None:
        """Check that the run in the folder is one of this configuration.

        Raises:
            ConfigError: it is one of another; the keys that differ are named.
            StoreError: it is not known of which, or a file is damaged.
        """
        folders.unbroken(self.folder, self._sealed())
        folders.same(self.folder, self.config, partial(configurations.load, type(self.config)), self.free)

    def finished(self) -> bool:
        """Whether the run has ended; what a process that was killed at its very end has left is removed.

        Raises:
            StoreError: its result is damaged.
        """
        if self._done() is None:
            return False
        if not self.keeps_checkpoints and ((self.folder / "checkpoints").exists() or left_in(self.folder)):
            with suppress(InUse), lock(self.folder):  # another process is about to remove it
                self._tidy()
        return True

    def best(self, model: nn.Module) -> None:
        """Give a model the best weights so far, and set it to evaluation.

        Raises:
            StoreError: training has not yet written them, or they are damaged.
        """
        file = self.folder / WEIGHTS
        with undamaged(file, AFRESH):
            model.load_state_dict(load_weights(file, AFRESH))
        model.eval()

    def _done(self) -> R | None:
        done: R | None = self.result.load(self.folder)
        return done

    @classmethod
    def _sealed(cls) -> tuple[str, ...]:
        """Files that are written when a run begins, and stay as they are."""
        return ("config.yaml", *cls.learns)

    def begin(self, found: L) -> None:
        """Remove what the folder holds of an earlier run, and write down all that a new one follows from."""
        clear(self.folder, ("result.json", *self._sealed(), SUMS, WEIGHTS, "metrics.csv"))
        self.write(found)
        atomic_write(self.folder / "config.yaml", lambda hidden: configurations.save(self.config, hidden))
        seal(self.folder, self._sealed())

    def _fit(self, work: Work[R]) -> Result:
        try:
            from structpe.tasks.training.fit import fit  # Lightning takes seconds to import
        except ModuleNotFoundError as missing:
            raise MissingExtra(str(missing.name), self.extra) from missing
        training = work.training
        plan = Plan(work.sizes, training.batch_size, training.seed, training.devices, work.content)
        count = training.steps * training.accumulate
        batches = Batches(work.examples, plan, work.collate, count, workers=training.workers)
        return fit(work.task, batches, training, self.folder)

    def _tidy(self) -> None:
        """Remove the checkpoints of a finished run, also of a process that was killed at its very end."""
        if not self.keeps_checkpoints:
            shutil.rmtree(self.folder / "checkpoints", ignore_errors=True)


def _with_config(folder: str | Path) -> Path:
    if not (Path(folder) / "config.yaml").is_file():
        raise StoreError(f"{folder} holds no config.yaml; give the folder of a run, the 'out' of its configuration")
    return Path(folder)


def run_of(config: Any) -> Run[Any, Any, Any, Any]:
    """The run of a configuration.

    Raises:
        ConfigError: no kind of run has such a configuration.
    """
    for kind in RUNS.values():
        if isinstance(config, kind.configured):
            return kind(config)
    known = ", ".join(kind.configured.__name__ for kind in RUNS.values())
    raise ConfigError(f"{type(config).__name__} is the configuration of no kind of run; give one of {known}")


def load_run(folder: str | Path) -> Run[Any, Any, Any, Any]:
    """The run in a folder, of any kind.

    Raises:
        StoreError: the folder holds none, or a file is damaged.
    """
    folder = _with_config(folder)
    for kind in RUNS.values():
        if any((folder / name).exists() for name in kind.learns):
            return kind.of(folder)
    known = " or ".join(f"{name} ({', '.join(kind.learns)})" for name, kind in RUNS.items())
    raise StoreError(f"{folder} holds no files of a run of {known}; give the folder of one")


def train(config: Any, fresh: bool = False) -> Any:
    """Train as a configuration says, of any kind; see :meth:`Run.train`.

    Returns:
        What the run came to: a :class:`~structpe.tasks.training.result.Result` of graph to text, an
        :class:`~structpe.tasks.prediction.outcome.Outcome` of prediction.
    """
    return run_of(config).train(fresh)
