"""Graphs as ``ogb`` gives them, made structures; and what is predicted of them, made an objective."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from structpe.data.features import Categories, Features, Numbers
from structpe.datasets.ogb._official import Kind, Raw
from structpe.errors import ConfigError, ReadError
from structpe.objectives import Objective
from structpe.objectives.binary import Binary
from structpe.objectives.multiclass import Multiclass
from structpe.objectives.multilabel import Multilabel
from structpe.objectives.regression import Regression
from structpe.structure import Structure

__all__ = ["Labels", "Relations", "features_of", "numbered", "structures", "targets_of"]

Array = NDArray[Any]
Labels = Callable[[Array | None, int], tuple[str, ...]]
"""(node features, number of nodes) -> a label of each node."""
Relations = Callable[[Array | None], tuple[str, ...]]
"""Edge features -> a label of each edge, or none."""


def targets_of(level: Kind, raw: Raw) -> tuple[Objective, Array]:
    """What is to be predicted, and the targets as the objective wants them.

    Raises:
        ConfigError: the metric is not known, or several classes are to be predicted at once.
        ReadError: the labels do not suit the metric.
    """
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
            raise ConfigError(f"{tasks} classes are to be predicted at once; one is possible here").at(raw.name)
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
"""What is predicted, and our name for the metric, by OGB's name for it."""


def structures(raw: Raw, labels: Labels, relations: Relations) -> list[Structure]:
    """The graphs, with features ``x`` and ``edge_x`` where they have them.

    A data set whose edges are all there both ways, with equal features, is undirected: each edge is stored once.
    """
    graphs = [_checked(graph, f"{raw.name}:{number}") for number, graph in enumerate(raw.graphs)]
    if raw.meta["add_inverse_edge"] == "True":  # by ogb: edge 2k + 1 is edge 2k the other way
        once: Sequence[Any] | None = [slice(None, None, 2)] * len(graphs)
    else:
        once = _first_ways(graphs)
    return [
        _structure(graph, once is None, keep, (labels, relations), f"{raw.name}:{number}")
        for number, (graph, keep) in enumerate(zip(graphs, once or [slice(None)] * len(graphs), strict=True))
    ]


def features_of(graphs: Sequence[Structure], key: Literal["x", "edge_x"], sizes: tuple[int, ...] | None) -> Features:
    """What features there are: categories as many as ``sizes`` say, or as many as are seen; or numbers."""
    values = [graph.features[key] for graph in graphs if key in graph.features]
    if not values:
        return None
    if sizes is not None:
        return Categories(sizes)
    if values[0].dtype.kind == "f":
        return Numbers(values[0].shape[1])
    return Categories(tuple(int(size) + 1 for size in np.max([v.max(axis=0) for v in values if len(v)], axis=0)))


def numbered(x: Array | None, size: int) -> tuple[str, ...]:
    """The first category of a node is its label; where there are none, all nodes are called alike."""
    return ("node",) * size if x is None or x.dtype.kind == "f" else tuple(map(str, x[:, 0].tolist()))


def _checked(graph: Any, name: str) -> Mapping[str, Any]:
    edges = graph.get("edge_index") if isinstance(graph, dict) else None
    if not isinstance(edges, np.ndarray) or edges.ndim != 2 or len(edges) != 2:
        raise ReadError("it is no graph: there is no edge_index of shape (2, e); make the data set anew").at(name)
    if not isinstance(graph.get("num_nodes"), (int, np.integer)):
        raise ReadError("it has no whole number num_nodes; make the data set anew").at(name)
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
    """Which edges to keep of each graph of an undirected data set; None where an edge lacks its other way."""
    sizes, counts = [int(graph["num_nodes"]) for graph in graphs], [graph["edge_index"].shape[1] for graph in graphs]
    first = np.repeat(np.cumsum([0, *sizes[:-1]]), counts)  # number of a graph's first node among all nodes
    source, target = np.concatenate([graph["edge_index"] for graph in graphs], axis=1) + first
    rows = [graph["edge_feat"] for graph in graphs if graph.get("edge_feat") is not None]
    columns = np.concatenate(rows).T if rows else np.zeros((0, len(source)))
    there, back = np.lexsort((*columns, target, source)), np.lexsort((*columns, source, target))
    ends = np.array_equal(source[there], target[back]) and np.array_equal(target[there], source[back])
    if not ends or not all(np.array_equal(column[there], column[back]) for column in columns):
        return None
    return np.split(source <= target, np.cumsum(counts)[:-1])
