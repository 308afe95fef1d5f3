"""Graphs for node prediction in the format of Platonov et al. (2023): one ``.npz`` file of six arrays each.

Most are heterophilous: neighbours usually have different classes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structpe.data.features import Numbers
from structpe.datasets.base import Benchmark, Split, benchmark
from structpe.datasets.files.arrays import arrays
from structpe.errors import ConfigError, ReadError
from structpe.objectives.classification import Binary, Multiclass
from structpe.structure import Ids, Structure

__all__ = ["PUBLISHED", "npz"]

ARRAYS = ("node_features", "node_labels", "edges", "train_masks", "val_masks", "test_masks")


class Graph(NamedTuple):
    """A published graph: its number of classes and its description."""

    classes: int
    doc: str


PUBLISHED = {
    "roman-empire": Graph(18, "Roman-empire: the syntactic role of each word of an article; dependencies are edges"),
    "amazon-ratings": Graph(5, "Amazon-ratings: ratings of products; edges join products that are bought together"),
    "minesweeper": Graph(
        2, "Minesweeper: which cells of a 100 x 100 grid are mines, from the visible half of the cells"
    ),
    "tolokers": Graph(
        2, "Tolokers: which workers of a crowdsourcing platform were banned; edges join workers of one task"
    ),
    "questions": Graph(2, "Questions: which users of a forum stay active; edges join users who answered each other"),
    "actor": Graph(5, "Actor: five classes of actors by words of their pages; edges join actors named on one page"),
    "chameleon-filtered": Graph(5, "Chameleon without duplicates: five classes of pages by traffic; links are edges"),
    "squirrel-filtered": Graph(5, "Squirrel without duplicates: five classes of pages by traffic; links are edges"),
}
"""Graphs of Platonov et al.; actor has the splits of Pei et al. (2020)."""


def published(name: str) -> Callable[..., Benchmark]:
    """Make the loader of one of :data:`PUBLISHED`."""
    graph, file = PUBLISHED[name], f"{name.replace('-', '_')}.npz"

    def load(folder: Path) -> Benchmark:
        return _benchmark(folder / file, name, graph.classes)

    load.__doc__ = f"""{graph.doc}; ten splits.

    File: ``{file}`` of Platonov et al.
    """
    return load


for _name in PUBLISHED:
    benchmark(_name)(published(_name))


@benchmark("npz")
def npz(folder: Path, file: str, classes: int | None = None) -> Benchmark:
    """Your own graph for node prediction, in the ``.npz`` format of Platonov et al. (2023).

    The file has ``node_features`` (n, k), ``node_labels`` (n,), ``edges`` (e, 2), and ``train_masks``, ``val_masks``
    and ``test_masks`` (splits, n) of booleans. As in the authors' code, the metric is the area under the ROC curve for
    two classes, and accuracy for more.

    Args:
        folder: folder of the file.
        file: name of the file.
        classes: number of classes; None takes the largest label + 1.

    Raises:
        ConfigError: ``classes`` is less than two.
        ReadError: the file is missing or damaged, or its arrays do not fit together.
    """
    if classes is not None and classes < 2:
        raise ConfigError(f"classes is {classes}; give 2 or more, or leave it out")
    return _benchmark(folder / file, Path(file).stem, classes)


def _benchmark(file: Path, name: str, classes: int | None) -> Benchmark:
    graph, labels, splits = _read(file, classes)
    count = max(2, int(labels.max()) + 1) if classes is None else classes
    # Two classes are one binary target: the area under the ROC curve needs one score per node.
    objective = Binary("node", 1, "rocauc") if count == 2 else Multiclass("node", count, "accuracy")
    targets = labels.astype(np.float32)[:, None] if count == 2 else labels
    nodes, note = Numbers(graph.features["x"].shape[1]), f"{len(splits)} published splits; seed s has split s"
    return Benchmark(name, [graph], targets, splits, objective, nodes, note=note)


def _read(file: Path, classes: int | None) -> tuple[Structure, Ids, tuple[Split, ...]]:
    features, labels, edges, *masks = arrays(file, *ARRAYS)
    problem = _nodes_problem(features, labels, classes) or _edges_problem(edges, len(labels))
    if problem := problem or _masks_problem(masks, len(labels)):
        raise ReadError(f"{problem}; bring back the original").at(file)
    splits = tuple(Split(*map(np.flatnonzero, split)) for split in zip(*masks, strict=True))
    graph = Structure(
        ("",) * len(labels),
        _once(edges),
        directed=False,
        features={"x": features.astype(np.float32)},
        name=file.name,
    )
    return graph, labels.astype(np.int64), splits


def _nodes_problem(features: NDArray[Any], labels: NDArray[Any], classes: int | None) -> str:
    """What is wrong with features and labels; empty if they are valid."""
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or not len(labels):
        return f"node_labels have shape {labels.shape} and dtype {labels.dtype}; an integer for each node is needed"
    if features.ndim != 2 or len(features) != len(labels):
        return f"node_features have shape {features.shape}; a row for each of {len(labels)} nodes is needed"
    if features.dtype.kind not in "biuf" or not np.isfinite(features).all():
        return f"node_features have dtype {features.dtype}, or are not all finite; finite numbers are needed"
    most = len(labels) if classes is None else classes  # there cannot be more classes than nodes
    if labels.min() < 0 or labels.max() >= most:
        return f"node_labels are from {labels.min()} to {labels.max()}; 0..{most - 1} are needed"
    return ""


def _edges_problem(edges: NDArray[Any], size: int) -> str:
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
        return f"edges have shape {edges.shape} and dtype {edges.dtype}; a row (source, target) is needed for each"
    if edges.size and (edges.min() < 0 or edges.max() >= size):
        return f"edges name nodes from {edges.min()} to {edges.max()}; nodes are 0..{size - 1}"
    return ""


def _masks_problem(masks: list[NDArray[Any]], size: int) -> str:
    for name, mask in zip(ARRAYS[3:], masks, strict=True):
        if mask.dtype != np.bool_ or mask.ndim != 2 or mask.shape[1] != size:
            needed = f"a row of {size} booleans for each split is needed"
            return f"{name} has shape {mask.shape} and dtype {mask.dtype}; {needed}"
    counts = [len(mask) for mask in masks]
    if len(set(counts)) > 1 or not counts[0]:
        return "the masks are for {}, {} and {} splits; give the same number of each, at least one".format(*counts)
    for split, parts in enumerate(zip(*masks, strict=True)):
        for name, part in zip(ARRAYS[3:], parts, strict=True):
            if not part.any():
                return f"{name} has no node in split {split}; at least one is needed"
        if (twice := np.flatnonzero(np.sum(parts, axis=0) > 1)).size:
            return f"the masks of split {split} overlap, at node {twice[0]} and {len(twice) - 1} others"
    return ""


def _once(edges: NDArray[Any]) -> Ids:
    """Remove directions and repetitions of edges; the authors' code uses each edge once in both directions."""
    ends: Ids = np.unique(np.sort(edges.astype(np.int64), axis=1), axis=0)
    return ends
