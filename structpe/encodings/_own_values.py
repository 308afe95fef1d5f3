"""Real numbers of pairs: a row of values for each pair, as hardly two are equal, except for those without a number.

A search for equal numbers would take longer than the numbers themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.encodings._encoded import Column, narrow
from structpe.encodings._flat import starts_of
from structpe.encodings._graphs import Graphs
from structpe.structure import Ids

__all__ = ["OwnValues", "column_of"]

Array = NDArray[Any]


class OwnValues:
    """Gathers the values of all structures, some structures of one size at a time.

    Args:
        graphs: the structures.
        missing: the value of all pairs that have none of their own, such as those that no path joins.
    """

    def __init__(self, graphs: Graphs, missing: Array) -> None:
        self.graphs, self.missing = graphs, missing
        self.index = np.empty(int(graphs.pair_start[-1]), dtype=np.uint32)
        self.parts: list[list[Array]] = [[] for _ in graphs.sizes]

    def add(self, members: Ids, values: Array, there: NDArray[np.bool_]) -> None:
        """Add b structures of n nodes.

        Args:
            members: (b,) which structures.
            values: (b, n n, ...) of their pairs of nodes.
            there: (b, n n) which pairs have a value of their own.
        """
        pairs = there.shape[1]
        number = np.cumsum(there, axis=1, dtype=np.uint32)
        counts = number[:, -1:].copy()
        number -= 1
        np.copyto(number, counts, where=~there)
        kept = values.reshape(-1, *values.shape[2:])
        kept = kept if there.all() else kept.take(np.flatnonzero(there), axis=0)
        first = 0
        for each, graph, count in zip(number, members.tolist(), counts[:, 0].tolist(), strict=True):
            start = self.graphs.pair_start[graph]
            self.index[start : start + pairs] = each
            self.parts[graph] = [kept[first : first + count], self.missing[None][: pairs - count]]
            first += count

    def column(self) -> Column:
        """The column, of pairs of units."""
        counts = [sum(map(len, parts)) for parts in self.parts]
        nothing = np.zeros((0, *self.missing.shape), dtype=self.missing.dtype)
        values = np.concatenate([nothing, *(part for parts in self.parts for part in parts)])
        return column_of(self.graphs, values, self.index, counts)


def column_of(graphs: Graphs, values: Array, index: Array, counts: Any) -> Column:
    """From the values of each structure in turn, the flat index of pairs of nodes among them, and their number (g,)."""
    of_units = narrow(graphs.pairs_of_units(index))
    return Column(graphs.units, values, of_units, starts_of(np.square(graphs.units)), row_starts=starts_of(counts))
