"""Parents and depths of many graphs at once, where they are trees whose edges lead away from a root.

Nodes are numbered over all graphs. Shapes: g graphs, T nodes, E edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.encodings._fast import compiled, fast
from structpe.structure import Ids

__all__ = ["Rooted", "heights"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Rooted:
    """Trees.

    Attributes:
        parent: (T,) parent of each node, -1 for a root.
        depth: (T,) number of edges from the root.
        line: (T,) the nodes of each graph by their depth: parents before children.
        tree: (g,) whether a graph is a tree; of others, no parent or depth means anything.
    """

    parent: Ids
    depth: Ids
    line: Ids
    tree: NDArray[np.bool_]

    @classmethod
    def of(cls, start: Ids, edges: Ids, edge_start: Ids) -> Rooted:
        """From the first node of each graph (g + 1,), the edges (E, 2), and the first edge of each graph (g + 1,)."""
        nodes = int(start[-1])
        if not fast():
            return _climb(start, edges)
        parent, depth, line = np.full(nodes, -1), np.zeros(nodes, dtype=np.int64), np.arange(nodes)
        tree = np.ones(len(start) - 1, dtype=np.bool_)
        _descend(start, edges, edge_start, parent, depth, line, tree)
        return cls(parent, depth, line, tree)


def heights(parent: Ids) -> tuple[Ids, NDArray[np.bool_]]:
    """(T,) number of edges to the root, whose parent is T, and whether it has one: none on or below a cycle.

    In log2(depth) rounds, each of which doubles the step.
    """
    nodes = len(parent)
    jump = np.append(parent, nodes)
    depth = (jump < nodes).astype(np.int64)
    for _ in range(nodes.bit_length()):
        if (jump == nodes).all():
            break
        depth += depth[jump]
        jump = jump[jump]
    return depth[:-1], jump[:-1] == nodes


def _climb(start: Ids, edges: Ids) -> Rooted:
    nodes, sizes = int(start[-1]), np.diff(start)
    graph = np.repeat(np.arange(len(sizes)), sizes)
    source, target = edges.T
    parent, below = np.full(nodes, nodes), np.bincount(target, minlength=nodes)
    parent[target] = source
    tree = np.bincount(graph[below == 0], minlength=len(sizes)) == 1
    tree[graph[below > 1]] = False
    depth, high = heights(parent)
    tree[graph[~high]] = False
    parent[parent == nodes] = -1
    line = np.argsort(graph * (int(depth.max(initial=0)) + 1) + depth, kind="stable")
    return Rooted(parent, depth, line, tree)


@compiled
def _descend(
    start: Ids, edges: Ids, edge_start: Ids, parent: Ids, depth: Ids, line: Ids, tree: NDArray[np.bool_]
) -> None:
    """From each root to its children, theirs, and so on."""
    first, other = np.full(len(parent), -1), np.full(len(parent), -1)  # a child, and the next one of the same parent
    for g in range(len(start) - 1):
        begin, end = start[g], start[g + 1]
        for e in range(edge_start[g], edge_start[g + 1]):
            source, target = edges[e, 0], edges[e, 1]
            if parent[target] >= 0:
                tree[g] = False
                continue
            parent[target], other[target] = source, first[source]
            first[source] = target
        roots, last = 0, begin
        for node in range(begin, end):
            if parent[node] < 0:
                roots, line[begin], last = roots + 1, node, begin + 1
        at = begin
        while at < last:
            child = first[line[at]]
            while child >= 0:
                depth[child], line[last] = depth[line[at]] + 1, child
                last, child = last + 1, other[child]
            at += 1
        if roots != 1 or last < end:
            tree[g] = False
