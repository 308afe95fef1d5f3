"""The connected parts of many structures, grouped by size, so that dense algebra can be batched."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from structpe.encodings._flat import ranges, starts_of
from structpe.encodings._graphs import Graphs
from structpe.structure import Ids

__all__ = ["adjacencies", "groups", "parts", "squares"]

_CELLS = 1 << 22  # largest number of entries of the matrices of one group, which bounds the memory


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
        most = max(1, _CELLS // int(size) ** 2)
        for first in range(0, len(same), most):
            yield same[first : first + most]
