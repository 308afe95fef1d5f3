"""Places of the nodes of a hierarchy: the root at the top, each subtree in a separate column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from structpe.structure import Structure

__all__ = ["Walk", "hierarchy", "leads_down", "walk"]


@dataclass(frozen=True, eq=False)
class Walk:
    """A spanning tree of a graph, ignoring directions.

    Attributes:
        parent: (n,) the node from which each node is first reached, -1 for the first of each part.
        edge: (n,) the edge by which it is reached, or -1.
        order: all nodes, in the order in which they are reached.
    """

    parent: NDArray[np.int64]
    edge: NDArray[np.int64]
    order: list[int]


def leads_down(structure: Structure, most_leaves: int) -> bool:
    """Whether a directed graph is drawn as a hierarchy: it needs few leaves, and few edges besides those of a tree.

    Below a given root there may be up to twice the edges of a tree, and there may be other parts, as in some graphs of
    a corpus of trees. Without a given root, the only node without an incoming edge must reach all nodes, and the graph
    must be nearly a tree. Edges may lead upwards, as inverse relations of AMR do.
    """
    root, extra = _root(structure), len(structure.edges) - (structure.size - 1)
    if not structure.directed or root is None or structure.size < 2:
        return False
    given = structure.root is not None
    if extra > (max(4, structure.size) if given else max(2, structure.size // 4)):
        return False
    found = walk(structure)
    parts = int((found.parent < 0).sum())
    leaves = structure.size - len(set(found.parent.tolist()) - {-1})
    return leaves <= most_leaves and ((given and len(structure.edges) > 0) or parts == 1)


def walk(structure: Structure) -> Walk:
    """The breadth-first tree of a graph from its root, with ties in reading order; then those of other parts."""
    near: list[list[tuple[int, int]]] = [[] for _ in range(structure.size)]
    for edge, (source, target) in enumerate(structure.edges.tolist()):
        near[source].append((target, edge))
        near[target].append((source, edge))
    if (order := structure.order) is not None:
        near = [sorted(each, key=lambda other: int(order[other[0]])) for each in near]
    found = Walk(np.full(structure.size, -1), np.full(structure.size, -1), [])
    seen: set[int] = set()
    for first in (_root(structure) or 0, *range(structure.size)):
        if first in seen:
            continue
        part = [first]
        seen.add(first)
        for node in part:  # grows in the loop
            for other, edge in near[node]:
                if other not in seen:
                    seen.add(other)
                    found.parent[other], found.edge[other] = node, edge
                    part.append(other)
        found.order.extend(part)
    return found


def hierarchy(structure: Structure, widths: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """(n, 2) middle of each node: y is minus its depth, x the middle of its subtree's column.

    Args:
        structure: the graph.
        widths: (n,) width of each node, including the label of the edge to it; 1 by default. Nodes of the same depth
            do not overlap.
    """
    found = walk(structure)
    own = np.ones(structure.size) if widths is None else widths
    children: list[list[int]] = [[] for _ in range(structure.size)]
    depth, column = np.zeros(structure.size), own.copy()
    for node in found.order:
        if (parent := found.parent[node]) >= 0:
            children[parent].append(node)
            depth[node] = depth[parent] + 1
    for node in reversed(found.order):  # children before their parents
        column[node] = max(own[node], sum(column[child] for child in children[node]))
    left = np.zeros(structure.size)
    start = 0.0
    x = np.zeros(structure.size)
    for node in found.order:
        if found.parent[node] < 0:
            left[node], start = start, start + column[node]
        at = left[node] + (column[node] - sum(column[child] for child in children[node])) / 2
        for child in children[node]:
            left[child], at = at, at + column[child]
        x[node] = left[node] + column[node] / 2
    return np.stack([x - x.min(), -depth], axis=1)


def _root(structure: Structure) -> int | None:
    if structure.root is not None:
        return int(structure.root)
    free = np.setdiff1d(np.arange(structure.size), structure.edges[:, 1])
    return int(free[0]) if len(free) == 1 else None
