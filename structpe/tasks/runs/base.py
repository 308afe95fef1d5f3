"""The skeleton of a run: check, lock, learn encodings, fit, save, resume.

The folder of every run:

=====================  ==================================================================================
config.yaml            the configuration, every key
...                    what the run learned from the training data before training; see its kind
SHA256SUMS             checksums of these
structpe.json          the manifest: what the run writes, and may replace or remove
model.safetensors      weights of the best model so far
checkpoints/step-N/    state to resume training from: ``tensors.safetensors`` and ``state.json``, no pickle
metrics.csv            step, metric, value
tensorboard/           the same for TensorBoard
result.json            the result; missing until the run is finished
=====================  ==================================================================================
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import torch
from torch import nn

from structpe.data.bpe_dropout import Drawn
from structpe.data.digests import Content
from structpe.data.prepare import TRAIN_AFRESH
from structpe.errors import ConfigError, MissingExtra, StoreError, undamaged
from structpe.plain.inert import Inert, recorded, refuse_inert
from structpe.registry import Registered, Registry
from structpe.structure import Ids
from structpe.system.files import SUMS, atomic_write, left_in, seal, sums_of, wrong
from structpe.system.printing import say
from structpe.tasks import config as configurations
from structpe.tasks.config import Reads
from structpe.tasks.training import folder as folders
from structpe.tasks.training.batches import Batches, BatchPlan
from structpe.tasks.training.config import TrainingConfig
from structpe.tasks.training.fit import check_fit
from structpe.tasks.training.folder import InUse, learned, lock, number
from structpe.tasks.training.optimiser import check_optimiser
from structpe.tasks.training.result import FILE, WEIGHTS, Result, StoredResult, load_weights, recorded_digest
from structpe.tasks.training.task import Task

__all__ = ["RUNS", "Run", "TrainingSetup", "load", "load_run", "run_of", "train"]

RUNS: Registry[type[Run[Any, Any, Any, Any]]] = Registry("structpe.tasks.runs", "kind of run", ConfigError)
"""Every kind of run by its name."""


class RunConfig(Protocol):
    """Fields of the configurations of all runs."""

    @property
    def out(self) -> str:
        """The folder of the run."""

    @property
    def training(self) -> TrainingConfig:
        """How the model is trained."""


C = TypeVar("C", bound=RunConfig)
D = TypeVar("D")
L = TypeVar("L")
M = TypeVar("M", bound=nn.Module)
R = TypeVar("R", bound=StoredResult)


@dataclass(frozen=True, eq=False)
class TrainingSetup(Generic[R]):
    """What to train, and on which data.

    Attributes:
        task: the model and its loss.
        training: how to train it.
        examples: the training examples, or those of each epoch.
        sizes: cost of each example, such as its number of units.
        collate: from some of them to a batch.
        content: digests of everything that the run depends on, except its configuration.
        end: makes the result of the run from that of its training.
    """

    task: Task
    training: TrainingConfig
    examples: Sequence[Any] | Drawn[Any]
    sizes: Ids
    collate: Callable[[Sequence[Any]], Any]
    content: Content
    end: Callable[[Result], R]


class Run(Registered, ABC, Generic[C, D, L, R]):
    """A training in a folder. ``C`` is its configuration, ``D`` its data, ``L`` what it learns before training.

    Args:
        config: the configuration.
        folder: the folder of the run; by default ``config.out``.

    Attributes:
        configured: the class of its configuration.
        result: the class of its result.
        learns: names of the files with what it learns before training.
        free: keys of the configuration that may change when a run resumes. Training does not depend on them, except
            that an accelerator rounds and draws in its own way.
        extra: the extra to install for training.
        keeps_checkpoints: whether a finished run keeps its last checkpoints.
    """

    registry = RUNS
    configured: ClassVar[type[Any]]
    result: ClassVar[type[Any]]
    learns: ClassVar[tuple[str, ...]]
    free: ClassVar[tuple[str, ...]] = ("training.accelerator", "training.workers", "training.jobs", "training.loggers")
    extra: ClassVar[str]
    keeps_checkpoints: ClassVar[bool] = False

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
        with recorded():
            return cls(configurations.load(cls.configured, folder / "config.yaml"), folder)

    # --- what each kind of run defines ---

    @abstractmethod
    def check(self) -> None:
        """Check the configuration as far as possible without reading data.

        Raises:
            PositionError: there is no such position model, encoding or option, or it does not fit.
            ConfigError: another option is invalid, or there are fewer GPUs than the configuration needs.
        """

    @abstractmethod
    def read(self) -> D:
        """The data."""

    @abstractmethod
    def learn(self, data: D) -> L:
        """What is learned from the training data before training, such as a vocabulary or labels of encodings."""

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
    def work(self, data: D, learned: L) -> TrainingSetup[R]:
        """The model and the examples, as they are before training."""

    @abstractmethod
    def reads(self) -> Reads:
        """How its data are read."""

    @abstractmethod
    def load(self) -> tuple[nn.Module, Any]:
        """The best model so far, in evaluation mode, and what else is needed to use it.

        Raises:
            StoreError: training has not yet written a model, or a file is damaged.
        """

    @abstractmethod
    def ready(self, device: torch.device) -> Any:
        """The best model so far as an object with one method, which applies it to new structures.

        Args:
            device: where the model is to be.

        Raises:
            StoreError: as for :meth:`load`.
        """

    # --- what all runs share ---

    @property
    def kept(self) -> C:
        """The configuration as ``config.yaml`` keeps it."""
        return self.config

    def train(self, fresh: bool = False) -> R:
        """Train to the end. A run that was killed resumes from its newest checkpoint and gives the same result.

        On the CPU, with the same number of threads, the results are equal bit by bit.

        Args:
            fresh: remove an earlier run in the folder and start again. It is removed only after the new configuration
                is checked and its data are read and encoded, and nothing but that run is.

        Raises:
            ConfigError: the folder holds a run of another configuration, or files that no run has written and this one
                would replace; another process trains in it; or the model does not suit the data.
            PositionError, EncodingError: as in :meth:`check`, or a structure does not suit the position model.
            StoreError: checkpoints are damaged, or the data are not those that the run began with.
            ReadError: a file of the data is missing or bad.
            MissingExtra: Lightning is not installed.
        """
        self.check()
        check_optimiser(self.config.training)
        if number(self.config.training):
            return self._help(fresh)
        folders.check_free(self.folder, self.writes(), self.owned())
        with lock(self.folder):
            fresh = fresh or not learned(self.folder)
            if not fresh and (done := self._finished()) is not None:
                self._tidy()
                return done
            work, found = self._prepared(fresh)
            if fresh:
                self.begin(found)
            ended = work.end(self._fit(work, fresh))
            ended.save(self.folder, {"run": self.identity, "weights": recorded_digest(self.folder / WEIGHTS)})
            self._tidy()
            say(f"{self.folder}: finished: {ended}")
            return ended

    def _help(self, fresh: bool) -> R:
        """Train on a machine other than the first, which writes all files, and wait for its result."""
        fresh = fresh or not learned(self.folder)
        if not fresh and (done := self._finished()) is not None:
            return done
        self._train(self._prepared(fresh)[0], fresh)
        with lock(self.folder, waits=True):
            if (ended := self._done()) is None:
                raise StoreError("the first machine has ended without a result; start all again").at(self.folder)
            return ended

    def _finished(self) -> R | None:
        """The result of an earlier run of the same configuration, if it is finished."""
        self.same()
        if (done := self._done()) is not None:
            say(f"{self.folder}: this run is finished: {done}; to train again, ask for a fresh one or another folder")
        return done

    def _prepared(self, fresh: bool) -> tuple[TrainingSetup[R], L]:
        data = self.read()
        found = self.learn(data) if fresh else self.restore()
        return self.work(data, found), found

    def same(self) -> None:
        """Check that the run in the folder is one of this configuration.

        Raises:
            ConfigError: it is one of another; the keys that differ are named.
            StoreError: it is not known of which, or a file is damaged.
        """
        folders.unbroken(self.folder, self._sealed())
        with recorded():
            folders.same(self.folder, self.kept, self._kept_in, self.free)

    def _kept_in(self, file: Path) -> C:
        return type(self)(configurations.load(type(self.config), file), self.folder).kept

    def finished(self) -> bool:
        """Whether the run is finished. Files that a process left when it was killed at the very end are removed.

        Raises:
            StoreError: its result is damaged.
        """
        if self._done() is None:
            return False
        if not self.keeps_checkpoints and ((self.folder / "checkpoints").exists() or left_in(self.folder)):
            with suppress(InUse), lock(self.folder):  # another process is about to remove it
                self._tidy()
        return True

    def filled(self, make: Callable[[], M]) -> M:
        """A model with the best weights so far; a :class:`StoreError` before it is made if they do not fit it."""
        check_fit(make, self.folder / WEIGHTS, TRAIN_AFRESH)
        model = make()
        self.best(model)
        return model

    def best(self, model: nn.Module) -> None:
        """Give a model the best weights so far, and set it to evaluation.

        Raises:
            StoreError: training has not yet written them, they are damaged or those of another run, or the result of
                the run is that of others.
        """
        file = self.folder / WEIGHTS
        with undamaged(file, TRAIN_AFRESH):
            model.load_state_dict(load_weights(file, TRAIN_AFRESH, self.identity))
        if (scored := self.result.of(self.folder).get("weights")) and scored != recorded_digest(file):
            raise StoreError(f"the result of the run is that of other weights than these; {TRAIN_AFRESH}").at(file)
        model.eval()

    @property
    def identity(self) -> str:
        """A digest of the configuration, but for ``free`` keys, and of what was learned; empty before it is written."""
        if not all((self.folder / name).is_file() for name in self.learns):
            return ""
        plain = configurations.to_dict(self.kept)
        for key in self.free:
            *groups, last = key.split(".")
            reduce(getitem, groups, plain).pop(last, None)
        text = json.dumps(plain, sort_keys=True) + sums_of(self.folder, self.learns)
        return hashlib.sha256(text.encode()).hexdigest()

    def _done(self) -> R | None:
        done: R | None = self.result.load(self.folder)
        if done is not None and self.result.of(self.folder).get("run", self.identity) != self.identity:
            raise StoreError(f"the result is that of another run; {self.result.remedy}").at(self.folder / FILE)
        return done

    @classmethod
    def _sealed(cls) -> tuple[str, ...]:
        """Files that are written when a run begins and never change."""
        return ("config.yaml", *cls.learns)

    @classmethod
    def writes(cls) -> tuple[str, ...]:
        """What a run writes into its folder: its manifest."""
        return ("result.json", *cls._sealed(), SUMS, WEIGHTS, "metrics.csv", folders.CHECKPOINTS, *folders.LOGS)

    def owned(self) -> tuple[str, ...]:
        """What runs have written in the folder; of an older structpe, which wrote no manifest, by its checksums."""
        found = folders.listing(self.folder)
        return found if found is not None else () if wrong(self.folder, self._sealed()) else self.writes()

    def begin(self, found: L) -> None:
        """Remove an earlier run in the folder, and write the files that never change."""
        folders.claim(self.folder, self.writes(), self.owned())
        folders.clear(self.folder, self.owned())
        self.write(found)
        atomic_write(self.folder / "config.yaml", lambda hidden: configurations.save(self.kept, hidden))
        seal(self.folder, self._sealed())

    def _fit(self, work: TrainingSetup[R], fresh: bool) -> Result:
        per_epoch = self._train(work, fresh)
        from structpe.tasks.training.fit import result

        return result(self.folder, work.training, per_epoch)

    def _train(self, work: TrainingSetup[R], fresh: bool) -> int:
        """Train, and return the number of batches of an epoch."""
        try:
            from structpe.tasks.training.fit import fit  # Lightning takes seconds to import
        except ModuleNotFoundError as missing:
            raise MissingExtra(str(missing.name), self.extra) from missing
        training = work.training
        if training.order == "by-size" and len(set(work.sizes.tolist())) == 1:
            refuse_inert(training, "training.", [Inert(("order",), "all training examples are of one size")])
        by_size = work.task.pads if training.order == "auto" else training.order == "by-size"
        plan = BatchPlan(work.sizes, training.batch_size, training.seed, training.processes, work.content, by_size)
        count = training.steps * training.accumulate
        # One graph of all steps moves once; see Batch.to.
        pinned = folders.device_of(training).type == "cuda" and len(work.sizes) > 1
        batches = Batches(work.examples, plan, work.collate, count, workers=training.workers, pinned=pinned)
        fit(work.task, batches, training, self.folder, fresh=fresh, run=self.identity)
        return plan.per_epoch

    def _tidy(self) -> None:
        """Remove the checkpoints of a finished run, also of a process that was killed at its very end."""
        if not self.keeps_checkpoints:
            folders.clear(self.folder, [folders.CHECKPOINTS])


def _with_config(folder: str | Path) -> Path:
    if not isinstance(folder, (str, Path)):
        raise StoreError(f"{folder!r:.80} is no path; give the folder of a run, the 'out' of its configuration")
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
    known = ", ".join(each.configured.__name__ for each in RUNS.values())
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


def load(folder: str | Path, device: torch.device | str | None = None) -> Any:
    """A trained model, ready for use, from the folder of its run. The data that it learned from are not needed.

    Args:
        folder: of a run of any kind.
        device: such as ``cpu`` or ``cuda``; None takes a GPU where there is one.

    Returns:
        A :class:`~structpe.tasks.prediction.predictor.Predictor` of graphs, whose ``predict`` takes structures; or a
        :class:`~structpe.tasks.graph_to_text.generator.Generator` of texts, whose ``generate`` takes items.

    Raises:
        StoreError: the folder holds no run, or no trained model yet, or a file is damaged.
        ConfigError: the device is not here, or the model cannot be applied to new structures.
    """
    return load_run(folder).ready(folders.device_named(device))


def train(config: Any, fresh: bool = False) -> Any:
    """Train as a configuration says, of any kind; see :meth:`Run.train`.

    Returns:
        What the run came to: a :class:`~structpe.tasks.training.result.Result` of graph to text, an
        :class:`~structpe.tasks.prediction.report.Outcome` of prediction.
    """
    return run_of(config).train(fresh)
