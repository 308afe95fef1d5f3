"""A benchmark: graphs, what is to be predicted of them, the official splits, and the official metric.

A file of this package holds one family of them. Its functions are entered by :func:`benchmark`, and from then on have a
name in studies, in the docs and in the tests. They read local files; what must be fetched first is said by an error.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from structpe.data.features import Features
from structpe.errors import ConfigError, ReadError
from structpe.objectives import LEVELS, Objective
from structpe.plain.typed import Builder, options_of
from structpe.registry import Registry
from structpe.structure import Ids, Structure

__all__ = ["BENCHMARKS", "Benchmark", "Loader", "Split", "benchmark", "find", "load"]


class Split(NamedTuple):
    """Numbers of items, of the level of the objective, to train on, to select by, and to report."""

    train: Ids
    valid: Ids
    test: Ids


@dataclass(frozen=True, eq=False)
class Benchmark:
    """Graphs with targets and splits.

    Node features are the feature ``x`` of each structure, edge features ``edge_x``; both have one row per node or
    edge. An undirected edge is stored once.

    Args:
        name: how tables call it; a data set that is not the official one says so here.
        graphs: g structures; one where its nodes, or pairs of them, are predicted.
        targets: of each item, as the objective wants them.
        splits: the official ones; several where the protocol takes the mean over them.
        nodes: what ``x`` is; None where nodes have no features.
        edges: what ``edge_x`` is.
        objective: what is to be predicted.
        note: what must be said beside its numbers.

    Raises:
        ConfigError: features, targets or splits do not fit the graphs.
    """

    name: str
    graphs: Sequence[Structure]
    targets: NDArray[Any]
    splits: tuple[Split, ...]
    nodes: Features
    edges: Features
    objective: Objective
    note: str = ""

    def __post_init__(self) -> None:
        """Check the whole once, so that no training fails in the middle of an epoch."""
        level = LEVELS[self.objective.level]
        if level.single and len(self.graphs) != 1:
            raise self.error(f"{level.name}s are predicted of one graph; there are {len(self.graphs)}")
        count = level.count(self.graphs, self.targets)
        if len(self.targets) != count:
            raise self.error(f"there are {len(self.targets)} targets for {count} {level.name}s")
        if not self.splits:
            raise self.error("there is no split; give one at least")
        for number, split in enumerate(self.splits):
            self._check_split(number, split, count)
        try:
            self.objective.check(np.asarray(self.targets))
        except ConfigError as error:
            raise error.at(self.name) from None
        self._check_features()

    def _check_split(self, number: int, split: Split, count: int) -> None:
        """Numbers in range, and none in two parts: the test part is neither trained on nor selected by."""
        for part, numbers in zip(Split._fields, split, strict=True):
            if len(wrong := numbers[(numbers < 0) | (numbers >= count)]):
                raise self.error(f"the {part} split names {wrong[0]}; {self.objective.level}s are 0..{count - 1}")
        named, times = np.unique(np.concatenate(split), return_counts=True)
        if len(twice := named[times > 1]):
            raise self.error(
                f"split {number} names {self.objective.level} {twice[0]} twice, in one part or in two, and "
                f"{len(twice) - 1} others; each may be trained on, selected by or reported, once"
            )

    def _check_features(self) -> None:
        for what, key, features in (("node", "x", self.nodes), ("edge", "edge_x", self.edges)):
            if features is None:
                continue
            values = [graph.features.get(key) for graph in self.graphs]
            if (lacking := next((i for i, v in enumerate(values) if v is None), None)) is not None:
                raise self.error(f"graph {lacking} has no {what} features {key!r}")
            try:
                features.check(np.concatenate([v for v in values if v is not None]), f"the {what} features")
            except ConfigError as error:
                raise error.at(self.name) from None

    def error(self, message: str) -> ConfigError:
        """An error that names this benchmark."""
        return ConfigError(message).at(self.name)


@dataclass(frozen=True)
class Loader:
    """How a benchmark is read.

    Attributes:
        name: its name in the registry.
        doc: what it is, in one line.
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
    """Enter a function ``(folder, **options)`` -> Benchmark into the registry; its docstring is its doc."""

    def enter(load: L) -> L:
        doc = (inspect.getdoc(load) or "").partition("\n")[0]
        BENCHMARKS.add(name, Loader(name, doc, load))
        return load

    return enter


def find(name: str, folder: str | Path, **options: Any) -> Loader:
    """The loader of a benchmark that can be asked for: it, its options and the folder are there. No file is read.

    Raises:
        ConfigError: there is no such benchmark or option, or an option is of another type.
        ReadError: there is no such folder.
    """
    loader, folder = BENCHMARKS[name], Path(folder)
    Builder().arguments(loader.load, options, f"benchmark {name!r}")
    if not folder.is_dir():
        raise ReadError(f"benchmark {name!r}: there is no folder {folder}; give the one that holds its files")
    return loader


def load(name: str, folder: str | Path, **options: Any) -> Benchmark:
    """Read a benchmark.

    Args:
        name: one of :data:`BENCHMARKS`.
        folder: where its files are.
        options: of the benchmark.

    Raises:
        ConfigError: there is no such benchmark or option, or an option is of another type.
        ReadError: the folder or a file in it is missing or damaged.
        MissingExtra: a package that reads it is not installed.
    """
    return find(name, folder, **options).load(Path(folder), **options)
