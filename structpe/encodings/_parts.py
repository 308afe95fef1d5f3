"""The connected parts of many structures, grouped by size, so that dense algebra can be batched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from structpe.encodings._trees import starts
from structpe.structure import Ids, Structure

__all__ = ["adjacencies", "parts", "same_size"]

_CELLS = 1 << 22  # largest number of entries of the matrices of one group, which bounds the memory


def parts(structures: Sequence[Structure], connected: bool) -> Iterator[tuple[Ids, Ids]]:
    """Groups of b parts of c nodes each: connected ones, or whole structures.

    Yields:
        (b, c) nodes, numbered over all structures and ascending; (e, 3) edges: index of the part, index of the source
        and of the target among its nodes.
    """
    edges, label = _labelled(structures, connected)
    nodes, sizes = np.argsort(label, kind="stable"), np.bincount(label)
    first = np.cumsum([0, *sizes])[:-1]
    place = np.empty_like(nodes)
    place[nodes] = np.arange(len(nodes)) - np.repeat(first, sizes)
    for group in _groups(sizes):
        row = np.full(len(sizes), -1)
        row[group] = np.arange(len(group))
        part = row[label[edges[:, 0]]]
        inside = part >= 0
        members = nodes[first[group][:, None] + np.arange(sizes[group[0]])]
        yield members, np.column_stack([part[inside], place[edges[inside]]])


def adjacencies(edges: Ids, count: int, size: int) -> NDArray[np.bool_]:
    """(count, size, size) whether an edge in either direction joins two nodes of a part; from edges as above."""
    result = np.zeros((count, size, size), dtype=np.bool_)
    part, source, target = edges.T
    result[part, source, target] = result[part, target, source] = True
    return result


def same_size(structures: Sequence[Structure]) -> Iterator[list[int]]:
    """Indices of structures of the same size, in groups whose matrices fit into memory."""
    for group in _groups(np.array([s.size for s in structures], dtype=np.int64)):
        yield group.tolist()


def _labelled(structures: Sequence[Structure], connected: bool) -> tuple[Ids, Ids]:
    """All edges, with nodes numbered over all structures, and the number of each node's part."""
    start = starts(structures)
    none = np.zeros((0, 2), dtype=np.int64)
    edges = np.concatenate([none, *(s.edges + a for s, a in zip(structures, start, strict=False))])
    if not connected:
        return edges, np.repeat(np.arange(len(structures)), np.diff(start))
    graph = csr_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(start[-1], start[-1]))
    return edges, connected_components(graph, directed=False)[1].astype(np.int64)


def _groups(sizes: Ids) -> Iterator[Ids]:
    for size in np.unique(sizes):
        same = np.flatnonzero(sizes == size)
        most = max(1, _CELLS // int(size) ** 2)
        for first in range(0, len(same), most):
            yield same[first : first + most]
