"""Heterophilous graphs, whose neighbours are mostly of another class (Platonov et al. 2023; Pei et al. 2020)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.benchmarks._files import arrays
from structpe.benchmarks.base import Benchmark, Objective, Split, benchmark
from structpe.data.features import Numbers
from structpe.errors import ReadError
from structpe.structure import Ids, Structure

__all__ = ["actor", "minesweeper", "tolokers"]

ARRAYS = ("node_features", "node_labels", "edges", "train_masks", "val_masks", "test_masks")


@benchmark("minesweeper")
def minesweeper(folder: Path) -> Benchmark:
    """Minesweeper: which cells of a grid of 100 x 100 are mines, from what is seen of half of them; ten splits.

    File: ``minesweeper.npz`` of Platonov et al.
    """
    return _binary(folder / "minesweeper.npz", "minesweeper")


@benchmark("tolokers")
def tolokers(folder: Path) -> Benchmark:
    """Tolokers: which workers of a crowdsourcing platform were banned; edges join those of one task; ten splits.

    File: ``tolokers.npz`` of Platonov et al.
    """
    return _binary(folder / "tolokers.npz", "tolokers")


@benchmark("actor")
def actor(folder: Path) -> Benchmark:
    """Actor: five classes of actors by words of their pages; edges join those named on one page; ten splits.

    File: ``actor.npz`` of Platonov et al., with the splits of Pei et al.
    """
    graph, labels, splits = _read(folder / "actor.npz")
    return _benchmark("actor", graph, labels, splits, Objective("node", "class", int(labels.max()) + 1, "accuracy"))


def _binary(file: Path, name: str) -> Benchmark:
    """Two classes are one yes-or-no question, as the area under the ROC curve needs one score for each node."""
    graph, labels, splits = _read(file)
    if not np.isin(labels, (0, 1)).all():
        raise ReadError(f"labels are {sorted(set(labels.tolist()))}; 0 and 1 are needed").at(str(file))
    return _benchmark(name, graph, labels.astype(np.float32)[:, None], splits, Objective("node", "labels", 1, "rocauc"))


def _benchmark(
    name: str, graph: Structure, targets: NDArray[Any], splits: tuple[Split, ...], objective: Objective
) -> Benchmark:
    nodes = Numbers(graph.features["x"].shape[1])
    note = f"mean over the {len(splits)} published splits"
    return Benchmark(name, [graph], targets, splits, nodes, None, objective, note)


def _read(file: Path) -> tuple[Structure, Ids, tuple[Split, ...]]:
    features, labels, edges, *masks = arrays(file, *ARRAYS)
    if problem := _problem(features, labels, edges, masks):
        raise ReadError(f"{problem}; bring back the original").at(str(file))
    splits = tuple(Split(*map(np.flatnonzero, split)) for split in zip(*masks, strict=True))
    graph = Structure(
        ("",) * len(labels),
        _once(edges),
        directed=False,
        features={"x": features.astype(np.float32)},
        name=file.name,
    )
    return graph, labels.astype(np.int64), splits


def _problem(features: NDArray[Any], labels: NDArray[Any], edges: NDArray[Any], masks: list[NDArray[Any]]) -> str:
    """What is wrong with the shapes; the empty string where nothing is."""
    if edges.ndim != 2 or edges.shape[1] != 2:
        return f"edges have shape {edges.shape}; a row (source, target) is needed for each"
    if features.ndim != 2 or len(features) != len(labels):
        return f"node_features have shape {features.shape}; a row for each of {len(labels)} nodes is needed"
    for name, mask in zip(ARRAYS[3:], masks, strict=True):
        if mask.dtype != np.bool_ or mask.ndim != 2 or mask.shape[1] != len(labels):
            needed = f"a row of {len(labels)} booleans for each split is needed"
            return f"{name} has shape {mask.shape} and dtype {mask.dtype}; {needed}"
    counts = [len(mask) for mask in masks]
    if len(set(counts)) > 1:
        return "the masks are for {}, {} and {} splits; as many of each are needed".format(*counts)
    return ""


def _once(edges: NDArray[Any]) -> Ids:
    """Each edge once, whichever way and however often it was given, as the authors' code walks it both ways once."""
    ends: Ids = np.unique(np.sort(edges.astype(np.int64), axis=1), axis=0)
    return ends
