"""Nodes that are added to a graph: for its edges (the Levi graph, tokens), a virtual node, a class token.

A graph with an order is read depth first, along the edge that reaches each node first.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.structure import Ids, Structure, of_structures

__all__ = ["Tour", "edge_tokens", "levi", "padded", "tour", "with_class_token", "with_virtual_node"]


@dataclass(frozen=True, eq=False)
class Tour:
    """The spanning forest along which a graph is read.

    Attributes:
        starts: the start nodes: the root, then the first node in order of each part not yet reached.
        entry: (n,) the edge that reaches each node, -1 for start nodes.
        site: (e,) the node at which each edge is read: for the edges of ``entry`` the end nearer to the start; for
            the others, which close a cycle or a re-entrancy, the source, or the target if the feature
            ``edge_inverted`` is true (a role that PENMAN writes as ``-of``).
    """

    starts: tuple[int, ...]
    entry: Ids
    site: Ids


def tour(structure: Structure) -> Tour:
    """Visit every node: of all edges to new nodes, take the one to the node that is first in the order.

    Directions are ignored, since an inverse role is an edge towards the node that is read first. Of several edges to
    the same node the first one stored is taken. O(e log e).

    Raises:
        StructureError: the structure has no order.
    """
    if structure.order is None:
        raise structure.error("the structure has no reading order; give Structure(order=...)")
    rank, entry = structure.order.tolist(), np.full(structure.size, -1)
    incident: list[list[tuple[int, int]]] = [[] for _ in structure.nodes]  # edges in the order in which they are stored
    for edge, (source, target) in enumerate(structure.edges.tolist()):
        incident[source].append((edge, target))
        incident[target].append((edge, source))
    inverted = np.asarray(structure.features.get("edge_inverted", np.zeros(len(structure.edges))), dtype=bool)
    site = np.where(inverted, structure.edges[:, 1], structure.edges[:, 0])
    starts, reached = [], set[int]()
    root = [] if structure.root is None else [structure.root]
    for start in [*root, *np.argsort(structure.order).tolist()]:
        if start in reached:
            continue
        starts.append(start)
        frontier = [(-1, -1, start, start)]
        while frontier:
            _, edge, node, origin = heapq.heappop(frontier)
            if node in reached:
                continue
            reached.add(node)
            if edge >= 0:
                entry[node], site[edge] = edge, origin
            for onward, other in incident[node]:
                if other not in reached:
                    heapq.heappush(frontier, (rank[other], onward, other, node))
    return Tour(tuple(starts), entry, site)


@of_structures
def levi(structure: Structure) -> Structure:
    """The graph with n + e nodes and 2e unlabelled edges: source -> relation -> target (Levi 1942).

    Nodes keep their numbers 0..n-1; the relation of edge i is node n + i, labelled by it. The feature ``is_relation``
    marks them. A feature is kept if both nodes and edges have it (``alignment`` and ``edge_alignment``); others would
    have no value for some of the nodes and are left out.

    If there is an order, the nodes keep it, and each relation is read right before the node that it introduces. A
    relation to a node that is introduced by another one (a re-entrancy) is read right after its own node.
    So the units in their order read like the linearised graph, but a re-entrant node is read once, where
    :func:`structpe.transforms.texts.linearise` repeats it.

    Raises:
        StructureError: edges have no relations, or units are already split; split after this.
    """
    if structure.units is not None:
        raise structure.error("the nodes are already split into units; make the Levi graph first, then split")
    if len(structure.edges) and not structure.relations:
        raise structure.error("the edges have no relations, which become nodes in a Levi graph; give relations")
    n, e = structure.size, len(structure.edges)
    middle = np.arange(n, n + e)
    pairs = np.stack([structure.edges[:, 0], middle, middle, structure.edges[:, 1]], axis=1)
    return Structure(
        structure.nodes + structure.relations,
        pairs.reshape(-1, 2),
        directed=structure.directed,
        order=None if structure.order is None else _order(structure, structure.order),
        root=structure.root,
        features={**_features(structure), "is_relation": np.arange(n + e) >= n},
        name=structure.name,
    )


def _order(structure: Structure, order: Ids) -> Ids:
    n, way = structure.size, tour(structure)
    after: list[list[int]] = [[] for _ in range(n)]
    introducing = set(way.entry.tolist())
    for edge, node in enumerate(way.site.tolist()):
        if edge not in introducing:
            after[node].append(n + edge)
    sequence: list[int] = []
    for node in np.argsort(order).tolist():
        if way.entry[node] >= 0:
            sequence.append(n + int(way.entry[node]))
        sequence += [node, *after[node]]
    return np.argsort(sequence)


def _features(structure: Structure) -> dict[str, NDArray[Any]]:
    both = {name: (value, structure.features.get(f"edge_{name}")) for name, value in structure.features.items()}
    return {
        name: np.concatenate([value, of_edges])
        for name, (value, of_edges) in both.items()
        if of_edges is not None and of_edges.shape[1:] == value.shape[1:]
    }


@of_structures
def edge_tokens(structure: Structure) -> Structure:
    """The graph with an additional node for each edge, labelled by its relation, between its ends (Kim et al. 2022).

    Nodes keep their numbers; the edges follow, marked by the feature ``is_edge``. An undirected edge becomes two nodes,
    one per direction (a self-loop one), as for molecules in the authors' code. An edge source -> target becomes the
    edges source -> token -> target, which determine the two nodes of a token. Edges without a relation have the label
    "". If there is an order, the edges are read after all nodes, in the order of source and target. Other features of
    nodes are 0 for the edges; features of edges are left out.

    Raises:
        StructureError: units are already split; split after this.
    """
    if structure.units is not None:
        raise structure.error("the nodes are already split into units; make the edges tokens first, then split")
    pairs, which = _both_ways(structure)
    n, e = structure.size, len(pairs)
    tokens = np.arange(n, n + e)
    kept = {key: value for key, value in structure.features.items() if not key.startswith("edge_")}
    return replace(
        structure,
        nodes=structure.nodes + tuple(structure.relation(edge) for edge in which),
        edges=np.stack([pairs[:, 0], tokens, tokens, pairs[:, 1]], axis=1).reshape(-1, 2),
        relations=(),
        directed=True,
        order=None if structure.order is None else np.concatenate([structure.order, n + _rank(structure.order, pairs)]),
        features={**padded(kept, (0, e), (0, 0)), "is_edge": np.arange(n + e) >= n},
    )


def _both_ways(structure: Structure) -> tuple[Ids, Ids]:
    """(e, 2) source and target of each token, and (e,) the number of its edge."""
    which = np.arange(len(structure.edges))
    if structure.directed:
        return structure.edges, which
    apart = structure.edges[:, 0] != structure.edges[:, 1]
    both = np.concatenate([structure.edges, structure.edges[apart][:, ::-1]])
    return both, np.concatenate([which, which[apart]])


def _rank(order: Ids, pairs: Ids) -> Ids:
    """(e,) rank of each edge by the order of its source, then of its target; parallel ones as they are stored."""
    sequence = np.lexsort((order[pairs[:, 1]], order[pairs[:, 0]]))
    return np.argsort(sequence)


@of_structures
def with_virtual_node(structure: Structure, label: str = "[GRAPH]") -> Structure:
    """The structure with one more node in front, whose feature ``virtual`` is 1; that of all others is 0.

    It has no edges, so distances, degrees and eigenvectors of the others do not change. A position model decides what
    attention to it means: Graphormer has a special distance for it. It is read first, its other features are 0, the
    root does not change, and if nodes are split into units, it has one.

    Raises:
        StructureError: the structure already has a virtual node.
    """
    if "virtual" in structure.features and np.asarray(structure.features["virtual"]).any():
        raise structure.error("the structure has a virtual node already; give it one only")
    features = padded(structure.features, (1, 0), (0, 0))
    return replace(
        structure,
        nodes=(label, *structure.nodes),
        edges=structure.edges + 1,
        order=None if structure.order is None else np.concatenate([[0], structure.order + 1]),
        root=None if structure.root is None else structure.root + 1,
        units=None if structure.units is None else (label, *structure.units),
        owner=None if structure.owner is None else np.concatenate([[0], structure.owner + 1]),
        features={**features, "virtual": np.arange(structure.size + 1) == 0},
    )


@of_structures
def with_class_token(structure: Structure, label: str = "[CLS]") -> Structure:
    """The structure with one more node in front, read first: a class token, as in Vision Transformers.

    It is a virtual node (:func:`structpe.transforms.nodes.with_virtual_node`). If the others have coordinates, its
    coordinates are -1: it has no place in the grid.

    Raises:
        StructureError: the structure already has a virtual node.
    """
    led = with_virtual_node(structure, label)
    if "coordinates" not in led.features:
        return led
    places = np.asarray(led.features["coordinates"])
    places = places.astype(np.result_type(places.dtype, np.int8))  # a copy, which can be negative
    places[0] = -1
    return replace(led, features={**led.features, "coordinates": places})


def padded(features: Mapping[str, Any], nodes: tuple[int, int], edges: tuple[int, int]) -> dict[str, NDArray[Any]]:
    """Features with rows of zeros before and after those of the nodes, and of the edges."""
    arrays = {key: np.asarray(value) for key, value in features.items()}
    rows = {key: edges if key.startswith("edge_") else nodes for key in arrays}
    return {key: np.pad(value, [rows[key], *[(0, 0)] * (value.ndim - 1)]) for key, value in arrays.items()}
