"""A run of prediction on a benchmark.

Files with what it learns before training:

=====================  ==================================================================================
position.json          the position model, with what its encodings learned from the training graphs
signature.json         inputs and outputs of the model, which is used without its training data
=====================  ==================================================================================
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import torch

from structpe.data.digests import digest, structures
from structpe.datasets import Benchmark, Split, load
from structpe.datasets.base import find
from structpe.datasets.own import from_items
from structpe.errors import ConfigError, StructPEError, located
from structpe.formats import as_items
from structpe.nn.graph_model import GraphModel
from structpe.objectives import LEVELS
from structpe.plain import read_json
from structpe.plain.options import Builder, recorded
from structpe.positions.build import build, fitted
from structpe.system.files import atomic_text
from structpe.system.printing import say
from structpe.tasks.config import Reads
from structpe.tasks.prediction.config import BenchmarkConfig, PredictionConfig
from structpe.tasks.prediction.predictor import Predictor, Signature
from structpe.tasks.prediction.report import Outcome
from structpe.tasks.prediction.sources import SOURCES, Data
from structpe.tasks.prediction.study import versions
from structpe.tasks.prediction.task import Prediction
from structpe.tasks.runs.base import Run, TrainingSetup, check_order
from structpe.tasks.training.folder import check_devices, device_of
from structpe.tasks.training.result import Result

__all__ = ["BenchmarkSplit", "PredictionRun", "failures"]


OF_FILES = ("file", "reader", "options", "on_error")
"""Options of the benchmark ``graphs`` that say how a file is read."""


class BenchmarkSplit(NamedTuple):
    """A benchmark, one of its splits, and the metric that selects the best model."""

    benchmark: Benchmark
    split: Split
    metric: str


class LearnedPrediction(NamedTuple):
    """The description of the position model, and the inputs and outputs of the model."""

    position: Any
    signature: Signature


class PredictionRun(Run[PredictionConfig, BenchmarkSplit, LearnedPrediction, Outcome], name="prediction"):
    """Prediction of graphs, nodes or pairs of nodes. The best model is scored on the test split once.

    Args:
        config: the configuration.
        folder: the folder of the run; by default ``config.out``.
        data: items with targets in their metadata, or a benchmark; None for the data of the configuration.
        encodings: folder of the encoded graphs, which runs share; by default next to the folder of the run.
    """

    config_class, result_class = PredictionConfig, Outcome
    learned_files = ("position.json", "signature.json")
    free = ("out", "name", "data.folder", *Run.free)
    extra = "bench"

    def __init__(
        self, config: PredictionConfig, folder: Path | None = None, data: Any = None, encodings: Path | None = None
    ) -> None:
        super().__init__(config, folder, data)
        self.encodings = encodings or self.folder.parent / "encodings"

    @classmethod
    def means(cls, data: Mapping[str, Any]) -> bool:
        return isinstance(benchmark := data.get("data"), Mapping) and "name" in benchmark

    def check(self) -> None:
        """Check benchmark, model, position and devices.

        Raises:
            PositionError, ConfigError: one of them is invalid.
            ReadError: the folder of the benchmark is missing.
        """
        config = self.config
        self._named("data", self._check_data)
        position = self._named("position", lambda: build(config.position, config.model.dims))
        self._named("model", lambda: GraphModel(config.model, position, None, None, 1))
        check_devices(config.training.hardware)

    def _check_data(self) -> None:
        data, given = self.config.data, self.given
        if given is None:
            find(data.name, data.folder, **data.options)
        elif odd := [key for key in OF_FILES if key in data.options]:
            raise ConfigError(f"options.{odd[0]} is of a file, and items are given as data; leave one of the two out")
        elif isinstance(given, Benchmark):
            if data != BenchmarkConfig(data.name, data.folder):
                raise ConfigError("a benchmark is given as data, and has its own targets; leave options out")
        elif data.name != "graphs":
            raise ConfigError(f"name is {data.name!r}, and items are given as data; leave the name out, or the items")
        else:
            Builder().arguments(from_items, data.options, "data")

    def _benchmark(self) -> Benchmark:
        data, given = self.config.data, self.given
        if given is None:
            return load(data.name, data.folder, **data.options)
        if isinstance(given, Benchmark):
            return given
        with located("data"):
            return from_items(as_items(given), **data.options)

    def read(self) -> BenchmarkSplit:
        benchmark = self._benchmark()
        return BenchmarkSplit(benchmark, _split(self.config, benchmark), _metric(self.config, benchmark))

    def learn(self, data: BenchmarkSplit) -> LearnedPrediction:
        benchmark, split, _ = data
        seen = [0] if LEVELS[benchmark.objective.level].single else split.train
        position = fitted(self.config.position, self.config.model.dims, lambda: [benchmark.graphs[i] for i in seen])
        return LearnedPrediction(position, Signature.of(benchmark))

    def write(self, learned: LearnedPrediction) -> None:
        atomic_text(self.folder / "position.json", json.dumps(learned.position, indent=2, ensure_ascii=False))
        learned.signature.save(self.folder / "signature.json")

    def restore(self) -> LearnedPrediction:
        position = read_json(self.folder / "position.json", "train afresh")
        return LearnedPrediction(position, Signature.load(self.folder / "signature.json"))

    def model(self, learned: LearnedPrediction) -> GraphModel:
        """The model before training."""
        torch.manual_seed(self.config.training.seed)
        position, given = build(learned.position, self.config.model.dims), learned.signature
        return GraphModel(
            self.config.model, position, given.nodes, given.edges, given.objective.numbers, given.objective.level
        )

    def _made(self, data: BenchmarkSplit, learned: LearnedPrediction) -> tuple[GraphModel, Data, Prediction]:
        (benchmark, split, _), model = data, self.model(learned)
        if (start := benchmark.objective.start(np.asarray(benchmark.targets)[split.train])) is not None:
            model.start_at(torch.from_numpy(start))
        made = SOURCES[benchmark.objective.level].data(self.config, benchmark, split, model, self.encodings)
        return model, made, Prediction(model, benchmark.objective, made.valid, made.scored)

    def trial(self, benchmark: Benchmark, jobs: int = 1) -> None:
        """Encode all graphs, and compute the loss of the largest training example, without training.

        Args:
            benchmark: the data of the configuration.
            jobs: number of processes that encode.

        Raises:
            StructPEError: the run would fail at its beginning.
        """
        training = self.config.training
        hardware = replace(training.hardware, jobs=max(jobs, training.hardware.jobs))
        run = PredictionRun(
            replace(self.config, training=replace(training, hardware=hardware)), self.folder, None, self.encodings
        )
        data = BenchmarkSplit(benchmark, _split(self.config, benchmark), _metric(self.config, benchmark))
        model, made, task = run._made(data, run.learn(data))
        check_order(training, made.sizes)
        model.eval()
        with torch.no_grad():
            task.loss(made.collate([made.train[int(made.sizes.argmax())]]))

    def setup(self, data: BenchmarkSplit, learned: LearnedPrediction) -> TrainingSetup[Outcome]:
        (benchmark, split, metric), config = data, self.config
        model, made, task = self._made(data, learned)
        _tell(benchmark, made, model)
        return TrainingSetup(
            task,
            replace(config.training, validation=replace(config.training.validation, metric=metric)),
            made.train,
            made.sizes,
            made.collate,
            _content(benchmark, split, learned.position, model),
            partial(self._score, task, benchmark, made, versions(device_of(config.training.hardware))),
        )

    def reads(self) -> Reads:
        signature = self.restore().signature
        return Reads(signature.reader or None, signature.options, by_suffix=True)

    def load(self) -> tuple[GraphModel, Signature]:
        """The best model so far, in evaluation mode, and its inputs and outputs. The data are not needed."""
        learned = self.restore()
        with recorded():
            return self.filled(lambda: self.model(learned)), learned.signature

    def ready(self, device: torch.device) -> Predictor:
        model, signature = self.load()
        return Predictor(model.to(device), signature, device, self.config.data.options.get("targets", ()))

    def score(self, part: Literal["valid", "test"], device: torch.device) -> tuple[int, dict[str, float]]:
        """The number of items in a split of the run's data, and the metrics of the best model so far on them.

        Raises:
            ConfigError: the split is empty.
            ReadError: the data are no longer there.
            StoreError: as of :meth:`load`.
        """
        data, learned = self.read(), self.restore()
        with recorded():
            _, made, task = self._made(data, learned)
        numbers = getattr(data.split, part)
        if not len(numbers):
            raise data.benchmark.error(f"there is no {part} split; choose another one, or give a file")
        self.best(task.model)
        return len(numbers), self._scores(task, getattr(made, part), device)

    def _scores(self, task: Prediction, examples: Sequence[Any], device: torch.device) -> dict[str, float]:
        task.model.to(device)
        with torch.no_grad():
            found = task.scores(examples, device, 0, 1, lambda mine: [mine])
        return {name: found[name] for name in task.objective.reported}

    def _named(self, key: str, make: Callable[[], Any]) -> Any:
        with located(*([self.config.name] if self.config.name else []), key):
            return make()

    def _score(
        self, task: Prediction, benchmark: Benchmark, data: Data, found: dict[str, str], result: Result
    ) -> Outcome:
        """Score the best model on the test split, which is not used before."""
        self.best(task.model)
        scores = self._scores(task, data.test, device_of(self.config.training.hardware))
        metric = task.objective.metric
        return Outcome(
            metric=metric,
            valid=result.best.get(metric),
            test=scores.pop(metric),
            parameters=sum(p.numel() for p in task.model.parameters() if p.requires_grad),
            encoding_seconds=data.encoding_seconds,
            training=result,
            versions=found,
            data=benchmark.name,
            note=benchmark.note,
            others=scores,
        )


R = TypeVar("R")


def failures(rows: Mapping[R, Sequence[PredictionConfig]], encodings: Path, jobs: int) -> dict[R, StructPEError]:
    """The rows of a study that cannot run on their data, and why. Each set of data is read once.

    Every graph is encoded, which runs then need not do; the largest training example of each row is read by its model.

    Args:
        rows: the runs of each row, which differ in their seeds.
        encodings: folder of the encoded graphs.
        jobs: number of processes that encode.
    """
    sets: dict[str, list[R]] = {}
    for row, runs in rows.items():
        sets.setdefault(json.dumps(asdict(runs[0].data), sort_keys=True), []).append(row)
    wrong: dict[R, StructPEError] = {}
    for names in sets.values():
        data = rows[names[0]][0].data
        try:
            benchmark = load(data.name, data.folder, **data.options)
        except StructPEError as error:
            wrong |= dict.fromkeys(names, error)
            continue
        for row in names:
            try:
                for config in rows[row]:
                    _split(config, benchmark)
                    _metric(config, benchmark)
                PredictionRun(rows[row][0], encodings=encodings).trial(benchmark, jobs)
            except StructPEError as error:
                wrong[row] = error
    return wrong


def _metric(config: PredictionConfig, benchmark: Benchmark) -> str:
    """The metric that selects the best model. Checked before graphs are encoded, which may take minutes."""
    official, given = benchmark.objective.metric, config.training.validation.metric
    if given not in ("official", "loss", official):
        raise ConfigError(f"training.validation.metric takes 'official', 'loss' or {official!r}; given is {given!r}")
    return official if given == "official" else given


def _split(config: PredictionConfig, benchmark: Benchmark) -> Split:
    count = len(benchmark.splits)
    number = config.training.seed % count if config.split is None else config.split
    if not 0 <= number < count:
        raise ConfigError(f"split is {number}; {benchmark.name} has {count}, counted from 0")
    split = benchmark.splits[number]
    for part, numbers in (("train", split.train), ("test", split.test)):
        if not len(numbers):
            raise benchmark.error(f"split {number} has nothing in its {part} part; use another, or correct the files")
    if config.training.validation.patience and not len(split.valid):
        raise benchmark.error(
            "there is no validation split, which patience looks at; set training.validation.patience to 0"
        )
    return split


def _content(benchmark: Benchmark, split: Split, position: Any, model: GraphModel) -> dict[str, str]:
    """Digests of everything that a run depends on, except its configuration."""
    parts = {f"{part} split": digest([numbers]) for part, numbers in zip(Split._fields, split, strict=True)}
    features = [repr(benchmark.nodes), repr(benchmark.edges), repr(benchmark.objective)]
    return {
        **structures("graphs", benchmark.graphs),
        "targets": digest([np.asarray(benchmark.targets)]),
        **parts,
        "kinds of features and targets": digest(features),
        "position model": digest([json.dumps(position, sort_keys=True)]),
        "versions of encodings": digest(encoding.versions() for encoding in model.position.encodings),
    }


def _tell(benchmark: Benchmark, data: Data, model: GraphModel) -> None:
    parameters = sum(p.numel() for p in model.parameters())
    counts = f"{len(data.train)} to train, {len(data.valid)} to select, {len(data.test)} to report"
    single = LEVELS[benchmark.objective.level].single
    say(f"{benchmark.name}: {benchmark.graphs[0] if single else counts}; {parameters:,} parameters")
    if data.encoding_seconds:
        say(f"encoded in {data.encoding_seconds:.1f} s")
