"""Concatenated graphs, so that one numpy call processes all of them.

Nodes and units are numbered over all structures. Pairs of nodes are flat: the matrix of each structure row by row, one
structure after the other. Shapes: g structures, T nodes, U units, E edges, P pairs of nodes, Q pairs of units.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.structure import Ids, Structure

__all__ = ["Graphs", "blocks", "ranges", "starts_of"]

Array = NDArray[Any]

_CELLS = 1 << 20  # of a block of rows, which bounds the memory that the index of its pairs takes


@dataclass(frozen=True, eq=False)
class Graphs:
    """Concatenated structures.

    Attributes:
        sizes: (g,) number of nodes of each structure.
        start: (g + 1,) the first node of each, and T.
        edges: (E, 2) source and target of each edge.
        edge_start: (g + 1,) the first edge of each structure, and E.
        directed: (g,) whether edges have a direction.
        owner: (U,) the node that owns each unit; None if each node is one unit in all structures.
        units: (g,) number of units of each structure.
        unit_start: (g + 1,) the first unit of each, and U.
    """

    sizes: Ids
    start: Ids
    edges: Ids
    edge_start: Ids
    directed: NDArray[np.bool_]
    owner: Ids | None
    units: Ids
    unit_start: Ids

    @classmethod
    def of(cls, structures: Sequence[Structure]) -> Graphs:
        """Concatenate structures."""
        sizes = np.array([len(each.nodes) for each in structures], dtype=np.int64)
        start, listed = starts_of(sizes), [each.edges for each in structures]
        counts = np.array([len(each) for each in listed], dtype=np.int64)
        edges = np.concatenate([*listed, np.zeros((0, 2), dtype=np.int64)])
        edges += np.repeat(start[:-1], counts)[:, None]
        directed = np.array([each.directed for each in structures], dtype=np.bool_)
        if all(each.owner is None for each in structures):
            return cls(sizes, start, edges, starts_of(counts), directed, None, sizes, start)
        owners = [each.unit_owner for each in structures]
        units = np.array([len(each) for each in owners], dtype=np.int64)
        owner = np.concatenate(owners) + np.repeat(start[:-1], units)
        return cls(sizes, start, edges, starts_of(counts), directed, owner, units, starts_of(units))

    @cached_property
    def pair_start(self) -> Ids:
        """(g + 1,) the first pair of nodes of each structure, and P."""
        return starts_of(np.square(self.sizes))

    @cached_property
    def graph(self) -> Ids:
        """(T,) the structure of each node."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @cached_property
    def unit_graph(self) -> Ids:
        """(U,) the structure of each unit."""
        return np.repeat(np.arange(len(self.units)), self.units)

    def pair(self, query: Ids, key: Ids) -> Ids:
        """The pairs of nodes (query, key) of one structure, among the P pairs."""
        graph = self.graph[query]
        first = self.start[graph]
        place: Ids = self.pair_start[graph] + (query - first) * self.sizes[graph] + key - first
        return place

    def places(self, rank: Array) -> Ids:
        """(U,) the place of each unit among those of its structure, read by the rank (T,) of nodes.

        Units of one node are in their order. The ranks of a structure are different numbers.
        """
        of_units = self.of_units(rank)
        order = np.lexsort((of_units, self.unit_graph))
        places = np.empty(len(order), dtype=np.int64)
        places[order] = np.arange(len(order)) - np.repeat(self.unit_start[:-1], self.units)
        return places

    def of_units(self, nodes: Array) -> Array:
        """From (T, ...) values of nodes to (U, ...) values of units: each unit has the value of its node."""
        return nodes if self.owner is None else nodes[self.owner]

    def pairs_of_units(self, pairs: Array) -> Array:
        """From (P, ...) values of pairs of nodes to (Q, ...) values of pairs of units."""
        if self.owner is None:
            return pairs
        result = np.empty((int(np.square(self.units).sum()), *pairs.shape[1:]), dtype=pairs.dtype)
        graph = self.unit_graph
        local = self.owner - self.start[graph]
        row = self.pair_start[graph] + local * self.sizes[graph]  # the first pair of the node of each query
        first, widths = self.unit_start[graph], self.units[graph]
        done = 0
        for block in blocks(widths, _CELLS):
            which = np.repeat(row[block], widths[block])
            which += local[ranges(first[block], widths[block])]
            result[done : done + len(which)] = pairs[which]
            done += len(which)
        return result

    def inside(self) -> tuple[Ids, Ids]:
        """The pairs of different units of one node: their places among the Q pairs of units, and s - t of (t, s)."""
        if self.owner is None:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        count = np.bincount(self.owner, minlength=int(self.start[-1]))
        first = np.cumsum(count) - count
        query = np.repeat(np.arange(len(self.owner)), count[self.owner])
        key = ranges(first[self.owner], count[self.owner])
        query, key = query[query != key], key[query != key]
        graph = self.graph[self.owner[query]]
        place = starts_of(np.square(self.units))[graph] + (query - self.unit_start[graph]) * self.units[graph]
        return place + key - self.unit_start[graph], key - query


def starts_of(lengths: Any) -> Ids:
    """(parts + 1,) where each of consecutive parts of these lengths begins, and the end."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def ranges(first: Ids, lengths: Ids) -> Ids:
    """The numbers first[i] .. first[i] + lengths[i] - 1 of each i, one range after the other."""
    ends = np.cumsum(lengths)
    result: Ids = np.repeat(first - ends + lengths, lengths)
    result += np.arange(len(result))
    return result


def blocks(widths: Ids, cells: int) -> Iterator[slice]:
    """Consecutive rows of these widths that together have so many cells; one row at the least."""
    ends, first = np.cumsum(widths), 0
    while first < len(widths):
        before = int(ends[first] - widths[first])
        last = max(first + 1, int(np.searchsorted(ends, before + cells, side="right")))
        yield slice(first, last)
        first = last
