"""Shortest-path lengths of all pairs, edges, and degrees.

Lengths are flat (P,): the matrix of each graph row by row, one graph after the other. The largest number of their dtype
stands for pairs without a path. Shapes: g graphs, T nodes, U units, E edges, P pairs of nodes, n nodes of one graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from structpe.encodings import bfs as bfs_module
from structpe.encodings.base import WITHIN, Column, Encoding, check_all_pairs, check_matrices
from structpe.encodings.bfs import STEPS, by_bits
from structpe.encodings.columns import groups, interleave, ranges, starts_of
from structpe.encodings.compiled import OF_A_LIST
from structpe.encodings.graphs import (
    Extent,
    Graphs,
    Limited,
    OfNodes,
    below_top,
    clipped,
    column_of_integers,
    finite,
    values_of,
)
from structpe.structure import Ids, Structure

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Adjacency", "Degree", "Distance", "Neighbours", "UndirectedDistance", "shortest", "signed"]


Array = NDArray[Any]

_WIDE = 512  # up to this number of nodes, one call searches many graphs
_FLOATS = 1 << 20  # which scipy writes in one go; each time it checks the graph again


def shortest(graphs: Graphs, directed: bool) -> Array:
    """(P,) the length of the shortest path of each pair of nodes, uint8, or uint16 if one is longer than 254.

    Args:
        graphs: the graphs.
        directed: whether to follow the direction of edges, in directed graphs.
    """
    return _lengths(graphs, ~(graphs.directed & directed), graphs.pair_start, graphs.sizes)[0]


def _lengths(graphs: Graphs, mirrored: NDArray[np.bool_], at: Ids, widths: Ids) -> tuple[Array, Extent | None]:
    """The lengths, zero where the matrices of graphs are padded, and their extent, or None if it is not known.

    Args:
        graphs: the graphs.
        mirrored: (g,) whether edges are walked in both directions.
        at: (g + 1,) where the matrix of each graph begins.
        widths: (g,) rows and columns of these matrices.
    """
    result = (np.empty if widths is graphs.sizes else np.zeros)(int(at[-1]), dtype=np.uint8)
    left, extent = _small(graphs, mirrored, at, widths, result)
    if not left.any():
        return result, extent
    large, long = graphs.only(left), dict[int, Array]()
    rooms = [np.ascontiguousarray(part) for part in _parts(graphs, left, at, widths, result)]
    search = _large_compiled if bfs_module.levels.pays(OF_A_LIST + int(large.pair_start[-1])) else _large
    for number, lengths in search(large, mirrored[left], rooms):
        long[number] = lengths
    result = result if not long else _widened(result, np.dtype(np.uint16))
    for number, part in enumerate(_parts(graphs, left, at, widths, result)):
        if number in long or not part.flags.c_contiguous:  # the others were filled in place
            part[:] = long.get(number, rooms[number])
    return result, None


def signed(graphs: Graphs) -> Array:
    """(P,) +d(t, s) if d(t, s) <= d(s, t) of the pair (t, s), else -d(s, t), int8, or int16 or int32 for longer ones.

    Lengths are those along the edges of directed graphs.
    """
    result = np.empty(int(graphs.pair_start[-1]), dtype=np.int8)
    left, _ = _small(graphs, ~graphs.directed, graphs.pair_start, graphs.sizes, result.view(np.uint8))
    _small_signs(graphs, left, result)
    if not left.any():
        return result
    large = graphs.only(left)
    there = shortest(large, directed=True)
    result = _widened(result, np.min_scalar_type(-below_top(there) - 2))
    everything = np.ones(len(large.sizes), dtype=np.bool_)
    parts = _parts(graphs, left, graphs.pair_start, graphs.sizes, result)
    for to, part in zip(_parts(large, everything, large.pair_start, large.sizes, there), parts, strict=True):
        _sign(to, part)
    return result


def _sign(there: Array, result: Array) -> None:
    top = np.iinfo(there.dtype).max
    result.fill(np.iinfo(result.dtype).max)
    if bfs_module.signs.pays(result.size):
        bfs_module.signs(top, there, result)
        return
    np.copyto(result, there, where=there < top, casting="unsafe")
    np.copyto(result, -there.T.astype(result.dtype), where=there > there.T)  # converted first: unsigned ones wrap


def _parts(graphs: Graphs, which: NDArray[np.bool_], at: Ids, widths: Ids, flat: Array) -> list[Array]:
    """The matrices (n, n) of some of the graphs, without padding."""
    each = zip(at[:-1][which].tolist(), widths[which].tolist(), graphs.sizes[which].tolist(), strict=True)
    return [flat[a : a + w * w].reshape(w, w)[:n, :n] for a, w, n in each]


def _widened(numbers: Array, dtype: np.dtype[Any]) -> Array:
    """In another dtype; its largest number stands for pairs without a path."""
    if numbers.dtype == dtype:
        return numbers
    wide = numbers.astype(dtype)
    wide[numbers == np.iinfo(numbers.dtype).max] = np.iinfo(dtype).max
    return wide


# --- small graphs ---


def _small(
    graphs: Graphs, mirrored: NDArray[np.bool_], at: Ids, widths: Ids, result: NDArray[np.uint8]
) -> tuple[NDArray[np.bool_], Extent | None]:
    """Fill the lengths of graphs of up to ``_WIDE`` nodes; (g,) the graphs that are left, and as :func:`_lengths`.

    Args:
        graphs, mirrored, at, widths: as of :func:`_lengths`.
        result: where. Those of graphs that are left, as they are larger or have long paths, mean nothing.
    """
    if bfs_module.squares.pays(OF_A_LIST + int(graphs.pair_start[-1])):
        left = np.ones_like(mirrored)
        given = graphs.start, at, widths, graphs.edge_start, graphs.edges, mirrored, left, result
        high, lacking = bfs_module.grown(*given, *_words(127 * 16), *np.empty((4, 400), dtype=np.uint32))
        if left.any():
            room, most = np.empty((9, _WIDE), dtype=np.uint64), int(np.diff(graphs.edge_start).max())
            ends = np.empty((most, 2), dtype=np.uint32)
            found = bfs_module.squares(*given, bfs_module.BYTES, room, *_words(8), ends)
            high, lacking = max(high, found[0]), lacking or found[1]
        return left, (0, high, lacking)
    left = graphs.sizes > _WIDE
    parts = _parts(graphs, np.ones_like(left), at, widths, result)
    left[bfs_module.by_words(graphs, mirrored, np.flatnonzero(~left), parts)] = True
    return left, None


def _words(count: int) -> tuple[Array, Array]:
    """Room for so many words, and their bytes."""
    words = np.empty(count, dtype=np.uint64)
    return words, words.view(np.uint8)


def _small_signs(graphs: Graphs, left: NDArray[np.bool_], result: NDArray[np.int8]) -> None:
    """From lengths of the other graphs, unsigned, to signed ones in place."""
    lengths = result.view(np.uint8)
    if bfs_module.small_signs.pays(OF_A_LIST + result.size):
        bfs_module.small_signs(graphs.start, graphs.pair_start, left, lengths, result)
        return
    members = np.flatnonzero(~left)
    for group in groups(graphs.sizes[members]):
        which = members[group]
        n = int(graphs.sizes[which[0]])
        places = graphs.pair_start[which][:, None] + np.arange(n * n)
        there = np.minimum(lengths[places], 127).reshape(-1, n, n)  # 127 without a path, as in int8
        back = there.swapaxes(1, 2)
        result[places] = np.where(there <= back, there, -back).view(np.int8).reshape(len(which), -1)


# --- large graphs ---


def _large_compiled(graphs: Graphs, mirrored: NDArray[np.bool_], parts: Sequence[Array]) -> Iterator[tuple[int, Array]]:
    """Fill the lengths (n, n) of each graph, uint8; those that do not fit are given, by the number of the graph."""
    near = bfs_module.Adjacent.of(graphs, mirrored)
    starts = near.start[:-1]
    deep = np.maximum.reduceat(near.steps_from(np.zeros_like(starts)), starts) > STEPS
    for number, (node, part) in enumerate(zip(starts.tolist(), parts, strict=True)):
        if not deep[number] and _in_words(near, node, part):
            continue
        queue = np.empty(len(part), dtype=np.int32)
        if not bfs_module.queues(near.indptr, near.indices, node, np.iinfo(part.dtype).max, queue, part):
            wide = np.empty(part.shape, dtype=np.uint16)
            bfs_module.queues(near.indptr, near.indices, node, np.iinfo(wide.dtype).max, queue, wide)
            yield number, wide


def _in_words(near: bfs_module.Adjacent, node: int, result: Array) -> bool:
    """Search some words of targets after the other; whether no path is too long for that."""
    n, count = len(result), bfs_module.WORDS
    for first in range(0, n, 64 * count):
        reached, digits = np.zeros((2, n, count), dtype=np.uint64), np.zeros((bfs_module.DIGITS, n, count), np.uint64)
        room = np.zeros(count, dtype=np.uint64), np.zeros(n, dtype=np.uint8)
        steps = bfs_module.levels(near.indptr, near.indices, node, first, STEPS, *reached, digits, *room)
        if steps < 0:
            return False
        bfs_module.unpack(reached[0], digits, steps, first, bfs_module.BYTES, *_words(64), result)
    return True


def _large(graphs: Graphs, mirrored: NDArray[np.bool_], parts: Sequence[Array]) -> Iterator[tuple[int, Array]]:
    """The same by NumPy, and by SciPy where paths are long."""
    from scipy.sparse import csr_array  # which takes long to import, and graphs are small mostly
    from scipy.sparse.csgraph import dijkstra

    steps = graphs.steps(back=bool(mirrored.all()))
    first = graphs.start[:-1]
    lengths = dijkstra(steps, unweighted=True, indices=first, min_only=True)
    lengths[np.isinf(lengths)] = 0.0
    # Where a path from the first node is too long for a search by bits, others are too.
    deep = np.flatnonzero(np.maximum.reduceat(lengths, first) > STEPS).tolist()
    for number in [*deep, *by_bits(graphs, steps, np.delete(np.arange(len(parts)), deep), parts)]:
        nodes = slice(graphs.start[number], graphs.start[number + 1])
        found = _by_scipy(csr_array(steps[nodes, nodes]))
        if finite(found)[1] < np.iinfo(np.uint8).max:
            np.copyto(parts[number], found, casting="unsafe")  # all ones remain so
        else:
            yield number, found


def _by_scipy(steps: csr_array) -> NDArray[np.uint16]:
    """(n, n) lengths of a graph with long paths.

    A node is one step farther than the nearest of its neighbours. So nodes of which no two are neighbours need no
    search: in a sparse graph, up to half of all.
    """
    from scipy.sparse.csgraph import dijkstra

    n, top = steps.shape[0], np.iinfo(np.uint16).max
    result, some, later = np.empty((n, n), dtype=np.uint16), max(1, _FLOATS // n), _no_neighbours(steps)
    searched = np.flatnonzero(~later)
    for first in range(0, len(searched), some):
        rows = searched[first : first + some]
        lengths = dijkstra(steps, unweighted=True, indices=rows)
        result[rows] = np.minimum(lengths, top, out=lengths)
    for node in np.flatnonzero(later).tolist():
        near = steps.indices[steps.indptr[node] : steps.indptr[node + 1]]
        least = result[near[near != node]].min(axis=0, initial=top)
        result[node] = least + (least < top)
        result[node, node] = 0
    return result


def _no_neighbours(steps: csr_array) -> NDArray[np.bool_]:
    """(n,) nodes of which no two are joined, chosen one by one, those with few neighbours first."""
    from scipy.sparse import csr_array

    both = csr_array(steps + steps.T)
    chosen, near = np.zeros(steps.shape[0], dtype=np.bool_), np.zeros(steps.shape[0], dtype=np.bool_)
    for node in np.argsort(np.diff(both.indptr), kind="stable").tolist():
        if not near[node]:
            chosen[node] = True
            near[both.indices[both.indptr[node] : both.indptr[node + 1]]] = True
    return chosen


class _Shortest(Limited):
    """Encodings of shortest paths, whose values depend on the offset only where a structure is a plain sequence.

    Raises:
        EncodingError: more than 20,000 nodes or units, unless the structure is a plain sequence.
    """

    arity = 2
    causal = True
    codes = ("unreachable", "within")
    along: ClassVar[bool]
    """Whether paths follow the direction of edges."""

    def quadratic(self, structure: Structure) -> bool:
        return not Graphs.of([structure]).lines[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        graphs = Graphs.of(structures)
        lines = graphs.lines & (graphs.sizes > 1)  # of one node, both forms of an index are the same
        others = graphs.only(~lines)
        check_matrices(self, others.most)
        lengths = clipped(signed(others) if self.along else shortest(others, directed=False), self.max_distance)
        if not lines.any():
            return column_of_integers(others, lengths)
        widths = 2 * graphs.sizes[lines] - 1
        offsets = clipped(ranges(1 - graphs.sizes[lines], widths), self.max_distance)
        offsets = np.where(np.repeat(graphs.directed[lines] & self.along, widths), offsets, np.abs(offsets))
        column = column_of_integers(others, lengths, also=offsets)
        assert column.index is not None
        starts = starts_of(np.where(lines, 2 * graphs.sizes - 1, np.square(graphs.units)))
        index = np.empty(int(starts[-1]), dtype=column.index.dtype)
        interleave(index, starts, lines, column.index)
        interleave(index, starts, ~lines, offsets - column.values[0])
        return replace(column, sizes=graphs.units, index=index, starts=starts)

    def padded(self, structures: Sequence[Structure], widths: Ids) -> Column:
        graphs = Graphs.of(structures)
        if self.along or graphs.owner is not None or widths.max() > _WIDE or graphs.all_lines:
            return self.many(structures)
        at = starts_of(np.square(widths))
        lengths, extent = _lengths(graphs, np.ones_like(graphs.directed), at, widths)
        if self.max_distance is not None:
            lengths, extent = clipped(lengths, self.max_distance), None
        values, index = values_of(lengths, extent)
        return Column(graphs.units, values, index, at, widths=widths)


@dataclass(frozen=True)
class Distance(_Shortest, name="distance"):
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
        max_distance: D_max, the largest distance; longer ones are clipped to it. None for no limit.
    """

    along = True


@dataclass(frozen=True)
class UndirectedDistance(_Shortest, name="undirected-distance"):
    """Shortest-path distances that ignore directions.

    d: length of the shortest path between the nodes of two units, ignoring directions.

    Units of one node have ``WITHIN + k`` and pairs without a path ``UNREACHABLE``, as in :class:`Distance`.

    Args:
        max_distance: the largest distance; longer ones are clipped to it. None for no limit.
    """

    along = False


_SELF = 4  # the value of a unit and itself; those of edges are below


@dataclass(frozen=True)
class Adjacency(Encoding, name="adjacency"):
    """Adjacency: whether an edge joins the nodes of two units, and in which direction.

    a_ts: which edges join the nodes of query t and key s.

    ::

        a_ts = WITHIN + k    t and s belong to one node, s being its k-th unit after t, k != 0
               4             t is s, with or without a self-loop
               3             edges in both directions, or an undirected edge
               2             an edge leads s -> t
               1             an edge leads t -> s
               0             no edge

    Parallel edges count as one. A mask of neighbours, as in message passing or in Dwivedi & Bresson 2020, is a != 0.
    """

    arity = 2
    causal = True
    codes = ("within",)

    def many(self, structures: Sequence[Structure]) -> Column:
        check_all_pairs(self, structures)
        graphs = Graphs.of(structures)
        places, offsets = graphs.inside()
        inner, which = np.unique(offsets, return_inverse=True)
        index = np.zeros(int(graphs.pair_start[-1]), dtype=np.min_scalar_type(_SELF + len(inner)))
        first, second, directions = graphs.links()
        index[graphs.pairs_at(first, second)] = directions
        nodes = np.arange(int(graphs.start[-1]))
        index[graphs.pairs_at(nodes, nodes)] = _SELF
        of_units = graphs.pairs_of_units(index)
        of_units[places] = _SELF + 1 + which
        return Column.of_pairs(graphs.units, np.concatenate([np.arange(_SELF + 1), WITHIN + inner]), of_units)


@dataclass(frozen=True)
class Neighbours(Encoding, name="neighbours"):
    """Neighbours: the pairs of units whose nodes are joined by an edge.

    a_ts for the pairs that an edge joins in any direction; linear in the number of edges.

    With query t and key s, as in :class:`Adjacency`::

        WITHIN + k    t and s belong to one node, s being its k-th unit after t, k != 0
        4             t is s: all units with ``itself``, otherwise those whose node has a self-loop
        3             edges in both directions, or an undirected edge
        2             an edge leads s -> t
        1             an edge leads t -> s

    Parallel edges count as one.

    Args:
        itself: whether each unit is its own neighbour.
    """

    arity = 2
    causal = True
    sparse = True
    codes = ("within",)

    itself: bool = False

    def many(self, structures: Sequence[Structure]) -> Column:
        graphs = Graphs.of(structures)
        first, second, directions = graphs.links()
        joined, which = graphs.lists_of_units(first, second)
        itself = np.full(int(graphs.start[-1]), self.itself)
        itself[graphs.edges[graphs.edges[:, 0] == graphs.edges[:, 1], 0]] = True
        alone, inside = np.flatnonzero(graphs.of_units(itself)), graphs.pairs_inside()
        inner, number = np.unique(inside[:, 1] - inside[:, 0], return_inverse=True)
        return graphs.listed(
            np.concatenate([joined, np.column_stack([alone, alone]), inside]),
            np.concatenate([np.arange(1, _SELF + 1), WITHIN + inner]),
            np.concatenate([directions[which].astype(np.int64), np.full(len(alone), _SELF), _SELF + 1 + number]) - 1,
        )


@dataclass(frozen=True)
class Degree(OfNodes, name="degree"):
    """The degree of each node.

    deg(u): number of nodes to which edges of the unit's node lead (``out``), from which they come (``in``), or both.

    Parallel edges count once, and so does a self-loop, as in a matrix of zeros and ones (Ying et al. 2021). In an
    undirected structure all three are equal. All units of a node have its degree.

    Args:
        direction: which edges count: ``out``, ``in`` or ``both``.
    """

    direction: Literal["out", "in", "both"] = "both"

    def of_nodes(self, graphs: Graphs, structures: Sequence[Structure]) -> Ids:
        there = graphs.steps(onward=self.direction != "in", back=self.direction != "out")
        degrees: Ids = np.diff(there.indptr).astype(np.int64)
        return degrees
