"""Benchmarks from data sets of ``ogb``: structures, objectives and features."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from structpe.data.features import Categories, Features, Numbers
from structpe.datasets.base import Benchmark
from structpe.datasets.ogb._official import Kind, Raw
from structpe.errors import ConfigError, ReadError
from structpe.objectives import Objective
from structpe.objectives.classification import Binary, Multiclass, Multilabel
from structpe.objectives.regression import Regression
from structpe.structure import Structure

__all__ = ["benchmark_of", "numbered", "structures"]

Array = NDArray[Any]
Labels = Callable[[Array | None, int], tuple[str, ...]]
"""(node features, number of nodes) -> labels of the nodes."""
Relations = Callable[[Array | None], tuple[str, ...]]
"""Edge features -> labels of the edges, or an empty tuple."""


def numbered(x: Array | None, size: int) -> tuple[str, ...]:
    """Label each node by its first category; without categories, all nodes have the same label."""
    return ("node",) * size if x is None or x.dtype.kind == "f" else tuple(map(str, x[:, 0].tolist()))


def benchmark_of(
    level: Kind,
    raw: Raw,
    labels: Labels = numbered,
    relations: Relations = lambda _: (),
    atoms: tuple[int, ...] | None = None,
    bonds: tuple[int, ...] | None = None,
) -> Benchmark:
    """Make a benchmark of a data set of OGB.

    Args:
        level: what is predicted.
        raw: the data set.
        labels: labels of nodes.
        relations: labels of edges.
        atoms: numbers of categories of nodes; None counts them.
        bonds: numbers of categories of edges; None counts them.

    Raises:
        ConfigError: the metric is unknown, or there are several tasks with classes.
        ReadError: a graph is damaged, or the labels do not fit the metric.
    """
    (objective, targets), graphs = _targets(level, raw), structures(raw, labels, relations)
    return Benchmark(
        name=raw.name,
        graphs=graphs,
        targets=targets,
        splits=(raw.split,),
        nodes=_features(graphs, "x", atoms),
        edges=_features(graphs, "edge_x", bonds),
        objective=objective,
    )


def _targets(level: Kind, raw: Raw) -> tuple[Objective, Array]:
    """The objective, and the targets in its form."""
    labels = np.asarray(raw.labels)
    if labels.ndim != 2 or labels.dtype.kind not in "biuf":
        raise ReadError(f"the labels have shape {labels.shape} and dtype {labels.dtype}; give numbers, (items, tasks)")
    metric, tasks, classes = (raw.meta[key] for key in ("eval metric", "num tasks", "num classes"))
    if metric not in METRICS:
        raise ConfigError(f"there is no metric {metric!r} of OGB here; known: {', '.join(METRICS)}").at(raw.name)
    objective, name = METRICS[metric]
    known = labels[~np.isnan(labels)] if labels.dtype.kind == "f" else labels
    if objective is Multiclass:
        if int(tasks) != 1:
            raise ConfigError(f"{tasks} tasks with classes are not supported; one is").at(raw.name)
        if (known != np.floor(known)).any():
            told = "the classes are not all whole numbers; give 0, 1, ..., or NaN where none is known"
            raise ReadError(told).at(raw.name)
        return objective(level, int(classes), name), np.where(np.isnan(labels), -1, labels).astype(np.int64)[:, 0]
    if objective is Multilabel and not np.isin(known, (0, 1)).all():
        raise ReadError(f"the labels are from {known.min()} to {known.max()}; 0, 1 or NaN are needed").at(raw.name)
    objective = Binary if objective is Multilabel and int(tasks) == 1 else objective
    return objective(level, int(tasks), name), labels.astype(np.float32)


METRICS: dict[str, tuple[type[Objective], str]] = {
    "acc": (Multiclass, "accuracy"),
    "rocauc": (Multilabel, "rocauc"),
    "ap": (Multilabel, "ap"),
    "rmse": (Regression, "rmse"),
    "mae": (Regression, "mae"),
}
"""OGB's name of a metric -> class of the objective, our name of the metric."""


def structures(raw: Raw, labels: Labels, relations: Relations) -> list[Structure]:
    """Convert the graphs, with features ``x`` and ``edge_x`` if they have them.

    A data set with all edges in both directions, with equal features, is undirected: each edge is stored once.
    """
    graphs = [_checked(graph, f"{raw.name}:{number}") for number, graph in enumerate(raw.graphs)]
    if raw.meta["add_inverse_edge"] == "True":  # by ogb: edge 2k + 1 is the reverse of edge 2k
        once: Sequence[Any] | None = [slice(None, None, 2)] * len(graphs)
    else:
        once = _first_ways(graphs)
    return [
        _structure(graph, once is None, keep, (labels, relations), f"{raw.name}:{number}")
        for number, (graph, keep) in enumerate(zip(graphs, once or [slice(None)] * len(graphs), strict=True))
    ]


def _features(graphs: Sequence[Structure], key: Literal["x", "edge_x"], sizes: tuple[int, ...] | None) -> Features:
    """Describe features: numbers, or categories with the numbers in ``sizes`` or those that occur."""
    values = [graph.features[key] for graph in graphs if key in graph.features]
    if not values:
        return None
    if sizes is not None:
        return Categories(sizes)
    if values[0].dtype.kind == "f":
        return Numbers(values[0].shape[1])
    return Categories(tuple(int(size) + 1 for size in np.max([v.max(axis=0) for v in values if len(v)], axis=0)))


def _checked(graph: Any, name: str) -> Mapping[str, Any]:
    edges = graph.get("edge_index") if isinstance(graph, dict) else None
    if not isinstance(edges, np.ndarray) or edges.ndim != 2 or len(edges) != 2:
        raise ReadError("it is not a graph: there is no edge_index of shape (2, e); make the data set again").at(name)
    if not isinstance(graph.get("num_nodes"), (int, np.integer)):
        raise ReadError("it has no whole number num_nodes; make the data set again").at(name)
    for key in ("node_feat", "edge_feat"):
        if graph.get(key) is not None and np.ndim(graph[key]) != 2:
            raise ReadError(f"its {key} has shape {np.shape(graph[key])}; (rows, columns) is needed").at(name)
    return {key: np.asarray(value) if isinstance(value, np.ndarray) else value for key, value in graph.items()}


def _structure(
    graph: Mapping[str, Any], directed: bool, keep: Any, named: tuple[Labels, Relations], name: str
) -> Structure:
    x, edge_x, size = graph.get("node_feat"), graph.get("edge_feat"), int(graph["num_nodes"])
    edge_x = None if edge_x is None else edge_x[keep]
    features = {key: value for key, value in (("x", x), ("edge_x", edge_x)) if value is not None}
    labels, relations = named
    return Structure(
        labels(x, size),
        graph["edge_index"].T[keep],
        relations(edge_x),
        directed=directed,
        features=features,
        name=name,
    )


def _first_ways(graphs: Sequence[Mapping[str, Any]]) -> list[NDArray[np.bool_]] | None:
    """Masks of the edges to keep of each graph; None if an edge has no reverse."""
    sizes, counts = [int(graph["num_nodes"]) for graph in graphs], [graph["edge_index"].shape[1] for graph in graphs]
    first = np.repeat(np.cumsum([0, *sizes[:-1]]), counts)  # number of the first node of each graph
    source, target = np.concatenate([graph["edge_index"] for graph in graphs], axis=1) + first
    rows = [graph["edge_feat"] for graph in graphs if graph.get("edge_feat") is not None]
    columns = np.concatenate(rows).T if rows else np.zeros((0, len(source)))
    there, back = np.lexsort((*columns, target, source)), np.lexsort((*columns, source, target))
    ends = np.array_equal(source[there], target[back]) and np.array_equal(target[there], source[back])
    if not ends or not all(np.array_equal(column[there], column[back]) for column in columns):
        return None
    return np.split(source <= target, np.cumsum(counts)[:-1])
