"""The connected parts of many structures, grouped by size, and columns of the nodes and pairs that edges join.

Shapes: T nodes, U units, e pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from structpe.encodings.columns import Column, narrow, ranges, starts_of
from structpe.encodings.graphs import Graphs
from structpe.structure import Ids

__all__ = [
    "AHEAD",
    "BACK",
    "adjacencies",
    "groups",
    "links",
    "listed",
    "lists_of_units",
    "pairs_inside",
    "parts",
    "squares",
    "steps",
]


_DENSE_CELLS = 1 << 22  # largest number of entries of the matrices of one group, which bounds the memory


def parts(graphs: Graphs, connected: bool) -> Iterator[tuple[Ids, Ids]]:
    """Groups of b parts of c nodes each: connected ones, or whole structures.

    Yields:
        (b, c) nodes, numbered over all structures and ascending; (e, 3) edges: index of the part, index of the source
        and of the target among its nodes.
    """
    label = _connected(graphs) if connected else graphs.graph
    sizes = np.bincount(label)
    nodes, first = np.argsort(label, kind="stable"), starts_of(sizes)
    place = np.empty_like(nodes)
    place[nodes] = np.arange(len(nodes)) - np.repeat(first[:-1], sizes)
    of_edge = label[graphs.edges[:, 0]]
    edges, counts = place[graphs.edges[np.argsort(of_edge, kind="stable")]], np.bincount(of_edge, minlength=len(sizes))
    first_edge = starts_of(counts)
    for group in groups(sizes):
        members = nodes[first[group][:, None] + np.arange(sizes[group[0]])]
        inside = edges[ranges(first_edge[group], counts[group])]
        yield members, np.column_stack([np.repeat(np.arange(len(group)), counts[group]), inside])


def adjacencies(edges: Ids, count: int, size: int, directed: bool = False) -> NDArray[np.bool_]:
    """(count, size, size) whether an edge leads from one node of a part to another; from edges as above.

    Args:
        edges: of the parts.
        count: how many parts.
        size: of each.
        directed: whether an edge joins two nodes in its own direction only.
    """
    result = np.zeros((count, size, size), dtype=np.bool_)
    part, source, target = edges.T
    result[part, source, target] = True
    if not directed:
        result[part, target, source] = True
    return result


def squares(graphs: Graphs, directed: bool = False) -> Iterator[tuple[Ids, NDArray[np.bool_]]]:
    """(b,) some structures of the same size, and (b, n, n) whether an edge leads from one node to another.

    Without ``directed``, and in structures whose edges have no direction, edges lead in both.
    """
    for nodes, edges in parts(graphs, connected=False):
        members = graphs.graph[nodes[:, 0]]
        count, size = nodes.shape
        linked = adjacencies(edges, count, size, directed)
        if directed:
            linked |= linked.swapaxes(1, 2) & ~graphs.directed[members][:, None, None]
        yield members, linked


def _connected(graphs: Graphs) -> Ids:
    """(T,) the number of each node's connected part."""
    total, (source, target) = int(graphs.start[-1]), graphs.edges.T
    graph = csr_array((np.ones(len(source)), (source, target)), shape=(total, total))
    label: Ids = connected_components(graph, directed=False)[1].astype(np.int64)
    return label


def groups(sizes: Ids) -> Iterator[Ids]:
    """Indices of equal sizes, in groups whose square matrices fit into memory."""
    for size in np.unique(sizes):
        same = np.flatnonzero(sizes == size)
        most = max(1, _DENSE_CELLS // int(size) ** 2)
        for first in range(0, len(same), most):
            yield same[first : first + most]


Array = NDArray[Any]

AHEAD, BACK = 1, 2
"""Bits: an edge leads from the first node to the second, or from the second to the first."""


def steps(graphs: Graphs, onward: bool = True, back: bool = False) -> csr_array:
    """(T, T) with 1 where an edge leads from a node to another, or to itself; undirected edges lead both ways.

    Args:
        graphs: the structures.
        onward: along edges.
        back: against edges.
    """
    source, target = graphs.edges.T
    both = ~np.repeat(graphs.directed, np.diff(graphs.edge_start))
    mine, other = both | onward, both | back
    ends = np.concatenate([source[mine], target[other]]), np.concatenate([target[mine], source[other]])
    nodes = int(graphs.start[-1])
    found = csr_array((np.ones(len(ends[0]), dtype=np.uint8), ends), shape=(nodes, nodes))
    found.data[:] = 1  # it was the number of parallel edges
    return found


def links(graphs: Graphs) -> tuple[Ids, Ids, Array]:
    """(e,) two different nodes that an edge joins, in ascending order, and which of :data:`AHEAD` and :data:`BACK`."""
    ahead = steps(graphs)
    both = csr_array(ahead * np.uint8(AHEAD) + ahead.T * np.uint8(BACK))
    both.sort_indices()
    first = np.repeat(np.arange(both.shape[0]), np.diff(both.indptr))
    apart = np.flatnonzero(first != both.indices)
    return first[apart], both.indices[apart].astype(np.int64), both.data[apart]


def lists_of_units(graphs: Graphs, first: Ids, second: Ids) -> tuple[Ids, Ids]:
    """From (e,) pairs of nodes to all (e', 2) pairs of their units, and (e',) the index of the pair of nodes."""
    numbers = np.arange(len(first))
    if graphs.owner is None:
        return np.column_stack([first, second]), numbers
    count = np.bincount(graphs.owner, minlength=int(graphs.start[-1]))
    begin = np.cumsum(count) - count
    which = np.repeat(numbers, count[first] * count[second])
    inside = ranges(np.zeros_like(first), count[first] * count[second])
    query, key = np.divmod(inside, count[second][which])
    return np.column_stack([begin[first[which]] + query, begin[second[which]] + key]), which


def pairs_inside(graphs: Graphs) -> Ids:
    """(e, 2) the pairs of different units of the same node."""
    if graphs.owner is None:
        return np.zeros((0, 2), dtype=np.int64)
    nodes = np.arange(int(graphs.start[-1]))
    pairs, _ = lists_of_units(graphs, nodes, nodes)
    different: Ids = pairs[pairs[:, 0] != pairs[:, 1]]
    return different


def listed(graphs: Graphs, pairs: Ids, values: Array, index: Array) -> Column:
    """A column of (e, 2) distinct pairs of units, in the given order within each structure.

    Args:
        graphs: the structures.
        pairs: of units, numbered over all structures.
        values: distinct values.
        index: (e,) which of them each pair has.
    """
    graph = graphs.unit_graph[pairs[:, 0]]
    order = np.argsort(narrow(graph), kind="stable")
    mine = pairs[order] - graphs.unit_start[graph[order], None]
    starts = starts_of(np.bincount(graph, minlength=len(graphs.units)))
    return Column(graphs.units, values, narrow(index)[order], starts, listed=mine)
