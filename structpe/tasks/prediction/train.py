"""Train a model on a benchmark, or go on with a training that was interrupted; then score the best model once.

The folder of a run:

=====================  ==================================================================================
config.yaml            the configuration, every key
position.json          the position model, with what its encodings learned of the training graphs
model.safetensors      weights of the best model
checkpoints/           what training goes on from; removed when it has ended
SHA256SUMS             checksums of the first two
metrics.csv            step, metric, value
tensorboard/           the same for TensorBoard
result.json            scores on validation and test split, sizes, times, versions; there is none before
=====================  ==================================================================================
"""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from structpe.checksums import SUMS, read_sealed, seal, sealed_lines
from structpe.data.digests import Content, digest, structures
from structpe.data.prepare import AFRESH
from structpe.datasets import Benchmark, Split, load
from structpe.datasets.base import find
from structpe.errors import ConfigError, MissingExtra, StructPEError, undamaged
from structpe.files import atomic_write, left_in
from structpe.nn.graph_model import GraphModel
from structpe.objectives import LEVELS
from structpe.positions.build import build
from structpe.tasks.config import save
from structpe.tasks.positions import fitted
from structpe.tasks.prediction.config import PredictionConfig, load_config
from structpe.tasks.prediction.sources import SOURCES, Data
from structpe.tasks.prediction.task import Prediction
from structpe.tasks.prediction.versions import versions
from structpe.tasks.training import folder as folders
from structpe.tasks.training.batches import Batches, Plan
from structpe.tasks.training.config import TrainingConfig
from structpe.tasks.training.folder import InUse, check_devices, clear, device_of, learned, lock
from structpe.tasks.training.progress import say
from structpe.tasks.training.result import Result
from structpe.tasks.training.weights import WEIGHTS, load_weights

__all__ = ["Outcome", "check", "finished", "same", "train"]

SEALED = ("config.yaml", "position.json")
"""Files that are written when a run begins, and stay as they are."""
FILES = ("result.json", *SEALED, SUMS, "model.safetensors", "metrics.csv")
FREE = ("out", "name", "data.folder", "training.workers")
"""Keys that may change when a run goes on, as nothing in training follows from them."""


@dataclass(frozen=True)
class Outcome:
    """What a run came to.

    Attributes:
        metric: name of the official metric.
        valid: its value on the validation split, of the best model; None without a validation split, where the last
            model is kept.
        test: its value on the test split, of the same model, computed once.
        parameters: of the model, all that are trained.
        encoding_seconds: what it took to encode all graphs; 0 where no encoding is asked for.
        training: how the training went.
        versions: of the software, the commit and the machine.
        data: what the benchmark calls its data.
        note: what must be said beside its numbers.
    """

    metric: str
    valid: float | None
    test: float
    parameters: int
    encoding_seconds: float
    training: Result
    versions: dict[str, str]
    data: str = ""
    note: str = ""

    def save(self, folder: Path) -> None:
        """Write it; from then on the run is finished."""
        text = sealed_lines(asdict(self))
        atomic_write(folder / "result.json", lambda hidden: hidden.write_text(text, encoding="utf-8"))

    @classmethod
    def load(cls, folder: Path) -> Outcome | None:
        """Of a finished run; None where training has not ended."""
        file = folder / "result.json"
        if not file.exists():
            return None
        with undamaged(file, "remove the folder, and train again"):
            content = read_sealed(file.read_text(encoding="utf-8"))
            return cls(**content | {"training": Result(**content["training"])})

    def __str__(self) -> str:
        valid = "no validation split" if self.valid is None else f"{self.valid:.4g} on the validation split"
        return f"{self.metric} {self.test:.4g} on the test split, {valid}"


def train(config: PredictionConfig, fresh: bool = False, encodings: Path | None = None) -> Outcome:
    """Train to the end. A run that was killed goes on from its newest checkpoint, and ends as if it had not been.

    Args:
        config: everything that the run follows from.
        fresh: remove what the folder holds of an earlier run, and begin anew.
        encodings: folder where encoded graphs are kept for other runs; by default beside the run's own folder.

    Raises:
        ConfigError: the folder holds a run of another configuration, another process trains in it, or the model does
            not suit the benchmark.
        PositionError: there is no such position model.
        EncodingError: a graph lacks what an encoding needs.
        ReadError: a file of the benchmark is missing or bad.
        MissingExtra: Lightning is not installed.
    """
    check(config)
    folder = Path(config.out)
    with lock(folder):
        fresh = fresh or not learned(folder)
        if not fresh:
            same(folder, config)
            if (done := Outcome.load(folder)) is not None:
                shutil.rmtree(
                    folder / "checkpoints", ignore_errors=True
                )  # of a process killed when it was all but done
                say(f"{folder}: this run is finished: {done}")
                return done
        return _train(folder, config, fresh, encodings or folder.parent / "encodings")


def finished(folder: Path) -> bool:
    """Whether a run has ended; what a process that was killed at its very end has left is removed.

    Raises:
        StoreError: its result is damaged.
    """
    if Outcome.load(folder) is None:
        return False
    if (folder / "checkpoints").exists() or left_in(folder):
        with suppress(InUse), lock(folder):  # who is about to remove it will
            shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    return True


def same(folder: Path, config: PredictionConfig) -> None:
    """See to it that the run in a folder is one of this configuration.

    Raises:
        ConfigError: it is one of another; the keys that differ are named.
        StoreError: it is not known of which, or a file is damaged.
    """
    folders.unbroken(folder, SEALED)
    folders.same(folder, config, load_config, FREE)


def check(config: PredictionConfig) -> None:
    """See to it that benchmark, model, position and devices make sense, before any data is read.

    Raises:
        PositionError, ConfigError: they do not.
        ReadError: the folder of the benchmark is missing.
    """
    _named(config, "data", lambda: find(config.data.name, config.data.folder, **config.data.options))
    position = _named(config, "position", lambda: build(config.position, config.model.dims))
    _named(config, "model", lambda: GraphModel(config.model, position, None, None, 1))
    check_devices(config.training)


def _named(config: PredictionConfig, key: str, make: Any) -> Any:
    try:
        return make()
    except StructPEError as error:
        raise error.at(*([config.name] if config.name else []), key) from None


def _train(folder: Path, config: PredictionConfig, fresh: bool, cache: Path) -> Outcome:
    benchmark = load(config.data.name, config.data.folder, **config.data.options)
    metric, split = _metric(config, benchmark), _split(config, benchmark)
    position = _position(folder, config, benchmark, split, fresh)
    torch.manual_seed(config.training.seed)
    model = _model(config, benchmark, position)
    data = SOURCES[benchmark.objective.level].data(config, benchmark, split, model, cache)
    task = Prediction(model, benchmark.objective, data.valid, data.scored)
    if fresh:
        _begin(folder, config, position)
    _tell(benchmark, data, model)
    training = replace(config.training, metric=metric)
    result = _fit(folder, training, task, data, _content(benchmark, split, position, model))
    outcome = _score(folder, config, task, benchmark, data, result)
    outcome.save(folder)
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    say(f"{folder}: finished: {outcome}")
    return outcome


def _metric(config: PredictionConfig, benchmark: Benchmark) -> str:
    """What decides which model is best. Asked before graphs are encoded, which may take minutes."""
    official, given = benchmark.objective.metric, config.training.metric
    if given not in ("official", "loss", official):
        raise ConfigError(f"training.metric takes 'official', 'loss' or {official!r}; given is {given!r}")
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
    if config.training.patience and not len(split.valid):
        raise benchmark.error("there is no validation split, which patience looks at; set training.patience to 0")
    return split


def _position(folder: Path, config: PredictionConfig, benchmark: Benchmark, split: Split, fresh: bool) -> Any:
    """The description of the position model, with what its encodings learn of the training graphs."""
    if fresh:
        seen = [0] if LEVELS[benchmark.objective.level].single else split.train
        return fitted(config.position, config.model.dims, lambda: [benchmark.graphs[i] for i in seen])
    with undamaged(folder / "position.json", "train afresh"):
        return json.loads((folder / "position.json").read_text(encoding="utf-8"))


def _model(config: PredictionConfig, benchmark: Benchmark, position: Any) -> GraphModel:
    built, objective = build(position, config.model.dims), benchmark.objective
    return GraphModel(config.model, built, benchmark.nodes, benchmark.edges, objective.numbers, objective.level)


def _content(benchmark: Benchmark, split: Split, position: Any, model: GraphModel) -> dict[str, str]:
    """Digests of all that a run follows from besides its configuration."""
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


def _begin(folder: Path, config: PredictionConfig, position: Any) -> None:
    clear(folder, FILES)
    text = json.dumps(position, indent=2, ensure_ascii=False)
    atomic_write(folder / "position.json", lambda hidden: hidden.write_text(text, encoding="utf-8"))
    atomic_write(folder / "config.yaml", lambda hidden: save(config, hidden))
    seal(folder, SEALED)


def _fit(folder: Path, training: TrainingConfig, task: Prediction, data: Data, content: Content) -> Result:
    try:
        from structpe.tasks.training.fit import fit  # Lightning takes seconds to import
    except ModuleNotFoundError as missing:
        raise MissingExtra(str(missing.name), "bench") from missing
    plan = Plan(data.sizes, training.batch_size, training.seed, training.devices, content)
    count = training.steps * training.accumulate
    return fit(task, Batches(data.train, plan, data.collate, count, workers=training.workers), training, folder)


def _score(
    folder: Path,
    config: PredictionConfig,
    task: Prediction,
    benchmark: Benchmark,
    data: Data,
    result: Result,
) -> Outcome:
    """The best model on the test split, which nothing before has looked at."""
    with undamaged(folder / WEIGHTS, AFRESH):
        task.model.load_state_dict(load_weights(folder / WEIGHTS, AFRESH))
    device = device_of(config.training)
    task.model.to(device).eval()
    with torch.no_grad():
        scores = task.scores(data.test, device, 0, 1, lambda mine: [mine])
    metric = task.objective.metric
    return Outcome(
        metric=metric,
        valid=result.best.get(metric),
        test=scores[metric],
        parameters=sum(p.numel() for p in task.model.parameters() if p.requires_grad),
        encoding_seconds=data.encoding_seconds,
        training=result,
        versions=versions(device),
        data=benchmark.name,
        note=benchmark.note,
    )


def _tell(benchmark: Benchmark, data: Data, model: GraphModel) -> None:
    parameters = sum(p.numel() for p in model.parameters())
    counts = f"{len(data.train)} to train, {len(data.valid)} to select, {len(data.test)} to report"
    single = LEVELS[benchmark.objective.level].single
    say(f"{benchmark.name}: {benchmark.graphs[0] if single else counts}; {parameters:,} parameters")
    if data.encoding_seconds:
        say(f"encoded in {data.encoding_seconds:.1f} s")
