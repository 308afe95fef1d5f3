"""Parents and depths of the nodes of many trees, and where the ways of two nodes to the root meet.

Pairs are flat (P,): the matrix of each tree row by row, one tree after the other. Few of them are an ancestor and its
descendant, which are found by climbing; all others follow from the row of a parent, or from both depths.
Shapes: g graphs, b trees of n nodes each, T nodes of all of them, E edges.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.encodings.columns import groups, scatter, starts_of
from structpe.encodings.compiled import OF_A_LIST, compiled
from structpe.structure import Ids

__all__ = ["Rooted", "ancestors", "heights", "meetings", "sides"]


Array = NDArray[Any]

_SLOWER = 4  # how much longer a node takes than a distance, both without numba


@dataclass(frozen=True, eq=False)
class Rooted:
    """Trees.

    Attributes:
        parent: (T,) parent of each node, -1 for a root.
        depth: (T,) number of edges from the root.
        tree: (g,) whether a graph is a tree; of others, no parent or depth means anything.
    """

    parent: Ids
    depth: Ids
    tree: NDArray[np.bool_]

    @classmethod
    def of(cls, start: Ids, edges: Ids, edge_start: Ids) -> Rooted:
        """From the first node of each graph (g + 1,), the edges (E, 2), and the first edge of each graph (g + 1,)."""
        nodes = int(start[-1])
        if not _root.pays(OF_A_LIST + _SLOWER * nodes):
            return _climb(start, edges)
        parent, depth, tree = np.full(nodes, -1), np.full(nodes, -1), np.ones(len(start) - 1, dtype=np.bool_)
        _root(start, edges, edge_start, parent, depth, tree)
        return cls(parent, depth, tree)


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
    return Rooted(parent, depth, tree)


@compiled
def _root(start: Ids, edges: Ids, edge_start: Ids, parent: Ids, depth: Ids, tree: NDArray[np.bool_]) -> None:
    """From each node up to one whose depth is known, and down again."""
    for g in range(len(start) - 1):
        for e in range(edge_start[g], edge_start[g + 1]):
            source, target = edges[e, 0], edges[e, 1]
            if parent[target] >= 0:
                tree[g] = False
            parent[target] = source
        # A graph of n - 1 edges in which each node has one parent at most has one root, unless there is a cycle.
        nodes = start[g + 1] - start[g]
        tree[g] = tree[g] and edge_start[g + 1] - edge_start[g] == nodes - 1
        for node in range(start[g], start[g + 1]):
            steps, at = 0, node
            while depth[at] < 0 and parent[at] >= 0 and steps < nodes:
                steps, at = steps + 1, parent[at]
            if steps == nodes:  # a cycle
                tree[g] = False
            if not tree[g]:
                break
            steps, at = steps + max(depth[at], 0), node
            while depth[at] < 0:
                depth[at], steps = steps, steps - 1
                if parent[at] >= 0:
                    at = parent[at]


def ancestors(parent: Ids) -> Iterator[tuple[Ids, Ids, int]]:
    """All nodes (m,) that have an ancestor k generations above, these (m,), and k, for k = 1, 2, ..."""
    above, generations = parent, 0
    node = np.arange(len(parent))
    while len(node):
        there = above >= 0
        node, above, generations = node[there], above[there], generations + 1
        yield node, above, generations
        above = parent[above]


# --- the path between two nodes: up to where their ways meet, and down ---


_WORD = 64
_CELLS = 1 << 16  # pairs that are processed at once: their words stay in the cache


def meetings(start: Ids, trees: Rooted, most: int) -> Array:
    """(P,) up (most + 1) + down, in the narrowest unsigned dtype.

    They are the numbers of steps from the first node of a pair up to the lowest common ancestor of both, and down to
    the second one; ``most`` in place of more.

    Args:
        start: (g + 1,) the first node of each tree.
        trees: parents and depths; graphs that are not trees are not allowed.
        most: the largest number of steps.
    """
    pairs, dtype = starts_of(np.square(np.diff(start))), np.min_scalar_type((most + 1) ** 2 - 1)
    result = np.empty(pairs[-1], dtype=dtype)
    if _meet.pays(OF_A_LIST + len(result)):
        result.fill(np.iinfo(dtype).max)
        known, way = trees.parent < 0, np.empty_like(trees.parent)
        _meet(start, trees.parent, trees.depth, most, known, way, result)
        return result
    for members, nodes, common in _common(start, trees, dtype):
        levels = (trees.depth[nodes] + 1).astype(dtype)
        steps = np.minimum(levels[:, :, None] - common, dtype.type(most))
        steps *= dtype.type(most + 1)
        steps += np.minimum(levels[:, None] - common, dtype.type(most))
        scatter(result, pairs[members], steps.reshape(len(nodes), -1))
    return result


@compiled
def _meet(start: Ids, parent: Ids, depth: Ids, most: int, known: NDArray[np.bool_], way: Ids, result: Array) -> None:
    """Each node beside those below it first; beside another it goes up one step more than its parent does.

    The rows of some nodes are ``known``, at first those of roots; ``way`` is room for a number of each node.
    """
    first, wide = 0, most + 1
    for g in range(len(start) - 1):
        a, n = start[g], start[g + 1] - start[g]
        for s in range(n):
            at = a + s
            while at >= 0:
                steps = depth[a + s] - depth[at]
                result[first + (at - a) * n + s] = steps if steps < most else most
                at = parent[at]
        for t in range(a, a + n):
            steps, at = 0, t
            while not known[at]:
                way[steps], known[at] = at, True
                steps, at = steps + 1, parent[at]
            while steps > 0:
                steps -= 1
                row, other = first + (way[steps] - a) * n, first + (parent[way[steps]] - a) * n
                mine, above = result[row : row + n], result[other : other + n]
                for s in range(n):
                    further = above[s] + wide if above[s] < most * wide else above[s]
                    mine[s] = mine[s] if mine[s] <= most else further
        first += n * n


def _groups(start: Ids, which: NDArray[np.bool_]) -> Iterator[tuple[Ids, Ids]]:
    """Some trees of one size, and their nodes (b, n)."""
    marked, sizes = np.flatnonzero(which), np.diff(start)
    for same in groups(sizes[marked], _CELLS):
        members = marked[same]
        yield members, start[members][:, None] + np.arange(sizes[members[0]])


def _common(start: Ids, trees: Rooted, dtype: np.dtype[Any]) -> Iterator[tuple[Ids, Ids, Array]]:
    """Which trees, their nodes (b, n), and (b, n, n) the number of common ancestors, a node being one of its own.

    The ancestors of a node of a tree of at most 64 nodes are the bits of a word.
    """
    small = np.diff(start) <= _WORD
    words = _words(start, trees) if small.any() else trees.depth
    for members, nodes in _groups(start, small):
        mine = words[nodes]
        yield members, nodes, np.bitwise_count(mine[:, :, None] & mine[:, None]).astype(dtype, copy=False)
    for tree in np.flatnonzero(~small):
        nodes = np.arange(start[tree], start[tree + 1])
        yield np.array([tree]), nodes[None], _rows(trees, nodes, dtype)[None]


def _words(start: Ids, trees: Rooted) -> NDArray[np.uint64]:
    """(T,) the ancestors of each node, itself among them: bits of a word, in rounds that double the step."""
    place = np.arange(len(trees.parent)) - np.repeat(start[:-1], np.diff(start))
    words = np.append(np.uint64(1) << (place & 63).astype(np.uint64), np.uint64(0))  # and above a root
    jump = np.append(np.where(trees.parent < 0, len(place), trees.parent), len(place))
    for _ in range(int(trees.depth.max(initial=0)).bit_length()):
        words |= words[jump]
        jump = jump[jump]
    return words[:-1]


def _rows(trees: Rooted, nodes: Ids, dtype: np.dtype[Any]) -> Array:
    """(n, n) of one tree of any size: a node has what its parent has, and one more with those below it."""
    parent, depth = trees.parent[nodes] - nodes[0], trees.depth[nodes]
    levels = np.split(np.argsort(depth, kind="stable"), np.cumsum(np.bincount(depth))[:-1])
    above = np.eye(len(nodes), dtype=np.bool_)
    for level in levels[1:]:
        above[level] |= above[parent[level]]
    common = above.T.astype(dtype)
    for level in levels[1:]:
        common[level] += common[parent[level]]
    return common


# --- positions of Wang et al. ---


def sides(start: Ids, trees: Rooted, order: Ids) -> Array:
    """(P,) up - down if one of them is 0, else the sum of both depths with the sign of order(t) - order(s).

    Args:
        start: (g + 1,) the first node of each tree.
        trees: parents and depths.
        order: (T,) ranks of the nodes of each tree.
    """
    sizes = np.diff(start)
    pairs, dtype = starts_of(np.square(sizes)), np.min_scalar_type(-2 * int(trees.depth.max(initial=0)) - 2)
    result = np.empty(pairs[-1], dtype=dtype)
    if _apart.pays(OF_A_LIST + len(result)):
        line, room = np.empty(sizes.max(initial=0), dtype=np.int64), np.empty((2, sizes.max(initial=0)), dtype=dtype)
        _apart(start, trees.parent, trees.depth, order, line, *room, result)
        return result
    for members, nodes in _groups(start, np.ones(len(sizes), dtype=np.bool_)):
        depth, rank = trees.depth[nodes].astype(dtype), order[nodes]
        apart = (rank[:, :, None] > rank[:, None]).astype(dtype)
        apart += apart
        apart -= dtype.type(1)
        apart *= depth[:, :, None] + depth[:, None]
        scatter(result, pairs[members], apart.reshape(len(nodes), -1))
    local = np.arange(len(order)) - np.repeat(start[:-1], sizes)
    row = np.repeat(pairs[:-1], sizes) + local * np.repeat(sizes, sizes)
    result[row + local] = 0
    for node, above, generations in ancestors(trees.parent):
        result[row[node] + local[above]] = generations
        result[row[above] + local[node]] = -generations
    return result


@compiled
def _apart(
    start: Ids, parent: Ids, depth: Ids, order: Ids, line: Ids, level: Array, turned: Array, result: Array
) -> None:
    """Rows in reading order: what was read has a positive sum, for which no bit is turned, what is to come a negative.

    -x is the number whose bits are those of x turned, and 1 more. Small integers are added and turned many at once.
    ``line``, ``level`` and ``turned`` are room for a number of each node of the largest tree.
    """
    first = 0
    for g in range(len(start) - 1):
        a, n = start[g], start[g + 1] - start[g]
        for s in range(n):
            line[order[a + s]], level[s], turned[s] = s, depth[a + s], -1
        for place in range(n):
            t = line[place]
            mine, own = result[first + t * n : first + (t + 1) * n], level[t]
            for s in range(n):
                mine[s] = ((own + level[s]) ^ turned[s]) - turned[s]
            turned[t] = 0
        for s in range(n):
            at, steps, result[first + s * n + s] = parent[a + s], 1, 0
            while at >= 0:
                result[first + s * n + at - a], result[first + (at - a) * n + s] = steps, -steps
                at, steps = parent[at], steps + 1
        first += n * n
