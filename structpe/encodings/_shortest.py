"""All-pairs shortest path lengths of many small graphs at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from structpe.structure import Ids, Structure

__all__ = ["UNREACHED", "all_pairs"]

UNREACHED = np.iinfo(np.int64).max // 4
"""The length of a missing path: larger than any other, and small enough to add two of them."""

_SMALL = 60  # below this number of nodes, Floyd-Warshall over a group of graphs is faster than breadth-first searches
_INF = 127  # 127 + 127 fits into eight bits, so sums need no check; exact for graphs of up to 127 nodes


def all_pairs(structures: Sequence[Structure], directed: bool) -> list[Ids]:
    """(n, n) shortest path lengths of each structure, :data:`UNREACHED` where there is no path.

    Args:
        structures: the graphs.
        directed: whether to follow the direction of edges, in directed structures.
    """
    result: list[Ids] = [np.empty(0, dtype=np.int64)] * len(structures)
    small = sorted((s.size, i) for i, s in enumerate(structures) if s.size <= _SMALL)
    for _, group in groupby(small, key=lambda item: -(-item[0] // 4)):
        members = [i for _, i in group]
        lengths = _floyd_warshall([structures[i] for i in members], directed)
        for place, i in enumerate(members):
            n = structures[i].size
            mine = lengths[:n, :n, place].astype(np.int64)
            result[i] = np.where(mine == _INF, UNREACHED, mine)
    for i, structure in enumerate(structures):
        if structure.size > _SMALL:
            result[i] = _search(structure, directed)
    return result


def _floyd_warshall(structures: Sequence[Structure], directed: bool) -> NDArray[np.uint8]:
    """Lengths of shape (most, most, graphs); graphs are last, so that each step is two long vector operations."""
    most = max(s.size for s in structures)
    lengths = np.full((most, most, len(structures)), _INF, dtype=np.uint8)
    for place, structure in enumerate(structures):
        source, target = structure.edges[:, 0], structure.edges[:, 1]
        lengths[source, target, place] = 1
        if not (directed and structure.directed):
            lengths[target, source, place] = 1
    lengths[np.arange(most), np.arange(most)] = 0
    for k in range(most):
        np.minimum(lengths, lengths[:, k, None] + lengths[None, k], out=lengths)
        np.minimum(lengths, _INF, out=lengths)
    return lengths


def _search(structure: Structure, directed: bool) -> Ids:
    graph = csr_array((np.ones(len(structure.edges)), structure.edges.T), shape=(structure.size, structure.size))
    lengths = shortest_path(graph, directed=directed and structure.directed, unweighted=True)
    reached = np.isfinite(lengths)
    # Not np.where on the floats: UNREACHED has more digits than a float.
    return np.where(reached, np.where(reached, lengths, 0.0).astype(np.int64), UNREACHED)
