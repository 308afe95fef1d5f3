"""Sequence order: the place of each unit, from the start, the end or the middle, and the signed offset of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from structpe.encodings._flat import blocks, ranges, starts_of
from structpe.encodings._graphs import Graphs
from structpe.encodings._links import listed
from structpe.encodings._nearby import ranks_of_all
from structpe.encodings.base import Column, Encoded, Encoding, check_all_pairs
from structpe.errors import EncodingError
from structpe.structure import Ids, Structure

__all__ = ["Centred", "Offset", "Order", "Remaining", "Window"]

_CELLS = 1 << 20  # offsets that are computed at a time
_MOST_PAIRS = 1 << 27  # listed pairs, each of which takes 64 bytes during the computation


@dataclass(frozen=True)
class Order(Encoding, name="order"):
    """Places in reading order, counted from the start.

    t: the place of a unit in reading order, counted from 0 (survey, section 3.1, "absolute").

    Nodes are in the order of the structure, units of a node in their order within the node.

    Raises:
        EncodingError: the structure has no order.
    """

    arity = 1
    causal = True

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        graphs, places = _read(self, structures)
        return Column.of_units(graphs.units, places)


@dataclass(frozen=True)
class Remaining(Encoding, name="remaining"):
    """Places in reading order, counted from the end.

    u - 1 - t: number of units after the unit at place t in reading order, of u units; 0 for the last one.

    Raises:
        EncodingError: the structure has no order.
    """

    arity = 1

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        graphs, places = _read(self, structures)
        return Column.of_units(graphs.units, np.repeat(graphs.units - 1, graphs.units) - places)


@dataclass(frozen=True)
class Centred(Encoding, name="centred"):
    """Places in reading order, counted from the middle.

    t - (u - 1)/2, float32: signed distance of the unit at place t in reading order from the middle of u units.

    Raises:
        EncodingError: the structure has no order.
    """

    arity = 1
    real = True

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        graphs, places = _read(self, structures)
        middle = np.repeat((graphs.units - 1) / 2, graphs.units)
        return Column.of_units(graphs.units, (places - middle).astype(np.float32))


@dataclass(frozen=True)
class Offset(Encoding, name="offset"):
    """Signed offsets of pairs in reading order.

    s - t: how many places the key s is after the query t (survey, section 3.1, "relative").

    Raises:
        EncodingError: the structure has no order.
    """

    arity = 2
    causal = True

    def quadratic(self, structure: Structure) -> bool:
        graphs, places = _read(self, [structure])
        return not _in_order(graphs, places)[0]

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        graphs, places = _read(self, structures)
        alike = _in_order(graphs, places)  # the offset of two units is that of their indices
        check_all_pairs(self, [each for each, toeplitz in zip(structures, alike, strict=True) if not toeplitz])
        most, units = int(graphs.units.max(initial=1)) - 1, graphs.units
        starts = starts_of(np.where(alike, 2 * units - 1, np.square(units)))
        index = np.empty(int(starts[-1]), dtype=np.min_scalar_type(2 * most))
        lengths = np.where(alike, 2 * units - 1, 0)
        index[ranges(starts[:-1], lengths)] = ranges(most + 1 - units, lengths)
        rows = np.flatnonzero(~np.repeat(alike, units))  # the queries of the others
        widths, first = units[graphs.unit_graph[rows]], graphs.unit_start[graphs.unit_graph[rows]]
        begin = starts[graphs.unit_graph[rows]] + (rows - first) * widths
        for some in blocks(widths, _CELLS):
            offsets = places[ranges(first[some], widths[some])] - np.repeat(places[rows[some]], widths[some])
            index[ranges(begin[some], widths[some])] = offsets + most
        return Column(units, np.arange(-most, most + 1), index, starts)


@dataclass(frozen=True)
class Window(Encoding, name="window"):
    """Signed offsets of the pairs within a window.

    s - t, as in :class:`Offset`, but only for the pairs with |s - t| <= reach; linear in the number of units.

    Args:
        reach: largest offset, to either side.

    Raises:
        EncodingError: the structure has no order, or the reach is below 1, or there are more than 2^27 pairs.
    """

    arity = 2
    causal = True
    sparse = True

    reach: int = 256

    def __post_init__(self) -> None:
        if self.reach < 1:
            raise EncodingError(f"encoding 'window': reach is {self.reach}; give 1 or more")

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        graphs, places = _read(self, structures)
        reach = np.minimum(self.reach, graphs.units - 1)
        self._check_pairs(structures, graphs.units * (2 * reach + 1), reach)
        query, first = np.arange(len(places)), np.repeat(graphs.unit_start[:-1], graphs.units)
        in_order, most = np.empty_like(places), np.repeat(reach, graphs.units)
        in_order[first + places] = query
        low = np.maximum(query - most, first)
        lengths = np.minimum(query + most, first + np.repeat(graphs.units, graphs.units) - 1) - low + 1
        key, query = ranges(low, lengths), np.repeat(query, lengths)
        far = int(reach.max(initial=0))
        pairs = in_order[np.column_stack([query, key])]
        return listed(graphs, pairs, np.arange(-far, far + 1), key - query + far)

    def _check_pairs(self, structures: Sequence[Structure], pairs: Ids, reach: Ids) -> None:
        for which in np.flatnonzero(pairs > _MOST_PAIRS)[:1]:
            n = structures[which].unit_count
            raise self.error(
                structures[which],
                f"{n} units with {reach[which]} to either side are {pairs[which]} pairs, which take "
                f"{pairs[which] / 2**24:.0f} GiB; {_MOST_PAIRS} pairs at most. Give a reach of "
                f"{max((_MOST_PAIRS // n - 1) // 2, 1)}, or encode parts of the text",
            )


def _in_order(graphs: Graphs, places: Ids) -> NDArray[np.bool_]:
    """(g,) whether units are in reading order."""
    kept = places == np.arange(len(places)) - np.repeat(graphs.unit_start[:-1], graphs.units)
    alike: NDArray[np.bool_] = np.bincount(graphs.unit_graph[~kept], minlength=len(graphs.units)) == 0
    return alike


def _read(encoding: Encoding, structures: Sequence[Structure]) -> tuple[Graphs, Ids]:
    """(U,) the place of each unit."""
    for structure in structures:
        if structure.order is None:
            raise encoding.error(
                structure,
                "the structure has no reading order; give Structure(order=...), or choose an "
                "encoding of the graph itself, such as 'distance'",
            )
    graphs, rank = Graphs.of(structures), ranks_of_all(structures)
    return graphs, rank if graphs.owner is None else graphs.places(rank)
