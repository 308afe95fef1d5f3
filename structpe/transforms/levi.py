"""Levi graph: every edge becomes a node, so that relations are read and attended to like concepts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.structure import Ids, Structure, of_structures
from structpe.transforms._reading import tour

__all__ = ["levi"]


@of_structures
def levi(structure: Structure) -> Structure:
    """The graph with n + e nodes and 2e unlabelled edges: source -> relation -> target (Levi 1942).

    Nodes keep their numbers 0..n-1; the relation of edge i is node n + i, labelled by it. The feature ``is_relation``
    marks them. A feature is kept if both nodes and edges have it (``alignment`` and ``edge_alignment``); others would
    have no value for some of the nodes and are left out.

    If there is an order, the nodes keep it, and each relation is read right before the node that it introduces. A
    relation to a node that is introduced by another one (a re-entrancy) is read right after its own node.
    So the units in their order read like the linearised graph, but a re-entrant node is read once, where
    :func:`structpe.transforms.linearise.linearise` repeats it.

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
