"""Parts of a graph, and other numberings of it: a subgraph, contexts of nodes, the same graph renumbered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.errors import StructureError
from structpe.structure import Ids, Structure, of_structures

__all__ = ["UNREACHABLE", "contexts", "renumbered", "subgraph", "taken"]


@of_structures
def subgraph(structure: Structure, nodes: Ids, edges: Ids | None = None) -> Structure:
    """Some nodes, numbered in the given order, and edges between them.

    Labels, relations and features are kept. The remaining nodes keep their reading order, and the root, if it remains,
    stays the root.

    Args:
        structure: the whole graph.
        nodes: distinct numbers of nodes.
        edges: numbers of edges between these nodes; None for all such edges.

    Raises:
        StructureError: the graph has units, there is no node, a node is repeated, or an edge has another end.
    """
    if structure.units is not None:
        raise structure.error("nodes are already split into units; take the subgraph first, then split")
    nodes = np.asarray(nodes, dtype=np.int64)
    place = np.full(structure.size, -1)
    place[nodes] = np.arange(len(nodes))
    if not len(nodes) or not np.array_equal(place[nodes], np.arange(len(nodes))):
        raise structure.error("a subgraph needs one node at least, and each of its nodes once")
    ends = place[structure.edges]
    kept = np.flatnonzero((ends >= 0).all(axis=1)) if edges is None else np.asarray(edges, dtype=np.int64)
    if (ends[kept] < 0).any():
        raise structure.error("an edge of a subgraph has an end that is not among its nodes; leave such edges out")
    return replace(
        structure,
        nodes=tuple(structure.nodes[node] for node in nodes.tolist()),
        edges=ends[kept],
        relations=tuple(structure.relations[edge] for edge in kept.tolist()) if structure.relations else (),
        order=None if structure.order is None else np.argsort(np.argsort(structure.order[nodes])),
        root=None if structure.root is None or place[structure.root] < 0 else int(place[structure.root]),
        features=taken(structure.features, nodes, kept),
    )


MOST = 1 << 15
"""The largest number of nodes of the whole graph, for which the matrix of intimacy takes 8 GiB."""

_SAME, _LEAST = 1e-9, 1e-14
"""Scores with a smaller relative and absolute difference are equal up to rounding."""

UNREACHABLE = 99
"""The feature ``hop`` of a node without a path to the target."""


@of_structures
def contexts(
    structure: Structure, k: int = 5, targets: Sequence[int] | None = None, restart: float = 0.15
) -> Iterator[Structure]:
    """For each target, the target and its k most intimate nodes, nearest first (Zhang et al. 2020, section 3.1).

    Row t of S = c (I - (1 - c) D^-1/2 A D^-1/2)^-1 is the intimacy of nodes with t; A_ij = 1 if an edge joins i and j
    in either direction, D is its row sum. A context has no edges ("linkless"), the target is its root, and the reading
    order is by intimacy. Features have information of the whole graph: ``intimacy``, the rank 0, 1, ..., k; ``hop``,
    the number of edges on the shortest path from the target, ignoring directions, 99 without a path. Features of nodes
    are kept. For roles of nodes, first add a feature to the graph, such as the values of the encoding
    ``weisfeiler-lehman``.

    Of equally intimate nodes those with higher numbers come first, as in the authors' code; unlike there, scores that
    differ only by rounding errors are equal. S takes memory n^2.

    Args:
        structure: the whole graph.
        k: number of nodes besides the target; fewer in a smaller graph.
        targets: nodes; all by default.
        restart: c.

    Raises:
        StructureError: units are already split, there are more than 2^15 nodes, k is below 1, a target is not a node,
            or c is not between 0 and 1.
    """
    from scipy.sparse import csr_array  # only here, as scipy takes long to import
    from scipy.sparse.csgraph import shortest_path

    chosen = range(structure.size) if targets is None else targets
    _check(structure, k, chosen, restart)
    there = np.zeros((structure.size, structure.size), dtype=np.bool_)
    source, end = structure.edges.T
    there[source, end] = there[end, source] = True
    graph = csr_array(there)
    scale = np.maximum(there.sum(axis=1), 1) ** -0.5
    matrix = np.eye(structure.size) - (1 - restart) * scale[:, None] * there * scale[None, :]
    intimacy = restart * np.linalg.inv(matrix)
    for target in chosen:
        hops = shortest_path(graph, directed=False, unweighted=True, indices=target)
        yield _context(structure, target, _nearest(intimacy[target], target, k), hops)


def _nearest(scores: NDArray[np.float64], target: int, k: int) -> Ids:
    falling = np.sort(scores)[::-1]
    falls = np.diff(falling, prepend=falling[:1]) < -(_SAME * falling + _LEAST)
    level = np.empty(len(scores), dtype=np.int64)
    level[np.argsort(scores)[::-1]] = np.cumsum(falls)
    order = np.lexsort((-np.arange(len(scores)), level))
    return np.concatenate([[target], order[order != target][:k]])


def _context(structure: Structure, target: int, members: Ids, hops: NDArray[np.float64]) -> Structure:
    reached = np.isfinite(hops[members])
    features = {
        **{key: np.asarray(v)[members] for key, v in structure.features.items() if not key.startswith("edge_")},
        "intimacy": np.arange(len(members)),
        "hop": np.where(reached, np.where(reached, hops[members], 0), UNREACHABLE).astype(np.int64),
    }
    return replace(
        structure,
        nodes=tuple(structure.nodes[node] for node in members),
        edges=np.zeros((0, 2), dtype=np.int64),
        relations=(),
        order=np.arange(len(members)),
        root=0,
        features=features,
        name=f"{structure.name}:{target}" if structure.name else str(target),
    )


def _is_whole(given: Any) -> bool:
    """Whether it is a list of whole numbers."""
    return isinstance(given, (Sequence, np.ndarray)) and all(isinstance(each, (int, np.integer)) for each in given)


def _check(structure: Structure, k: int, targets: Sequence[int], restart: float) -> None:
    if structure.units is not None:
        raise structure.error("the nodes are already split into units; take contexts first, then split")
    if structure.size > MOST:
        raise structure.error(
            f"contexts of {structure.size} nodes need a matrix of as many rows and columns; {MOST} nodes at most"
        )
    if not _is_whole([k]) or k < 1 or not 0 < restart < 1:
        raise StructureError(
            f"contexts of {k} nodes with restart {restart} cannot be taken; give 1 node or more, and a probability "
            f"between 0 and 1"
        )
    if not _is_whole(targets):
        raise StructureError(f"targets are a list of numbers of nodes; given is {targets!r}")
    if wrong := [target for target in targets if not 0 <= target < structure.size]:
        raise structure.error(
            f"target {wrong[0]} is not a node; the {structure.size} nodes are 0..{structure.size - 1}"
        )


@of_structures
def renumbered(graph: Structure, generator: np.random.Generator) -> Structure:
    """The same graph with its nodes renumbered and its edges in another order.

    Labels, relations, features, order and root are permuted accordingly. In an undirected graph some edges are
    also reversed.

    Raises:
        StructureError: the graph has units, whose owners are in the order of the nodes.
    """
    if graph.units is not None:
        raise graph.error("a graph with units cannot be renumbered; remove its units first (units=None, owner=None)")
    number = generator.permutation(graph.size)
    moved = generator.permutation(len(graph.edges))
    edges = number[graph.edges][moved]
    if not graph.directed:
        turned = generator.random(len(edges)) < 0.5
        edges = np.where(turned[:, None], edges[:, ::-1], edges)
    before = np.argsort(number)
    return replace(
        graph,
        nodes=tuple(graph.nodes[i] for i in before),
        edges=edges,
        relations=tuple(graph.relations[i] for i in moved) if graph.relations else (),
        order=None if graph.order is None else graph.order[before],
        root=None if graph.root is None else int(number[graph.root]),
        features=taken(graph.features, before, moved),
    )


def taken(features: Mapping[str, Any], nodes: Ids, edges: Ids) -> dict[str, NDArray[Any]]:
    """The features of some nodes, in this order, and of some edges."""
    rows = {key: edges if key.startswith("edge_") else nodes for key in features}
    return {key: np.asarray(value)[rows[key]] for key, value in features.items()}
