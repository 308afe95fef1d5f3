"""Of labels along shortest paths, ignoring directions.

Libraries choose different ones of several shortest paths, and of parallel edges, so lengths of paths are compared.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import networkx
import numpy as np
import torch
from numpy.typing import NDArray
from quantities import Peer, Quantity

from structpe.encodings import Encoded, LabelPath
from structpe.formats import import_dgl
from structpe.structure import Structure

__all__ = ["PATHS"]

Array = NDArray[Any]
FIRST_STEP, FAR = 4, 510
"""Our smaller symbols are no steps; Graphormer's distance of nodes without a path."""


def _ours(_: Structure, encoded: Encoded) -> Array:
    return (encoded.pairs() >= FIRST_STEP).sum(axis=-1)


def _lengths(_: Structure, labels: Any) -> Array:
    """Of an array (n, n, longest) with -1 after the last label."""
    return np.asarray(labels >= 0).sum(axis=-1)


def _numbers(structure: Structure) -> list[int]:
    """The number of each edge's label in this structure."""
    names = structure.relations or ("",) * len(structure.edges)
    known = {name: number for number, name in enumerate(sorted(set(names)))}
    return [known[name] for name in names]


def _labelled(structure: Structure) -> networkx.Graph[int]:
    graph: networkx.Graph[int] = networkx.Graph()
    graph.add_nodes_from(range(structure.size))
    for (source, target), label in zip(structure.edges.tolist(), _numbers(structure), strict=True):
        graph.add_edge(source, target, label=label)
    return graph


def _by_networkx(graph: networkx.Graph[int]) -> Array:
    """All paths, then the label of each of their edges (the way of GraphGPS)."""
    paths = dict(networkx.all_pairs_shortest_path(graph))
    longest = max(len(path) for ends in paths.values() for path in ends.values()) - 1
    found = np.full((len(graph), len(graph), longest), -1, dtype=np.int64)
    for source, ends in paths.items():
        for target, path in ends.items():
            for step in range(len(path) - 1):
                found[source, target, step] = graph[path[step]][path[step + 1]]["label"]
    return found


def _dense(structure: Structure) -> tuple[Array, Array]:
    """(n, n) whether an edge joins two nodes, and its label."""
    there, labels = np.zeros((2, structure.size, structure.size), dtype=np.int64)
    source, target = structure.edges.T
    there[source, target] = there[target, source] = 1
    labels[source, target] = labels[target, source] = _numbers(structure)
    return there, labels


def _floyd_warshall(there: Array) -> tuple[Array, Array]:
    """``algos.floyd_warshall`` of Graphormer (Ying et al. 2021): lengths, and a node between the two."""
    n = len(there)
    lengths, between = np.where(there != 0, there, FAR), np.full((n, n), -1)
    for i in range(n):
        lengths[i, i] = 0
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if lengths[i, j] > lengths[i, k] + lengths[k, j]:
                    lengths[i, j], between[i, j] = lengths[i, k] + lengths[k, j], k
    for i in range(n):
        for j in range(n):
            if lengths[i, j] >= FAR:
                lengths[i, j] = between[i, j] = FAR
    return lengths, between


def _edge_input(longest: int, between: Array, labels: Array) -> Array:
    """``algos.gen_edge_input``: labels (n, n, longest); its recursion over the nodes between two, as a stack."""
    n = len(between)
    found, stack = np.full((n, n, longest), -1), np.empty((n + 1, 2), np.int64)
    for i in range(n):
        for j in range(n):
            if i == j or between[i, j] == FAR:
                continue
            stack[0], some, step = (i, j), 1, 0
            while some:
                a, b = stack[some - 1]
                k = between[a, b]
                if k == -1:
                    found[i, j, step] = labels[a, b]
                    some, step = some - 1, step + 1
                else:
                    stack[some - 1], stack[some] = (k, b), (a, k)
                    some += 1
    return found


@cache
def _compiled() -> tuple[Any, Any]:
    numba = import_module("numba")
    return numba.njit(_floyd_warshall), numba.njit(_edge_input)


def _by_graphormer(given: tuple[Array, Array]) -> Array:
    there, labels = given
    floyd_warshall, edge_input = _compiled()
    lengths, between = floyd_warshall(there)
    longest = lengths[lengths < FAR].max()  # in their code 510 where some pair has no path
    found: Array = edge_input(longest, between, labels)
    return found


def _dgl_labelled(structure: Structure) -> tuple[Any, Any]:
    both = np.concatenate([structure.edges, structure.edges[:, ::-1]])
    source, target = torch.from_numpy(np.ascontiguousarray(both.T))
    labels = torch.tensor([*_numbers(structure) * 2, -1])
    return import_dgl().graph((source, target), num_nodes=structure.size), labels


def _by_dgl(given: tuple[Any, Any]) -> Array:
    """The edges of each path, -1 after the last."""
    graph, labels = given
    _, edges = import_dgl().shortest_dist(graph, return_paths=True)
    return labels[edges].numpy()


PATHS = (
    Quantity(
        LabelPath(),
        _ours,
        (
            Peer("networkx", _labelled, _by_networkx, _lengths),
            Peer("DGL", _dgl_labelled, _by_dgl, _lengths),
            Peer("numba", _dense, _by_graphormer, _lengths),
        ),
        ("molecules", "parses", "AMR graphs, directed", "drawn graphs"),
    ),
)
