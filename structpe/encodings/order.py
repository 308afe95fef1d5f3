"""Sequence order: places, offsets, windows, segments, and how many units there are."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from structpe.encodings.base import UNREACHABLE, Column, Encoded, Encoding, check_all_pairs, check_key, flags
from structpe.encodings.columns import blocks, ranges, starts_of
from structpe.encodings.graphs import Graphs, OfNodes, places_by, ranks_of_all
from structpe.errors import EncodingError
from structpe.structure import Ids, Structure

__all__ = [
    "Centred",
    "Offset",
    "Order",
    "Remaining",
    "Reordered",
    "SegmentNumber",
    "SegmentPlace",
    "Size",
    "TripleOffset",
    "UnitCount",
    "Window",
]


_CELLS = 1 << 20  # offsets that are computed at a time
_MOST_PAIRS = 1 << 27  # listed pairs, each of which takes 64 bytes during the computation


class _InOrder(Encoding):
    """Encodings of the place of a unit in reading order.

    Raises:
        EncodingError: the structure has no order.
    """

    arity = 1

    @abstractmethod
    def of_places(self, graphs: Graphs, places: Ids) -> Ids | NDArray[np.float32]:
        """(U,) the values of units at these places, counted from the start of their structures."""

    def many(self, structures: Sequence[Structure]) -> Column:
        graphs, places = _read(self, structures)
        return Column.of_units(graphs.units, self.of_places(graphs, places))


@dataclass(frozen=True)
class Order(_InOrder, name="order"):
    """Places in reading order, counted from the start.

    t: the place of a unit in reading order, counted from 0 (survey, section 3.1, "absolute").

    Nodes are in the order of the structure, units of a node in their order within the node.
    """

    causal = True

    def of_places(self, graphs: Graphs, places: Ids) -> Ids:
        return places


@dataclass(frozen=True)
class Remaining(_InOrder, name="remaining"):
    """Places in reading order, counted from the end.

    u - 1 - t: number of units after the unit at place t in reading order, of u units; 0 for the last one.
    """

    def of_places(self, graphs: Graphs, places: Ids) -> Ids:
        return np.repeat(graphs.units - 1, graphs.units) - places


@dataclass(frozen=True)
class Centred(_InOrder, name="centred"):
    """Places in reading order, counted from the middle.

    t - (u - 1)/2, float32: signed distance of the unit at place t in reading order from the middle of u units.
    """

    real = True

    def of_places(self, graphs: Graphs, places: Ids) -> NDArray[np.float32]:
        return (places - np.repeat((graphs.units - 1) / 2, graphs.units)).astype(np.float32)


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

    def many(self, structures: Sequence[Structure]) -> Column:
        graphs, places = _read(self, structures)
        alike = _in_order(graphs, places)  # the offset of two units is that of their indices
        most, units = int(graphs.units.max(initial=1)) - 1, graphs.units
        values, dtype = np.arange(-most, most + 1), np.min_scalar_type(2 * most)
        starts = starts_of(np.where(alike, 2 * units - 1, np.square(units)))
        if alike.all():
            return Column(units, values, ranges(most + 1 - units, 2 * units - 1).astype(dtype), starts)
        check_all_pairs(self, [each for each, toeplitz in zip(structures, alike, strict=True) if not toeplitz])
        index, lengths = np.empty(int(starts[-1]), dtype=dtype), np.where(alike, 2 * units - 1, 0)
        index[ranges(starts[:-1], lengths)] = ranges(most + 1 - units, lengths)
        rows = np.flatnonzero(~np.repeat(alike, units))  # the queries of the others
        widths, first = units[graphs.unit_graph[rows]], graphs.unit_start[graphs.unit_graph[rows]]
        begin = starts[graphs.unit_graph[rows]] + (rows - first) * widths
        for some in blocks(widths, _CELLS):
            offsets = places[ranges(first[some], widths[some])] - np.repeat(places[rows[some]], widths[some])
            index[ranges(begin[some], widths[some])] = offsets + most
        return Column(units, values, index, starts)


@dataclass(frozen=True)
class Window(Encoding, name="window"):
    """Signed offsets of the pairs within a window.

    s - t, as in :class:`Offset`, but only for the pairs with |s - t| <= max_distance; linear in the number of units.

    Args:
        max_distance: largest offset, to either side.

    Raises:
        EncodingError: the structure has no order, ``max_distance`` is below 1, or there are more than 2^27 pairs.
    """

    arity = 2
    causal = True
    sparse = True

    max_distance: int = 256

    def __post_init__(self) -> None:
        if self.max_distance < 1:
            raise EncodingError(f"encoding 'window': max_distance is {self.max_distance}; give 1 or more")

    def many(self, structures: Sequence[Structure]) -> Column:
        graphs, places = _read(self, structures)
        reach = np.minimum(self.max_distance, graphs.units - 1)
        self._check_pairs(structures, graphs.units * (2 * reach + 1), reach)
        query, first = np.arange(len(places)), np.repeat(graphs.unit_start[:-1], graphs.units)
        in_order, most = np.empty_like(places), np.repeat(reach, graphs.units)
        in_order[first + places] = query
        low = np.maximum(query - most, first)
        lengths = np.minimum(query + most, first + np.repeat(graphs.units, graphs.units) - 1) - low + 1
        key, query = ranges(low, lengths), np.repeat(query, lengths)
        far = int(reach.max(initial=0))
        pairs = in_order[np.column_stack([query, key])]
        return graphs.listed(pairs, np.arange(-far, far + 1), key - query + far)

    def _check_pairs(self, structures: Sequence[Structure], pairs: Ids, reach: Ids) -> None:
        for which in np.flatnonzero(pairs > _MOST_PAIRS)[:1]:
            n = structures[which].unit_count
            raise self.error(
                structures[which],
                f"{n} units with {reach[which]} to either side are {pairs[which]} pairs, which take "
                f"{pairs[which] / 2**24:.0f} GiB; {_MOST_PAIRS} pairs at most. Give a max_distance of "
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


@dataclass(frozen=True)
class Reordered(Encoding, name="reordered"):
    """Another reading order, such as that of a translation or a predicted one.

    t': the place of a unit, from 0, if nodes are read in the order of a feature.

    The feature has a different number for each node, by which nodes are sorted; units of a node are in their order
    within the node. For a structure without the feature, t' is that of :class:`structpe.encodings.Order`.

    Args:
        key: name of the feature.

    Raises:
        EncodingError: two nodes have the same rank, a node has several, or there is neither the feature nor an order.
    """

    arity = 1

    key: str = "reordered"

    def __post_init__(self) -> None:
        check_key(self, self.key)

    def one(self, structure: Structure) -> Encoded:
        given = structure.features.get(self.key, structure.order)
        if given is None:
            raise self.error(
                structure,
                f"the structure has no feature {self.key!r}, and no reading order in its place; give it one with "
                f"Structure(features={{{self.key!r}: ...}}), a rank per node",
            )
        ranks = np.asarray(given)
        if ranks.ndim != 1 or len(np.unique(ranks)) != len(ranks):
            raise self.error(
                structure,
                f"feature {self.key!r} must rank the nodes, each by a different number; it is {ranks.tolist()}",
            )
        return Encoded(places_by(structure, ranks))


@dataclass(frozen=True)
class _Segments(Encoding):
    """Encodings of the segments of a text.

    Args:
        key: name of the feature, 1 for nodes that end a segment and 0 for others.

    Raises:
        EncodingError: the structure has no order, or the feature has several numbers per node.
    """

    arity = 1

    key: str = "separator"

    def __post_init__(self) -> None:
        check_key(self, self.key)

    def segments(self, structure: Structure) -> tuple[Ids, Ids]:
        """(u,) the number of the segment of each unit, and (u,) the place in it."""
        if structure.order is None:
            raise self.error(structure, "the structure has no reading order; give Structure(order=...)")
        places = places_by(structure, structure.order)
        order = np.argsort(places, kind="stable")
        node = structure.unit_owner[order]
        last = np.append(node[1:] != node[:-1], True)  # a marked node of several units ends with the last of them
        ends = flags(self, structure, self.key)[node] & last
        number = np.cumsum(ends) - ends
        place = np.arange(len(order)) - np.searchsorted(number, number)
        return number[places].astype(np.int64), place[places].astype(np.int64)


@dataclass(frozen=True)
class SegmentNumber(_Segments, name="segment-number"):
    """The number of the segment of each unit, such as a sentence.

    How many segments of the text end before the unit, in reading order: 0 in the first segment.

    A segment ends with a node that the feature ``structure.features[key]`` marks, such as a full stop; the mark counts
    to the segment that it ends. A structure without the feature is one segment. A text that is being generated has no
    marks yet, so a decoder cannot use it with a cache.
    """

    def one(self, structure: Structure) -> Encoded:
        return Encoded(self.segments(structure)[0])


@dataclass(frozen=True)
class SegmentPlace(_Segments, name="segment-place"):
    """The place of each unit in its segment, such as a sentence.

    How many units of its segment come before the unit, in reading order: 0 for the first of each segment.

    Segments are those of :class:`SegmentNumber`.
    """

    def one(self, structure: Structure) -> Encoded:
        return Encoded(self.segments(structure)[1])


_FAR = 1 << 17  # an offset beyond every table


@dataclass(frozen=True)
class TripleOffset(Encoding, name="triple-offset"):
    """Offsets inside triples: a graph as many short texts.

    r_ts: how many places unit s is after unit t in the text "head relation tail" of a triple that contains both.

    ::

        r_ts = place of s - place of t    in the text of a triple, or within their common node
               UNREACHABLE                if no triple has both

    The graph is that of :func:`structpe.transforms.levi`, split into units: relations are nodes, each with the units
    of its label, one for each triple, marked by the feature ``is_relation``. An edge between two nodes that are not
    relations is a triple whose relation has no unit. (Plenz and Frank 2024, section 4.) If two triples have the same
    head and tail, the offsets between these are those in the last triple, as in the authors' code. A node that is head
    and tail of one triple keeps the offsets within the node, which the code overwrites by those between its two
    occurrences in the text.

    A virtual node (feature ``virtual``) is an end mark, as ``</s>`` in the code: 131072 places after every unit, which
    is infinite for all tables of T5.
    """

    arity = 2
    codes = ("unreachable",)

    def one(self, structure: Structure) -> Encoded:
        owner = structure.unit_owner
        first, count = np.searchsorted(owner, np.arange(structure.size)), np.bincount(owner, minlength=structure.size)
        offsets = np.full((len(owner), len(owner)), UNREACHABLE)
        for members in self._texts(structure):
            units = np.concatenate([first[node] + np.arange(count[node]) for node in members])
            places = np.arange(len(units))
            offsets[units[:, None], units[None, :]] = places[None, :] - places[:, None]
        for node in range(structure.size):  # a head that is also the tail occurs twice in its text
            places = np.arange(count[node])
            own = slice(first[node], first[node] + count[node])
            offsets[own, own] = places[None, :] - places[:, None]
        virtual = flags(self, structure, "virtual")[owner]
        here, there = virtual[:, None], virtual[None, :]
        return Encoded.of_pairs(np.where(here & ~there, -_FAR, np.where(there & ~here, _FAR, offsets)))

    def _texts(self, structure: Structure) -> list[tuple[int, ...]]:
        """The nodes of each triple, in the order in which edges lead on from their heads."""
        relation = flags(self, structure, "is_relation")
        onward: dict[int, list[int]] = {}
        for source, target in structure.edges.tolist():
            if relation[source]:
                onward.setdefault(source, []).append(target)
        texts: list[tuple[int, ...]] = []
        for source, target in structure.edges.tolist():
            if relation[source]:
                continue
            tails = onward.get(target, [])
            texts += [(source, target, tail) for tail in tails] if relation[target] else [(source, target)]
        return texts


@dataclass(frozen=True)
class Size(Encoding, name="size"):
    """How many units a structure has.

    L: the number of units of the structure, for each of its units.

    Models that depend on the length of a text use this encoding, because rows of a batch are padded. A text that is
    being generated has no length yet, so a decoder cannot use it.
    """

    arity = 1

    def many(self, structures: Sequence[Structure]) -> Column:
        graphs = Graphs.of(structures)
        return Column.of_units(graphs.units, np.repeat(graphs.units, graphs.units))


@dataclass(frozen=True)
class UnitCount(OfNodes, name="unit-count"):
    """How many units the node of a unit has.

    c_u: the number of units of the node of unit u, itself included.

    A sum over units, each divided by c_u, is a sum over nodes: so a function of the nodes of a graph, such as a network
    over its eigenvectors, does not change when a label is split into subwords.
    """

    def of_nodes(self, graphs: Graphs, structures: Sequence[Structure]) -> Ids:
        nodes = int(graphs.start[-1])
        return np.ones(nodes, dtype=np.int64) if graphs.owner is None else np.bincount(graphs.owner, minlength=nodes)
