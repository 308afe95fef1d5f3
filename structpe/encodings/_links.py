"""Which nodes edges join, and columns of listed pairs, of many structures at once.

Shapes: T nodes, U units, e pairs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from structpe.encodings._encoded import Column, narrow
from structpe.encodings._flat import ranges, starts_of
from structpe.encodings._graphs import Graphs
from structpe.structure import Ids

__all__ = ["AHEAD", "BACK", "links", "listed", "lists_of_units", "pairs_inside", "steps"]

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
