"""Depth-first reading of a graph with an order: the edge that reaches each node first, and the place of the others."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from structpe.structure import Ids, Structure

__all__ = ["Tour", "tour"]


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
    rank, incident = structure.order.tolist(), _incident(structure)
    entry, site = np.full(len(rank), -1), _written(structure)
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


def _incident(structure: Structure) -> list[list[tuple[int, int]]]:
    """The edges of each node, in the order in which they are stored, each with its other end."""
    incident: list[list[tuple[int, int]]] = [[] for _ in structure.nodes]
    for edge, (source, target) in enumerate(structure.edges.tolist()):
        incident[source].append((edge, target))
        incident[target].append((edge, source))
    return incident


def _written(structure: Structure) -> Ids:
    nothing = np.zeros(len(structure.edges), dtype=bool)
    inverted = np.asarray(structure.features.get("edge_inverted", nothing), dtype=bool)
    return np.where(inverted, structure.edges[:, 1], structure.edges[:, 0])
