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
from structpe.encodings.columns import interleave, ranges, scatter, starts_of
from structpe.encodings.compiled import OF_A_LIST
from structpe.encodings.graphs import Graphs, Limited, OfNodes, below_top, clipped, column_of_integers, finite
from structpe.structure import Ids, Structure

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Adjacency", "Degree", "Distance", "Neighbours", "UndirectedDistance", "shortest", "signed"]


Array = NDArray[Any]

_SMALL = 64  # up to this number of nodes, Floyd-Warshall by NumPy over a group of graphs is faster than a search
_WIDE = 512  # up to this number of nodes, compiled searches take the graphs one after the other
_INF = 127  # 127 + 127 fits into eight bits, so sums need no check; exact for graphs of up to 127 nodes
_CELLS = 1 << 19  # of a group of small graphs: with their sums they stay in the cache
_ROW = 400  # how many sums take as long as the step from a row of sums to the next one
_FLOATS = 1 << 20  # which scipy writes in one go; each time it checks the graph again


def shortest(graphs: Graphs, directed: bool) -> Array:
    """(P,) the length of the shortest path of each pair of nodes, uint8, or uint16 if one is longer than 254.

    Args:
        graphs: the graphs.
        directed: whether to follow the direction of edges, in directed graphs.
    """
    mirrored, result = ~(graphs.directed & directed), np.empty(int(graphs.pair_start[-1]), dtype=np.uint8)
    left = _squares(graphs, mirrored, _WIDE, result)
    if not left.any():
        return result
    large, long = graphs.only(left), dict[int, Array]()
    search = _large_compiled if bfs_module.levels.pays(OF_A_LIST + int(large.pair_start[-1])) else _large
    for number, lengths in search(large, mirrored[left], _parts(graphs, left, result)):
        long[number] = lengths
    result = result if not long else _widened(result, np.dtype(np.uint16))
    parts = _parts(graphs, left, result)
    for number, lengths in long.items():
        parts[number][:] = lengths
    return result


def signed(graphs: Graphs) -> Array:
    """(P,) +d(t, s) if d(t, s) <= d(s, t) of the pair (t, s), else -d(s, t), int8, or int16 or int32 for longer ones.

    Lengths are those along the edges of directed graphs.
    """
    result = np.empty(int(graphs.pair_start[-1]), dtype=np.int8)
    left = _squares(graphs, ~graphs.directed, _SMALL, result)
    if not left.any():
        return result
    large = graphs.only(left)
    there = shortest(large, directed=True)
    result = _widened(result, np.min_scalar_type(-below_top(there) - 2))
    everything = np.ones(len(large.sizes), dtype=np.bool_)
    for to, part in zip(_parts(large, everything, there), _parts(graphs, left, result), strict=True):
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


def _parts(graphs: Graphs, which: NDArray[np.bool_], flat: Array) -> list[Array]:
    """The matrices (n, n) of some of the graphs."""
    pairs = zip(graphs.pair_start[:-1][which].tolist(), graphs.sizes[which].tolist(), strict=True)
    return [flat[a : a + n * n].reshape(n, n) for a, n in pairs]


def _widened(numbers: Array, dtype: np.dtype[Any]) -> Array:
    """In another dtype; its largest number stands for pairs without a path."""
    if numbers.dtype == dtype:
        return numbers
    wide = numbers.astype(dtype)
    wide[numbers == np.iinfo(numbers.dtype).max] = np.iinfo(dtype).max
    return wide


# --- small graphs ---


def _squares(graphs: Graphs, mirrored: NDArray[np.bool_], most: int, result: Array) -> NDArray[np.bool_]:
    """Fill the lengths of small graphs, signed ones if their dtype is int8; (g,) the graphs that are left.

    Args:
        graphs: the graphs.
        mirrored: (g,) whether edges are walked in both directions.
        most: the number of nodes of a small graph if the search is compiled; otherwise ``_SMALL``.
        result: (P,) where.
    """
    if bfs_module.squares.pays(OF_A_LIST + result.size):
        starts, left, lengths = (graphs.start, graphs.pair_start), np.empty_like(mirrored), result.view(np.uint8)
        ends = (graphs.edges - np.repeat(graphs.start[:-1], np.diff(graphs.edge_start))[:, None]).astype(np.uint32)
        bfs_module.squares(*starts, graphs.edge_start, ends, mirrored, most, bfs_module.BYTES, left, lengths)
        if result.dtype == np.int8:
            bfs_module.small_signs(*starts, left, lengths, result)
        return left
    for group in _groups(graphs.sizes, np.flatnonzero(graphs.sizes <= _SMALL)):
        whole = _floyd_warshall(graphs, mirrored, group)
        if result.dtype == np.int8:
            back = whole.swapaxes(0, 1)
            whole = np.where(whole <= back, whole, -back).view(np.int8)  # 127 if there is no path, as in int8
        else:
            whole |= (whole == _INF).view(np.uint8) << 7
        lengths = np.ascontiguousarray(whole.transpose(2, 0, 1))
        sizes, first = np.unique(graphs.sizes[group], return_index=True)  # the smallest come first
        for n, same, parts in zip(
            sizes.tolist(), np.split(lengths, first[1:]), np.split(group, first[1:]), strict=True
        ):
            scatter(result, graphs.pair_start[parts], same[:, :n, :n].reshape(len(same), n * n))
    large: NDArray[np.bool_] = graphs.sizes > _SMALL
    return large


def _groups(sizes: Ids, members: Ids) -> list[Ids]:
    """Small graphs of similar sizes, the smallest first, as many as the cache holds.

    Of all ways to cut the sizes, in steps of four, into groups, the one of which all loops together are shortest.
    """
    by_size = members[np.argsort(sizes[members], kind="stable")]
    steps, counts = np.unique(-(-sizes[by_size] // 4), return_counts=True)
    ends, best, cuts = [0, *np.cumsum(counts).tolist()], [0.0], list[int]()
    for last, step in enumerate(steps.tolist(), start=1):
        costs = [best[first] + _cost(4 * step, ends[last] - ends[first]) for first in range(last)]
        cuts.append(int(np.argmin(costs)))
        best.append(min(costs))
    groups, last = list[Ids](), len(steps)
    while last:
        group, last = by_size[ends[cuts[last - 1]] : ends[last]], cuts[last - 1]
        some = max(1, _CELLS // int(sizes[group].max()) ** 2)
        groups += [group[first : first + some] for first in range(0, len(group), some)]
    return groups


def _cost(most: int, count: int) -> float:
    """The sums of Floyd-Warshall, and what it takes to go to the next row, which takes as long as so many sums."""
    return most**2 * min(most * (count + _ROW), count * (most + _ROW))


def _floyd_warshall(graphs: Graphs, mirrored: NDArray[np.bool_], members: Ids) -> NDArray[np.uint8]:
    """(b, most, most) of b graphs. Many graphs are the last axis meanwhile: then vector operations are long."""
    most, count, edges = int(graphs.sizes[members].max()), len(members), np.diff(graphs.edge_start)[members]
    which = np.repeat(np.arange(count), edges)
    source, target = graphs.edges.take(ranges(graphs.edge_start[members], edges), axis=0).T
    first = graphs.start[members][which]
    source, target, both = source - first, target - first, mirrored[members]
    last = count > most
    lengths = np.full((most, most, count) if last else (count, most, most), _INF, dtype=np.uint8)
    whole = lengths if last else lengths.transpose(1, 2, 0)
    strides, flat = whole.strides, lengths.reshape(-1)
    flat[source * strides[0] + target * strides[1] + which * strides[2]] = 1
    if not both.all():
        source, target, which = (each[np.repeat(both, edges)] for each in (source, target, which))
    flat[target * strides[0] + source * strides[1] + which * strides[2]] = 1
    whole[np.arange(most), np.arange(most)] = 0
    sums = np.empty_like(lengths)
    for k in range(most):
        np.add(whole[:, k, None], whole[None, k], out=sums if last else sums.transpose(1, 2, 0))
        np.minimum(lengths, sums, out=lengths)
    return whole


# --- large graphs ---


def _large_compiled(graphs: Graphs, mirrored: NDArray[np.bool_], parts: Sequence[Array]) -> Iterator[tuple[int, Array]]:
    """Fill the lengths (n, n) of each graph, uint8; those that do not fit are given, by the number of the graph."""
    near = bfs_module.Adjacent.of(graphs, mirrored)
    starts = near.start[:-1]
    deep = np.maximum.reduceat(near.steps_from(np.zeros_like(starts)), starts) > STEPS
    for number, (node, part) in enumerate(zip(starts.tolist(), parts, strict=True)):
        if not deep[number] and _in_words(near, node, part):
            continue
        if not bfs_module.queues(near.indptr, near.indices, node, np.iinfo(part.dtype).max, part):
            wide = np.empty(part.shape, dtype=np.uint16)
            bfs_module.queues(near.indptr, near.indices, node, np.iinfo(wide.dtype).max, wide)
            yield number, wide


def _in_words(near: bfs_module.Adjacent, node: int, result: Array) -> bool:
    """Search some words of targets after the other; whether no path is too long for that."""
    n, count = len(result), bfs_module.WORDS
    for first in range(0, n, 64 * count):
        reached, digits = np.zeros((2, n, count), dtype=np.uint64), np.zeros((bfs_module.DIGITS, n, count), np.uint64)
        steps = bfs_module.levels(near.indptr, near.indices, node, first, STEPS, reached[0], reached[1], digits)
        if steps < 0:
            return False
        bfs_module.unpack(reached[0], digits, steps, first, bfs_module.BYTES, result)
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
