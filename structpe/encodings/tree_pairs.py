"""Parents and depths of the nodes of many trees, and where the ways of two nodes to the root meet.

The ancestors of a node of a tree of at most 64 nodes are the bits of a word; two nodes have as many ancestors in common
as their words have common bits. Pairs are flat (P,): the matrix of each tree row by row, one tree after the other.
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

__all__ = ["Rooted", "Ways", "heights", "sides"]


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
        if not _descend.pays(nodes):
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


_WORD = 64
_CELLS = 1 << 16  # pairs that are processed at once: their words stay in the cache


@dataclass(frozen=True, eq=False)
class Ways:
    """From each node up to the lowest common ancestor with each other node, and down to that one.

    Attributes:
        up: (P,) steps up from the first node of a pair, in the narrowest unsigned dtype.
        down: (P,) steps down to the second one.
    """

    up: Array
    down: Array

    @property
    def related(self) -> NDArray[np.bool_]:
        """(P,) whether one of two nodes is an ancestor of the other, or both are one."""
        found: NDArray[np.bool_] = np.minimum(self.up, self.down) == 0
        return found

    @classmethod
    def of(cls, start: Ids, trees: Rooted) -> Ways:
        """From the first node of each tree (g + 1,), and parents and depths; other graphs are not allowed."""
        pairs, dtype = starts_of(np.square(np.diff(start))), np.min_scalar_type(int(trees.depth.max(initial=0)) + 1)
        room = np.empty((2, pairs[-1] + _WORD), dtype=dtype)  # a line more may be written
        up, down = room[:, : pairs[-1]]
        if _small.pays(OF_A_LIST + len(up)):
            _small(start, trees.parent, trees.line, trees.depth, _WORD, *room)
            if (np.diff(start) > _WORD).any():  # else it is not compiled
                _large(start, trees.parent, trees.line, trees.depth, _WORD, *room)
            return cls(up, down)
        wide = np.dtype(f"u{2 * dtype.itemsize}")  # both numbers in one, to write them once
        both, shift = np.empty(pairs[-1], dtype=wide), wide.type(8 * dtype.itemsize)
        for members, nodes, common in _common(start, trees, dtype):
            levels = (trees.depth[nodes] + 1).astype(dtype)
            steps = (levels[:, None] - common).astype(wide)
            steps <<= shift
            steps |= levels[:, :, None] - common
            scatter(both, pairs[members], steps.reshape(len(nodes), -1))
        up[:] = both.astype(dtype)
        np.right_shift(both, shift, out=down, casting="unsafe")
        return cls(up, down)


def sides(start: Ids, trees: Rooted, ways: Ways, order: Ids) -> Array:
    """(P,) up - down if one of them is 0, else the sum of both depths with the sign of order(t) - order(s).

    Args:
        start: (g + 1,) the first node of each tree.
        trees: parents and depths.
        ways: up and down.
        order: (T,) ranks of the nodes of each tree.
    """
    pairs, dtype = starts_of(np.square(np.diff(start))), np.min_scalar_type(-2 * int(trees.depth.max(initial=0)) - 2)
    room = np.empty(pairs[-1] + _WORD, dtype=dtype)  # a line more may be written
    result = room[: pairs[-1]]
    if _apart.pays(len(result)):
        _apart(start, trees.depth, order, room)
    else:
        for members, nodes in _groups(start, np.ones(len(start) - 1, dtype=np.bool_)):
            depth, rank = trees.depth[nodes].astype(dtype), order[nodes]
            apart = (rank[:, :, None] > rank[:, None]).astype(dtype)
            apart += apart
            apart -= dtype.type(1)
            apart *= depth[:, :, None] + depth[:, None]
            scatter(result, pairs[members], apart.reshape(len(nodes), -1))
    related = ways.related.astype(dtype)  # products of numbers are faster than a choice
    result *= dtype.type(1) - related
    related *= ways.up.astype(dtype) - ways.down.astype(dtype)
    result += related
    return result


def _groups(start: Ids, which: NDArray[np.bool_]) -> Iterator[tuple[Ids, Ids]]:
    """Some trees of one size, and their nodes (b, n)."""
    marked, sizes = np.flatnonzero(which), np.diff(start)
    for same in groups(sizes[marked], _CELLS):
        members = marked[same]
        yield members, start[members][:, None] + np.arange(sizes[members[0]])


def _common(start: Ids, trees: Rooted, dtype: np.dtype[Any]) -> Iterator[tuple[Ids, Ids, Array]]:
    """Which trees, their nodes (b, n), and (b, n, n) the number of common ancestors, a node being one of its own."""
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
    parent, depth, line = (each[nodes] for each in (trees.parent, trees.depth, trees.line))
    parent, line = parent - nodes[0], line - nodes[0]
    levels = np.split(line, np.cumsum(np.bincount(depth))[:-1])
    above = np.eye(len(nodes), dtype=np.bool_)
    for level in levels[1:]:
        above[level] |= above[parent[level]]
    common = above.T.astype(dtype)
    for level in levels[1:]:
        common[level] += common[parent[level]]
    return common


@compiled
def _small(start: Ids, parent: Ids, line: Ids, depth: Ids, wide: int, up: Array, down: Array) -> None:
    """As :func:`_rows`, for trees of at most ``wide`` nodes: 64, an argument, as loops become vector operations then.

    Rows of their own (levels, row) do not overlap with others, as vector operations need it.
    """
    below, common = np.empty((64, 64), dtype=np.uint8), np.empty((64, 64), dtype=np.uint8)
    levels, row, pairs = np.empty(64, dtype=np.uint8), np.empty(64, dtype=np.uint8), 0
    for g in range(len(start) - 1):
        a, n = start[g], start[g + 1] - start[g]
        pairs += n * n
        if n > wide:
            continue
        width = (n + 31) // 32 * 32
        below[:n] = 0
        for i in range(n):
            below[i, i], levels[i] = 1, depth[a + i] + 1
        for place in range(n - 1, 0, -1):
            node, above = line[a + place] - a, parent[line[a + place]] - a
            for s in range(width):  # bottom up: what is below a node is below its parent
                row[s] = below[node, s]
            for s in range(width):
                below[above, s] = np.uint8(below[above, s] | row[s])
        common[line[a] - a] = below[line[a] - a]
        for place in range(1, n):  # top down: a node has the ancestors of its parent, and itself
            node, above = line[a + place] - a, parent[line[a + place]] - a
            for s in range(width):
                row[s] = np.uint8(common[above, s] + below[node, s])
            for s in range(width):
                common[node, s] = row[s]
        for t in range(n):
            at, mine = pairs - n * n + t * n, levels[t]
            for s in range(width):  # what is too much is overwritten by the next row
                up[at + s] = np.uint8(mine - common[t, s])
            for s in range(width):
                down[at + s] = np.uint8(levels[s] - common[t, s])


@compiled
def _large(start: Ids, parent: Ids, line: Ids, depth: Ids, least: int, up: Array, down: Array) -> None:
    """Of larger trees: a node meets another one where it meets its parent, or at that one if it is above."""
    marked, meet, pairs = np.full(len(parent), -1), np.zeros(len(parent), dtype=np.int64), 0
    for g in range(len(start) - 1):
        a, b, first = start[g], start[g + 1], pairs
        pairs += (b - a) * (b - a)
        if b - a <= least:
            continue
        for t in range(a, b):
            node, at = t, first + (t - a) * (b - a) - a
            while node >= 0:
                marked[node] = t
                node = parent[node]
            for place in range(a, b):
                s = line[place]
                meet[s] = depth[s] if marked[s] == t else meet[parent[s]]
            for s in range(a, b):
                up[at + s], down[at + s] = depth[t] - meet[s], depth[s] - meet[s]


@compiled
def _apart(start: Ids, depth: Ids, order: Ids, result: Array) -> None:
    """The sums of depths, with signs."""
    most, at = 0, 0
    for g in range(len(start) - 1):
        most = max(most, start[g + 1] - start[g])
    levels, ranks = np.zeros(most + 32, dtype=np.int32), np.zeros(most + 32, dtype=np.int32)
    for g in range(len(start) - 1):
        a, n = start[g], start[g + 1] - start[g]
        for s in range(n):
            levels[s], ranks[s] = depth[a + s], order[a + s]
        for t in range(n):
            mine, place = levels[t], ranks[t]
            for s in range((n + 31) // 32 * 32):  # what is too much is overwritten by the next row
                both = np.int32(mine + levels[s])
                result[at + s] = both if place > ranks[s] else np.int32(-both)
            at += n
