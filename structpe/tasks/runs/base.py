"""The base class of runs: check, lock, fit encodings, train, save, resume.

The folder of every run:

=====================  ==================================================================================
config.yaml            the configuration, every key
...                    what the run learned from the training data before training; see its kind
SHA256SUMS             checksums of these
code.json              digests of the code outside structpe that the configuration names, if it names any
structpe.json          the manifest: the files that the run writes, and may replace or remove
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
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import torch
from torch import nn

from structpe.data.bpe_dropout import ResampledExamples
from structpe.data.digests import Content
from structpe.data.prepare import TRAIN_AFRESH
from structpe.errors import ConfigError, MissingExtra, StoreError, listed, undamaged
from structpe.plain.options import Inert, recorded, refuse_inert
from structpe.registry import Registered, Registry, code_in
from structpe.structure import Ids
from structpe.system.files import SUMS, atomic_text, atomic_write, left_in, seal, sealed, sums_of, unsealed, wrong
from structpe.system.printing import say
from structpe.tasks import config as configurations
from structpe.tasks.config import Reads
from structpe.tasks.parser import ParserConfig, train_parser
from structpe.tasks.training import folder as folders
from structpe.tasks.training.batches import Batches, BatchPlan
from structpe.tasks.training.config import TrainingConfig
from structpe.tasks.training.folder import InUse, learned, lock, number
from structpe.tasks.training.optimiser import check_optimiser
from structpe.tasks.training.result import FILE, WEIGHTS, Result, StoredResult, check_fit, load_weights, recorded_digest
from structpe.tasks.training.task import Task

__all__ = ["RUNS", "Run", "TrainingSetup", "check_order", "load", "load_run", "run_of", "train"]

RUNS: Registry[type[Run[Any, Any, Any, Any]]] = Registry("structpe.tasks.runs", "kind of run", ConfigError, own=False)
"""Every kind of run by its name."""


CODE = "code.json"
"""The file with digests of code of the user."""

PARSER = "parser"
"""The task that spaCy trains, whose folder is not that of a run."""


class RunConfig(Protocol):
    """The fields that the configurations of all runs share."""

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
    """Everything that a training needs.

    Attributes:
        task: the model and its loss.
        training: the configuration of the training.
        examples: the training examples, or those of each epoch.
        sizes: cost of each example, such as its number of units.
        collate: makes a batch of examples.
        content: digests of everything that the run depends on, except its configuration.
        end: makes the result of the run from the result of its training.
    """

    task: Task
    training: TrainingConfig
    examples: Sequence[Any] | ResampledExamples[Any]
    sizes: Ids
    collate: Callable[[Sequence[Any]], Any]
    content: Content
    end: Callable[[Result], R]


class Run(Registered, ABC, Generic[C, D, L, R]):
    """A training in a folder.

    ``C`` is its configuration, ``D`` its data, ``L`` what it learns before training, ``R`` its result.

    Args:
        config: the configuration.
        folder: the folder of the run; by default ``config.out``.
        data: what :func:`train` is given as ``data``; None for the data of the configuration.

    Attributes:
        config_class: the class of its configuration.
        result_class: the class of its result.
        learned_files: names of the files with what it learns before training.
        free: keys of the configuration that may change when a run resumes. Training does not depend on them, except
            that each accelerator has its own rounding and random numbers.
        extra: the extra to install for training.
        keeps_checkpoints: whether a finished run keeps its last checkpoints.
    """

    registry = RUNS
    config_class: ClassVar[type[Any]]
    result_class: ClassVar[type[Any]]
    learned_files: ClassVar[tuple[str, ...]]
    free: ClassVar[tuple[str, ...]] = (
        *(f"training.hardware.{name}" for name in ("accelerator", "workers", "jobs")),
        "training.logs.loggers",
        "imports",
    )
    extra: ClassVar[str]
    keeps_checkpoints: ClassVar[bool] = False

    def __init__(self, config: C, folder: Path | None = None, data: Any = None) -> None:
        self.config, self.folder, self.given = config, folder or Path(config.out), data

    @classmethod
    def of(cls, folder: str | Path) -> Self:
        """The run in a folder.

        Raises:
            StoreError: the folder holds no run, or a file is damaged.
        """
        folder = _with_config(folder)
        folders.check_sums(folder, cls._constant_files())
        with recorded():
            return cls(configurations.load(cls.config_class, folder / "config.yaml"), folder)

    @classmethod
    def means(cls, data: Mapping[str, Any]) -> bool:
        """Whether plain data that names no task is a configuration of this kind."""
        return False

    # --- defined by each kind of run ---

    @abstractmethod
    def check(self) -> None:
        """Check the configuration, as far as possible without reading data.

        Raises:
            PositionError: there is no such position model, encoding or option, or it does not fit.
            ConfigError: another option is invalid, or there are fewer GPUs than the configuration needs.
        """

    @abstractmethod
    def read(self) -> D:
        """Read the data."""

    @abstractmethod
    def learn(self, data: D) -> L:
        """Learn from the training data what is needed before training, such as a vocabulary or labels."""

    @abstractmethod
    def write(self, learned: L) -> None:
        """Write the learned files."""

    @abstractmethod
    def restore(self) -> L:
        """Read what :meth:`write` wrote.

        Raises:
            StoreError: a file is missing or damaged.
        """

    @abstractmethod
    def setup(self, data: D, learned: L) -> TrainingSetup[R]:
        """Build the model and the examples for training."""

    @abstractmethod
    def reads(self) -> Reads:
        """How the run reads its data."""

    @abstractmethod
    def load(self) -> tuple[nn.Module, Any]:
        """The best model so far, in evaluation mode, and the object that prepares its inputs.

        Raises:
            StoreError: training has not written a model yet, or a file is damaged.
        """

    @abstractmethod
    def ready(self, device: torch.device) -> Any:
        """The best model so far, as an object that applies it to new structures.

        Args:
            device: the device of the model.

        Raises:
            StoreError: as in :meth:`load`.
        """

    # --- shared by all runs ---

    @property
    def kept(self) -> C:
        """The configuration that ``config.yaml`` keeps."""
        return self.config

    def train(self, fresh: bool = False) -> R:
        """Train to the end. A run that was killed resumes from its newest checkpoint and gives the same result.

        On the CPU, with the same number of threads, the results are equal bit by bit.

        Args:
            fresh: remove an earlier run in the folder and start again. Only the files of that run are removed, and only
                after the new configuration is checked and its data are read and encoded.

        Raises:
            ConfigError: the folder holds a run of another configuration, or files that this run would replace and no
                run has written; another process trains in it; or the model does not suit the data.
            PositionError, EncodingError: as in :meth:`check`, or a structure does not suit the position model.
            StoreError: checkpoints are damaged, or the data are not those that the run began with.
            ReadError: a file of the data is missing or bad.
            MissingExtra: Lightning is not installed.
        """
        self.check()
        check_optimiser(self.config.training.optimiser)
        if number(self.config.training.hardware):
            return self._train_beside_first(fresh)
        folders.check_free(self.folder, self.writes(), self.owned())
        with lock(self.folder):
            fresh = fresh or not learned(self.folder)
            if not fresh and (done := self._finished_result()) is not None:
                self._remove_checkpoints()
                return done
            setup, found = self._prepared(fresh)
            if fresh:
                self.begin(found)
            per_epoch = self._train(setup, fresh)
            from structpe.tasks.training.fit import result

            ended = setup.end(result(self.folder, setup.training, per_epoch))
            ended.save(self.folder, {"run": self.identity, "weights": recorded_digest(self.folder / WEIGHTS)})
            self._remove_checkpoints()
            say(f"{self.folder}: finished: {ended}")
            return ended

    def _train_beside_first(self, fresh: bool) -> R:
        """Train on another machine than the first, which writes all files, and wait for its result."""
        fresh = fresh or not learned(self.folder)
        if not fresh and (done := self._finished_result()) is not None:
            return done
        self._train(self._prepared(fresh)[0], fresh)
        with lock(self.folder, waits=True):
            if (ended := self._stored_result()) is None:
                raise StoreError("the first machine has ended without a result; start all again").at(self.folder)
            return ended

    def _finished_result(self) -> R | None:
        """The result of an earlier run of the same configuration, if it is finished."""
        self.check_same()
        if (done := self._stored_result()) is not None:
            say(f"{self.folder}: this run is finished: {done}; to train again, ask for a fresh one or another folder")
        return done

    def _prepared(self, fresh: bool) -> tuple[TrainingSetup[R], L]:
        data = self.read()
        found = self.learn(data) if fresh else self.restore()
        return self.setup(data, found), found

    def check_same(self) -> None:
        """Check that the run in the folder has this configuration.

        Raises:
            ConfigError: it has another, and the keys that differ are named; or code of the user has changed since.
            StoreError: its configuration is missing, or a file is damaged.
        """
        folders.check_sums(self.folder, self._constant_files())
        written = self.folder / "config.yaml"
        if not written.exists():
            raise StoreError(f"{self.folder} holds files of a training, but no config.yaml; {TRAIN_AFRESH}")
        with recorded():
            earlier = type(self)(configurations.load(type(self.config), written), self.folder).kept
        if other := [key for key in configurations.differences(earlier, self.kept) if key not in self.free]:
            raise ConfigError(
                f"{self.folder} holds a run of another configuration; they differ in {', '.join(other)}. Bring these "
                f"back to go on with that run, choose another folder (out), or train afresh (fresh), which removes "
                f"that run"
            )
        if edited := self._edited():
            raise ConfigError(
                f"{self.folder} holds a run of other code of {listed(edited)}; bring that code back to go on with that "
                f"run, choose another folder (out), or train afresh (fresh), which removes that run"
            )

    def _code(self) -> dict[str, str]:
        """Digests of the code outside structpe that the configuration names, and of the reader; of a run that began."""
        return code_in([configurations.to_dict(self.kept), self.reads().reader])

    def _edited(self) -> list[str]:
        """The code outside structpe that has changed since the run began, in words; what is not imported is unknown.

        Raises:
            StoreError: the file with its digests is damaged.
        """
        if not (file := self.folder / CODE).exists():
            return []
        now = self._code()
        with undamaged(file, TRAIN_AFRESH):
            then = unsealed(file.read_text(encoding="utf-8"))
        return [name for name in now if now[name] != then.get(name, now[name])]

    def finished(self) -> bool:
        """Whether the run is finished; if so, remove files that a process left when it was killed at the very end.

        Raises:
            StoreError: its result is damaged.
        """
        if self._stored_result() is None:
            return False
        if not self.keeps_checkpoints and ((self.folder / "checkpoints").exists() or left_in(self.folder)):
            with suppress(InUse), lock(self.folder):  # another process is about to remove it
                self._remove_checkpoints()
        return True

    def filled(self, make: Callable[[], M]) -> M:
        """Make a model and load the best weights so far. Code of the user that has changed since gives a warning.

        Raises:
            StoreError: as in :meth:`best`; or the weights do not fit, which is checked before the model is made.
        """
        if edited := self._edited():
            warnings.warn(
                f"{self.folder}: the code of {listed(edited)} has changed since this model was trained, so its numbers "
                f"may differ; bring that code back, or train afresh",
                stacklevel=2,
            )
        check_fit(make, self.folder / WEIGHTS, TRAIN_AFRESH)
        model = make()
        self.best(model)
        return model

    def best(self, model: nn.Module) -> None:
        """Load the best weights so far into a model, and set it to evaluation mode.

        Raises:
            StoreError: training has not written them yet, they are damaged or from another run, or the result in the
                folder is that of other weights.
        """
        file = self.folder / WEIGHTS
        with undamaged(file, TRAIN_AFRESH):
            model.load_state_dict(load_weights(file, TRAIN_AFRESH, self.identity))
        if (scored := self.result_class.of(self.folder).get("weights")) and scored != recorded_digest(file):
            raise StoreError(f"the result of the run belongs to other weights; {TRAIN_AFRESH}").at(file)
        model.eval()

    @property
    def identity(self) -> str:
        """A digest of the configuration, except ``free`` keys, and of the learned files; empty before these exist."""
        if not all((self.folder / name).is_file() for name in self.learned_files):
            return ""
        plain = configurations.to_dict(self.kept)
        for key in self.free:
            *groups, last = key.split(".")
            reduce(getitem, groups, plain).pop(last, None)
        text = json.dumps(plain, sort_keys=True) + sums_of(self.folder, self.learned_files)
        return hashlib.sha256(text.encode()).hexdigest()

    def _stored_result(self) -> R | None:
        done: R | None = self.result_class.load(self.folder)
        if done is not None and self.result_class.of(self.folder).get("run", self.identity) != self.identity:
            raise StoreError(f"the result belongs to another run; {self.result_class.remedy}").at(self.folder / FILE)
        return done

    @classmethod
    def _constant_files(cls) -> tuple[str, ...]:
        """The files that are written when a run begins, and never change."""
        return ("config.yaml", *cls.learned_files)

    @classmethod
    def writes(cls) -> tuple[str, ...]:
        """The manifest: names and patterns of all files that a run writes into its folder."""
        return (
            "result.json",
            *cls._constant_files(),
            SUMS,
            CODE,
            WEIGHTS,
            "metrics.csv",
            folders.CHECKPOINTS,
            *folders.LOGS,
        )

    def owned(self) -> tuple[str, ...]:
        """The files of runs in the folder; without a manifest, those of a run of an older structpe with checksums."""
        found = folders.manifest_files(self.folder)
        return found if found is not None else () if wrong(self.folder, self._constant_files()) else self.writes()

    def begin(self, found: L) -> None:
        """Remove an earlier run in the folder, and write the constant files."""
        folders.claim(self.folder, self.writes(), self.owned())
        folders.clear(self.folder, self.owned())
        self.write(found)
        atomic_write(self.folder / "config.yaml", lambda hidden: configurations.save(self.kept, hidden))
        if code := self._code():
            atomic_text(self.folder / CODE, sealed(code))
        seal(self.folder, self._constant_files())

    def _train(self, setup: TrainingSetup[R], fresh: bool) -> int:
        """Train, and return the number of batches per epoch."""
        try:
            from structpe.tasks.training.fit import fit  # Lightning takes seconds to import
        except ModuleNotFoundError as missing:
            raise MissingExtra(str(missing.name), self.extra) from missing
        training = setup.training
        check_order(training, setup.sizes)
        by_size = setup.task.pads if training.order == "auto" else training.order == "by-size"
        plan = BatchPlan(
            setup.sizes, training.batch_size, training.seed, training.hardware.processes, setup.content, by_size
        )
        count = training.steps * training.accumulate
        # A single graph, which all steps share, is moved once; see Batch.to.
        pinned = folders.device_of(training.hardware).type == "cuda" and len(setup.sizes) > 1
        batches = Batches(setup.examples, plan, setup.collate, count, workers=training.hardware.workers, pinned=pinned)
        fit(setup.task, batches, training, self.folder, fresh=fresh, run=self.identity)
        return plan.per_epoch

    def _remove_checkpoints(self) -> None:
        """Remove the checkpoints of a finished run, unless it keeps them."""
        if not self.keeps_checkpoints:
            folders.clear(self.folder, [folders.CHECKPOINTS])


def check_order(training: TrainingConfig, sizes: Ids) -> None:
    """Check that batches of similar size are not asked for where all examples are of one size.

    Raises:
        ConfigError: they are.
    """
    if training.order == "by-size" and len(set(sizes.tolist())) == 1:
        refuse_inert(training, "training.", [Inert(("order",), "all training examples are of one size")])


def _with_config(folder: str | Path) -> Path:
    if not isinstance(folder, (str, Path)):
        raise StoreError(f"{folder!r:.80} is not a path; give the folder of a run, the 'out' of its configuration")
    if not (Path(folder) / "config.yaml").is_file():
        raise StoreError(f"{folder} holds no config.yaml; give the folder of a run, the 'out' of its configuration")
    return Path(folder)


def run_of(config: Any, data: Any = None) -> Run[Any, Any, Any, Any]:
    """The run of a configuration.

    Args:
        config: the configuration.
        data: as of :func:`train`.

    Raises:
        ConfigError: no kind of run has such a configuration.
    """
    for kind in RUNS.values():
        if isinstance(config, kind.config_class):
            return kind(config, data=data)
    known = ", ".join(each.config_class.__name__ for each in RUNS.values())
    raise ConfigError(f"{type(config).__name__} is the configuration of no kind of run; give one of {known}")


def load_run(folder: str | Path) -> Run[Any, Any, Any, Any]:
    """The run in a folder, of any kind.

    Raises:
        StoreError: the folder holds no run, or a file is damaged.
    """
    folder = _with_config(folder)
    for kind in RUNS.values():
        if any((folder / name).exists() for name in kind.learned_files):
            return kind.of(folder)
    known = " or ".join(f"{name} ({', '.join(kind.learned_files)})" for name, kind in RUNS.items())
    raise StoreError(f"{folder} holds no files of a run of {known}; give the folder of one")


def load(folder: str | Path, device: torch.device | str | None = None) -> Any:
    """Load a trained model from the folder of its run. Its training data are not needed.

    Args:
        folder: the folder of a run of any kind.
        device: such as ``cpu`` or ``cuda``; by default a GPU, if there is one.

    Returns:
        A :class:`~structpe.tasks.prediction.predictor.Predictor` of graphs, whose ``predict`` takes structures; or a
        :class:`~structpe.tasks.graph_to_text.generator.Generator` of texts, whose ``generate`` takes items.

    Raises:
        StoreError: the folder holds no run or no trained model yet, or a file is damaged.
        ConfigError: the device is not available, or the model cannot be applied to new structures.
    """
    return load_run(folder).ready(folders.device_named(device))


def load_config(source: str | Path | Mapping[str, Any] | None, overrides: Sequence[str] = ()) -> Any:
    """The configuration of a training of any kind.

    Its key ``task`` names the kind: ``graph-to-text``, ``prediction``, ``pretrained-text`` or ``parser``. Without it, a
    model with the key ``pretrained`` is a pretrained one, data with a ``name`` are a benchmark for prediction, and
    everything else is graph to text.

    Args:
        source: a YAML file, or its content as plain data; None for the defaults. Paths in it are relative to the
            working directory.
        overrides: such as ``training.steps=100``; the value is YAML.

    Raises:
        ConfigError: the file is missing or not YAML, there is no such task, code cannot be imported, a key is unknown
            or missing, or a value has the wrong type.
    """
    return configurations.load_kind(_config_class, source, overrides, configurations.import_all)


def _config_class(data: Mapping[str, Any]) -> type[Any]:
    task = data.get("task") or next((name for name, kind in RUNS.items() if kind.means(data)), "graph-to-text")
    if task == PARSER:
        return ParserConfig
    if not isinstance(task, str) or task not in RUNS:
        raise ConfigError(f"task is {task!r}; give one of {', '.join([*RUNS, PARSER])}")
    return RUNS[task].config_class


def train(config: Any = None, overrides: Sequence[str] = (), *, data: Any = None, fresh: bool = False) -> Any:
    """Train a model of any kind; see :meth:`Run.train`.

    Args:
        config: a configuration, or what :func:`load_config` reads one from: a YAML file, plain data, or None.
        overrides: changes of a file or of plain data, such as ``training.steps=100``.
        data: what to learn from, instead of files that the configuration names: a list of items, of mappings such as
            ``{"facts": [("Osk", "teacher", "Ida")], "text": "Ida taught Osk."}``, or of other objects that
            :func:`structpe.formats.as_item` takes. For texts and parsers, also a mapping of these by split, ``train``
            and ``dev``, of which each may be a file instead; for prediction, also a
            :class:`~structpe.datasets.Benchmark`. A parser learns from sentences with heads, such as ``{"tokens":
            ["Osk", "slept"], "heads": [2, 0], "labels": ["nsubj", "root"], "upos": ["PROPN", "VERB"]}``, trees of
            networkx, or parsed documents of spaCy.
        fresh: remove an earlier run in the same folder first.

    Returns:
        The result: a :class:`~structpe.tasks.training.result.Result` for graph to text, an
        :class:`~structpe.tasks.prediction.report.Outcome` for prediction, or the folder of a parser.

    Raises:
        ConfigError: as of :func:`load_config`, or as of :meth:`Run.train`; overrides of a configuration object; there
            are no data, or both ``data`` and files in the configuration.
        ReadError, StructureError: as of :meth:`Run.train`, or something in ``data`` is not an item; the error names it.
    """
    if config is None or isinstance(config, (str, Path, Mapping)):
        config = load_config(config, overrides)
    elif overrides:
        raise ConfigError(
            f"overrides change a file or plain data, and a {type(config).__name__} is given; change it with "
            f"dataclasses.replace, or give its file"
        )
    if isinstance(config, ParserConfig):
        return train_parser(config, data, fresh)
    return run_of(config, data).train(fresh)
