"""Shortest-path distances between units: signed along the edges (Graformer), or without direction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from structpe.encodings._flat import interleave, ranges, starts_of
from structpe.encodings._graphs import Graphs
from structpe.encodings._integers import clipped, column_of_integers
from structpe.encodings._shortest import shortest, signed
from structpe.encodings.base import Column, Encoded, Encoding, check_limit, check_matrices
from structpe.structure import Structure

__all__ = ["Distance", "UndirectedDistance"]


@dataclass(frozen=True)
class Distance(Encoding, name="distance"):
    """Signed shortest-path distances, along the edges (Graformer).

    r: signed length of the shortest path between the nodes of query t and key s (survey, eq. 31; Schmitt 2021).

    With d the length of the shortest path along the edges, infinite without a path::

        r_ts = UNREACHABLE    if neither d(t, s) nor d(s, t) is finite
               WITHIN + k     if t and s belong to one node, s being its k-th unit after t, k != 0
               +d(t, s)       if d(t, s) <= d(s, t)
               -d(s, t)       otherwise

    On a path graph this is the sequential offset s - t. Undirected structures have no negative distances. Parallel
    edges count as one, and self-loops do not count.

    Args:
        limit: D_max, the largest distance; longer ones are clipped to it. None for no limit.

    Raises:
        EncodingError: more than 20,000 nodes or units, unless the structure is a plain sequence.
    """

    arity = 2
    causal = True
    codes = ("unreachable", "within")

    limit: int | None = None

    def __post_init__(self) -> None:
        check_limit(self, self.limit)

    def quadratic(self, structure: Structure) -> bool:
        return not is_path(structure)

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        return _column(self, structures, along=True)


@dataclass(frozen=True)
class UndirectedDistance(Encoding, name="undirected-distance"):
    """Shortest-path distances that ignore directions.

    d: length of the shortest path between the nodes of two units, ignoring directions.

    Units of one node have ``WITHIN + k`` and pairs without a path ``UNREACHABLE``, as in :class:`Distance`.

    Args:
        limit: the largest distance; longer ones are clipped to it. None for no limit.

    Raises:
        EncodingError: more than 20,000 nodes or units, unless the structure is a plain sequence.
    """

    arity = 2
    causal = True
    codes = ("unreachable", "within")

    limit: int | None = None

    def __post_init__(self) -> None:
        check_limit(self, self.limit)

    def quadratic(self, structure: Structure) -> bool:
        return not is_path(structure)

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        return _column(self, structures, along=False)


def is_path(structure: Structure) -> bool:
    """Whether the nodes are a path in their order, and each is one unit: a plain sequence."""
    nodes = np.arange(structure.size)
    edges = np.column_stack([nodes[:-1], nodes[1:]])
    return np.array_equal(structure.edges, edges) and np.array_equal(structure.unit_owner, nodes)


def _column(encoding: Distance | UndirectedDistance, structures: Sequence[Structure], along: bool) -> Column:
    graphs = Graphs.of(structures)
    lines = graphs.lines & (graphs.sizes > 1)  # of one node, both forms of an index are the same
    others = graphs.only(~lines)
    check_matrices(encoding, others.most)
    lengths = clipped(signed(others) if along else shortest(others, directed=False), encoding.limit)
    if not lines.any():
        return column_of_integers(others, lengths)
    # Those of plain sequences depend on the offset only.
    widths = 2 * graphs.sizes[lines] - 1
    offsets = clipped(ranges(1 - graphs.sizes[lines], widths), encoding.limit)
    offsets = np.where(np.repeat(graphs.directed[lines] & along, widths), offsets, np.abs(offsets))
    column = column_of_integers(others, lengths, also=offsets)
    assert column.index is not None
    starts = starts_of(np.where(lines, 2 * graphs.sizes - 1, np.square(graphs.units)))
    index = np.empty(int(starts[-1]), dtype=column.index.dtype)
    interleave(index, starts, lines, column.index)
    interleave(index, starts, ~lines, offsets - column.values[0])
    return replace(column, sizes=graphs.units, index=index, starts=starts)
