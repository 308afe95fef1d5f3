"""A benchmark: graphs, what to predict, the official splits and the official metric.

Each family of benchmarks is one file. Its functions are registered by :func:`benchmark`, which gives them a name in
studies, in the documentation and in the tests. They read local files only; an error says what must be fetched first.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from structpe.data.features import Features
from structpe.errors import ConfigError, ReadError, located
from structpe.objectives import LEVELS, Objective
from structpe.plain.options import Builder, options_of
from structpe.registry import Registry
from structpe.structure import Ids, Structure

__all__ = ["BENCHMARKS", "Benchmark", "Loader", "Split", "benchmark", "find", "load"]


class Split(NamedTuple):
    """Numbers of the items (graphs, nodes or pairs, as the objective says) for training, validation and testing."""

    train: Ids
    valid: Ids
    test: Ids


@dataclass(frozen=True, eq=False)
class Benchmark:
    """Graphs with targets and splits.

    Node features are the feature ``x`` of each structure, edge features ``edge_x``; both have one row per node or
    edge. An undirected edge is stored once.

    Args:
        name: its name in tables, different from the official one if the data set is not the official one.
        graphs: g structures, or one structure if its nodes or pairs of them are predicted.
        targets: target of each item, in the form that the objective takes.
        splits: the official splits; several if the protocol takes the mean over them.
        objective: what to predict.
        nodes: description of ``x``; None if nodes have no features.
        edges: description of ``edge_x``; None if edges have no features.
        note: remark that belongs to its results.
        names: of the labels, numbers or classes that are predicted; empty for numbers from 0.
        reader: the reader that gives other graphs the same features, from a file; empty where there is none.
        options: options of the reader.

    Raises:
        ConfigError: features, targets or splits do not fit the graphs.
    """

    name: str
    graphs: Sequence[Structure]
    targets: NDArray[Any]
    splits: tuple[Split, ...]
    objective: Objective
    nodes: Features = None
    edges: Features = None
    note: str = ""
    names: tuple[str, ...] = ()
    reader: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check everything once, before any training."""
        level = LEVELS[self.objective.level]
        if level.single and len(self.graphs) != 1:
            raise self.error(f"{level.name}s are predicted of one graph; there are {len(self.graphs)}")
        count = level.count(self.graphs, self.targets)
        if len(self.targets) != count:
            raise self.error(f"there are {len(self.targets)} targets for {count} {level.name}s")
        if len(self.names) not in (0, self.objective.outputs):
            raise self.error(f"{len(self.names)} names are given for {self.objective.outputs} outputs; give one each")
        if not self.splits:
            raise self.error("there is no split; give at least one")
        for number, split in enumerate(self.splits):
            self._check_split(number, split, count)
        with located(self.name):
            self.objective.check(np.asarray(self.targets))
        self._check_features()

    def _check_split(self, number: int, split: Split, count: int) -> None:
        """Check that numbers are in range and that no item is in two parts."""
        for part, numbers in zip(Split._fields, split, strict=True):
            if len(wrong := numbers[(numbers < 0) | (numbers >= count)]):
                raise self.error(f"the {part} split names {wrong[0]}; {self.objective.level}s are 0..{count - 1}")
        named, times = np.unique(np.concatenate(split), return_counts=True)
        if len(twice := named[times > 1]):
            found = f"split {number} names {self.objective.level} {twice[0]} twice, in one part or in two"
            raise self.error(f"{found}, and {len(twice) - 1} others; name each once, in one part")

    def _check_features(self) -> None:
        for what, key, features in (("node", "x", self.nodes), ("edge", "edge_x", self.edges)):
            if features is None:
                continue
            values = [graph.features.get(key) for graph in self.graphs]
            if (lacking := next((i for i, v in enumerate(values) if v is None), None)) is not None:
                raise self.error(f"graph {lacking} has no {what} features {key!r}")
            with located(self.name):
                features.check(np.concatenate([v for v in values if v is not None]), f"the {what} features")

    def error(self, message: str) -> ConfigError:
        """Return an error that names this benchmark."""
        return ConfigError(message).at(self.name)


@dataclass(frozen=True)
class Loader:
    """A registered function that reads a benchmark.

    Attributes:
        name: name in the registry.
        doc: description in one line.
        load: ``(folder, **options)`` -> the benchmark; ``folder`` holds its files.
    """

    name: str
    doc: str
    load: Callable[..., Benchmark]

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the options that ``load`` takes after the folder."""
        return tuple(options_of(self.load))


BENCHMARKS: Registry[Loader] = Registry("structpe.datasets", "benchmark", ConfigError)
"""Every benchmark by its name."""

L = TypeVar("L", bound=Callable[..., Benchmark])


def benchmark(name: str) -> Callable[[L], L]:
    """Register a function ``(folder, **options)`` -> Benchmark; the first line of its docstring describes it."""

    def enter(load: L) -> L:
        doc = (inspect.getdoc(load) or "").partition("\n")[0]
        BENCHMARKS.add(name, Loader(name, doc, load))
        return load

    return enter


def find(name: str, folder: str | Path, **options: Any) -> Loader:
    """Find a loader and check its options and the folder, without reading a file.

    Raises:
        ConfigError: the benchmark or an option is unknown, or an option is missing or has the wrong type.
        ReadError: the folder does not exist.
    """
    loader, folder = BENCHMARKS[name], Path(folder)
    Builder().arguments(loader.load, options, f"benchmark {name!r}")
    if not folder.is_dir():
        raise ReadError(f"benchmark {name!r}: there is no folder {folder}; give the one that holds its files")
    return loader


def load(name: str, folder: str | Path, **options: Any) -> Benchmark:
    """Read a benchmark.

    Args:
        name: name in :data:`BENCHMARKS`.
        folder: folder with its files.
        options: options of the benchmark.

    Raises:
        ConfigError: the benchmark or an option is unknown, or an option is missing or has the wrong type.
        ReadError: the folder or a file in it is missing or damaged.
        MissingExtra: a package that is needed to read it is not installed.
    """
    return find(name, folder, **options).load(Path(folder), **options)
