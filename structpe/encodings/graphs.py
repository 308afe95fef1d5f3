"""Many structures as one graph: one numpy call processes all of them.

Nodes and units are numbered over all structures. Pairs of nodes are flat: the matrix of each structure row by row, one
structure after the other. Shapes: g structures, T nodes, U units, E edges, P pairs of nodes, Q pairs of units.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structpe.computed import computed
from structpe.encodings.base import UNREACHABLE, WITHIN, Encoding, check_limits
from structpe.encodings.columns import Column, blocks, groups, joined, narrow, ranges, starts_of
from structpe.encodings.tree_pairs import Rooted
from structpe.errors import EncodingError
from structpe.structure import Ids, Structure

if TYPE_CHECKING:
    import torch
    from scipy.sparse import csr_array

__all__ = [
    "AHEAD",
    "BACK",
    "Extent",
    "Graphs",
    "Limited",
    "OfNodes",
    "OwnValues",
    "adjacency_matrices",
    "below_top",
    "chosen_device",
    "clipped",
    "column_of",
    "column_of_integers",
    "computing_on",
    "concatenated_once",
    "finite",
    "known",
    "of_units",
    "places_by",
    "ranks",
    "ranks_of_all",
    "values_of",
]


Array = NDArray[Any]

Extent: TypeAlias = tuple[int, int, bool]
"""The least and the largest of some numbers, and whether the largest that the dtype has is there, too."""

_CELLS = 1 << 20  # of a block of rows, which bounds the memory that the index of its pairs takes
_BLOCK = 1 << 20

AHEAD, BACK = 1, 2
"""Bits: an edge leads from the first node to the second, or from the second to the first."""

_EMPTY = np.zeros(0, dtype=np.int64)

_device: ContextVar[torch.device | None] = ContextVar("_device", default=None)
_once: ContextVar[dict[int, tuple[Sequence[Structure], Graphs]] | None] = ContextVar("_once", default=None)


@contextmanager
def concatenated_once() -> Iterator[None]:
    """Inside a ``with`` block, the structures of a list are concatenated by the first encoding that asks for it.

    The list is known by its identity: whoever opens a block does not change the list in it.
    """
    token = _once.set({})
    try:
        yield
    finally:
        _once.reset(token)


@contextmanager
def computing_on(device: torch.device | str | None) -> Iterator[None]:
    """Inside a ``with`` block, encodings are computed on this device, as far as they can; None: by NumPy and numba.

    Raises:
        EncodingError: PyTorch cannot compute there in float64.
    """
    token = _device.set(None if device is None else _usable(device))
    try:
        yield
    finally:
        _device.reset(token)


def _usable(device: torch.device | str) -> torch.device:
    import torch

    try:
        return torch.empty(1, dtype=torch.float64, device=device).device
    except (RuntimeError, AssertionError, TypeError) as error:  # also where PyTorch was built without CUDA
        reason = str(error).partition("\n")[0].rstrip(".")
        raise EncodingError(
            f"encodings cannot be computed on {str(device)!r} ({reason}); give a device that PyTorch has here and that "
            f"computes in float64, such as 'cuda' or 'cpu', or None"
        ) from None


def chosen_device() -> torch.device | None:
    """The device, if one was chosen."""
    return _device.get()


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
        roots: (g,) the root of each structure, counted in it; -1 without one.
    """

    sizes: Ids
    start: Ids
    edges: Ids
    edge_start: Ids
    directed: NDArray[np.bool_]
    owner: Ids | None
    units: Ids
    unit_start: Ids
    roots: Ids

    @classmethod
    def of(cls, structures: Sequence[Structure]) -> Graphs:
        """Concatenate structures."""
        known = _once.get()
        if known is not None and id(structures) in known:
            return known[id(structures)][1]
        made = cls._of_one(structures[0]) if len(structures) == 1 else cls._of_many(structures)
        if known is not None:  # the list is kept, so no other gets its number
            known[id(structures)] = structures, made
        return made

    @classmethod
    def _of_one(cls, s: Structure) -> Graphs:
        """A graph alone, for which most arrays have one number."""
        size, start, edges = np.array([len(s.nodes)]), np.array([0, len(s.nodes)]), s.edges.copy()
        owner, units, unit_start = None if s.owner is None else s.owner.copy(), size, start
        if owner is not None:
            units, unit_start = np.array([len(owner)]), np.array([0, len(owner)])
        root = np.array([-1 if s.root is None else s.root])
        bounds = np.array([0, len(edges)])
        return cls(size, start, edges, bounds, np.array([s.directed]), owner, units, unit_start, root)

    @classmethod
    def _of_many(cls, structures: Sequence[Structure]) -> Graphs:
        # A list for each attribute: a loop over structures would take longer than most encodings.
        count, listed = len(structures), [s.edges for s in structures]
        size = np.fromiter([len(s.nodes) for s in structures], np.int64, count)
        edge_counts = np.fromiter(map(len, listed), np.int64, count)
        start, flat = starts_of(size), joined(listed)
        flat += np.repeat(start[:-1], 2 * edge_counts)
        directed = np.fromiter([s.directed for s in structures], np.bool_, count)
        owner, units, unit_start = cls._units([s.owner for s in structures], size, start)
        roots = np.array([-1 if (root := s.root) is None else root for s in structures], dtype=np.int64)
        ends = flat.reshape(-1, 2), starts_of(edge_counts)
        return cls(size, start, *ends, directed, owner, units, unit_start, roots)

    @staticmethod
    def _units(owners: Sequence[Ids | None], size: Ids, start: Ids) -> tuple[Ids | None, Ids, Ids]:
        """Owners over all structures, the number of units of each, and the first unit of each."""
        if all(each is None for each in owners):
            return None, size, start
        split = np.array([each is not None for each in owners], dtype=np.bool_)
        given, units = [each for each in owners if each is not None], size.copy()
        units[split] = [len(each) for each in given]
        unit_start, which = starts_of(units), np.repeat(split, units)
        owner = np.arange(len(which)) - np.repeat(unit_start[:-1], units)
        owner[which] = np.concatenate(given)
        owner += np.repeat(start[:-1], units)
        return owner, units, unit_start

    @property
    def most(self) -> int:
        """The number of nodes or units of the structure that has most."""
        return int(max(self.sizes.max(initial=0), self.units.max(initial=0)))

    @computed
    def lines(self) -> NDArray[np.bool_]:
        """(g,) whether the nodes of a structure are a path in their order, and each is one unit: a plain sequence."""
        counts = np.diff(self.edge_start)
        right: NDArray[np.bool_] = self.whole & (counts == self.sizes - 1)
        left = np.flatnonzero(right)
        if not len(left):
            return right
        source, ends = ranges(self.start[left], counts[left]), self.edges[ranges(self.edge_start[left], counts[left])]
        wrong = (ends[:, 0] != source) | (ends[:, 1] != source + 1)
        right[np.repeat(left, counts[left])[wrong]] = False
        return right

    @computed
    def all_lines(self) -> bool:
        """Whether all are plain sequences of two nodes or more."""
        if len(self.edges) != int(self.start[-1]) - len(self.sizes) or not (counts := np.diff(self.edge_start)).all():
            return False
        last = self.edges[self.edge_start[1:] - 1, 0] == self.start[1:] - 2  # of a tree, this tells nearly always
        return bool(last.all() and (counts == self.sizes - 1).all() and self.lines.all())

    @computed
    def whole(self) -> NDArray[np.bool_]:
        """(g,) whether each node of a structure is one unit."""
        if self.owner is None:
            return np.ones(len(self.sizes), dtype=np.bool_)
        right: NDArray[np.bool_] = self.units == self.sizes
        graph = np.repeat(np.arange(len(self.units)), self.units)
        other = self.owner != np.arange(len(graph)) - (self.unit_start[:-1] - self.start[:-1])[graph]
        right[graph[other]] = False
        return right

    @computed
    def rooted(self) -> Rooted:
        """The structures as trees whose edges lead away from the root, as far as they are trees."""
        return Rooted.of(self.start, self.edges, self.edge_start)

    def only(self, kept: NDArray[np.bool_]) -> Graphs:
        """Some of the structures, those that are marked (g,)."""
        if kept.all():
            return self
        sizes, units, counts = self.sizes[kept], self.units[kept], np.diff(self.edge_start)[kept]
        start = starts_of(sizes)
        moved = start[:-1] - self.start[:-1][kept]
        edges = self.edges.take(np.flatnonzero(np.repeat(kept, np.diff(self.edge_start))), axis=0)
        edges += np.repeat(moved, counts)[:, None]
        owner, unit_start = self.owner, start
        if owner is not None:
            owner = owner[ranges(self.unit_start[:-1][kept], units)] + np.repeat(moved, units)
            unit_start = starts_of(units)
        ends = edges, starts_of(counts), self.directed[kept]
        return Graphs(sizes, start, *ends, owner, units, unit_start, self.roots[kept])

    @computed
    def pair_start(self) -> Ids:
        """(g + 1,) the first pair of nodes of each structure, and P."""
        return starts_of(np.square(self.sizes))

    @computed
    def unit_pair_start(self) -> Ids:
        """(g + 1,) the first pair of units of each structure, and Q."""
        return self.pair_start if self.owner is None else starts_of(np.square(self.units))

    @computed
    def graph(self) -> Ids:
        """(T,) the structure of each node."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @computed
    def unit_graph(self) -> Ids:
        """(U,) the structure of each unit."""
        return np.repeat(np.arange(len(self.units)), self.units)

    def pairs_at(self, query: Ids, key: Ids) -> Ids:
        """The places of some pairs of nodes of one structure among the P pairs."""
        graph = self.graph[query]
        return self.pair_start[graph] + (query - self.start[graph]) * self.sizes[graph] + key - self.start[graph]

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
        squares, split = np.square(self.units), ~self.whole
        result = np.empty((int(squares.sum()), *pairs.shape[1:]), dtype=pairs.dtype)
        if not split.all():
            result[np.repeat(self.whole, squares)] = pairs[np.repeat(self.whole, np.square(self.sizes))]
        query = np.flatnonzero(np.repeat(split, self.units))
        graph = np.repeat(np.flatnonzero(split), self.units[split])
        local = self.owner - np.repeat(self.start[:-1], self.units)
        row = self.pair_start[graph] + local[query] * self.sizes[graph]  # the first pair of the node of each query
        first, widths = self.unit_start[graph], self.units[graph]
        done = starts_of(squares)[graph] + (query - first) * widths
        for block in blocks(widths, _CELLS):
            which = np.repeat(row[block], widths[block])
            which += local[ranges(first[block], widths[block])]
            result[ranges(done[block], widths[block])] = pairs[which]
        return result

    def inside(self) -> tuple[Ids, Ids]:
        """The pairs of different units of one node: their places among the Q pairs of units, and s - t of (t, s)."""
        query, key = self.pairs_inside().T
        graph = self.unit_graph[query]
        first = self.unit_start[graph]
        return self.unit_pair_start[graph] + (query - first) * self.units[graph] + key - first, key - query

    def steps(self, onward: bool = True, back: bool = False) -> csr_array:
        """(T, T) with 1 where an edge leads from a node to another, or to itself; undirected edges lead both ways.

        Args:
            onward: along edges.
            back: against edges.
        """
        from scipy.sparse import csr_array  # most encodings need no scipy, which takes long to import

        source, target = self.edges.T
        both = ~np.repeat(self.directed, np.diff(self.edge_start))
        mine, other = both | onward, both | back
        ends = np.concatenate([source[mine], target[other]]), np.concatenate([target[mine], source[other]])
        nodes = int(self.start[-1])
        found = csr_array((np.ones(len(ends[0]), dtype=np.uint8), ends), shape=(nodes, nodes))
        found.data[:] = 1  # it was the number of parallel edges
        return found

    def links(self) -> tuple[Ids, Ids, Array]:
        """(e,) two different nodes that an edge joins, ascending, and which of :data:`AHEAD` and :data:`BACK`."""
        ahead = self.steps()
        both = (ahead * np.uint8(AHEAD) + ahead.T * np.uint8(BACK)).tocsr()
        both.sort_indices()
        first = np.repeat(np.arange(both.shape[0]), np.diff(both.indptr))
        apart = np.flatnonzero(first != both.indices)
        return first[apart], both.indices[apart].astype(np.int64), both.data[apart]

    def lists_of_units(self, first: Ids, second: Ids) -> tuple[Ids, Ids]:
        """From (e,) pairs of nodes to all (e', 2) pairs of their units, and (e',) the index of the pair of nodes."""
        numbers = np.arange(len(first))
        if self.owner is None:
            return np.column_stack([first, second]), numbers
        count = np.bincount(self.owner, minlength=int(self.start[-1]))
        begin = np.cumsum(count) - count
        which = np.repeat(numbers, count[first] * count[second])
        inside = ranges(np.zeros_like(first), count[first] * count[second])
        query, key = np.divmod(inside, count[second][which])
        return np.column_stack([begin[first[which]] + query, begin[second[which]] + key]), which

    def pairs_inside(self) -> Ids:
        """(e, 2) the pairs of different units of the same node."""
        if self.owner is None:
            return np.zeros((0, 2), dtype=np.int64)
        nodes = np.arange(int(self.start[-1]))
        pairs, _ = self.lists_of_units(nodes, nodes)
        different: Ids = pairs[pairs[:, 0] != pairs[:, 1]]
        return different

    def listed(self, pairs: Ids, values: Array, index: Array) -> Column:
        """A column of (e, 2) distinct pairs of units, in the given order within each structure.

        Args:
            pairs: of units, numbered over all structures.
            values: distinct values.
            index: (e,) which of them each pair has.
        """
        graph = self.unit_graph[pairs[:, 0]]
        order = np.argsort(narrow(graph), kind="stable")
        mine = pairs[order] - self.unit_start[graph[order], None]
        starts = starts_of(np.bincount(graph, minlength=len(self.units)))
        return Column(self.units, values, narrow(index)[order], starts, listed=mine)

    def parts(self, connected: bool) -> Iterator[tuple[Ids, Ids]]:
        """Groups of b parts of c nodes each: connected ones, or whole structures.

        Yields:
            (b, c) nodes, numbered over all structures and ascending; (e, 3) edges: index of the part, index of the
            source and of the target among its nodes.
        """
        label = self._connected() if connected else self.graph
        sizes = np.bincount(label)
        nodes, first = np.argsort(label, kind="stable"), starts_of(sizes)
        place = np.empty_like(nodes)
        place[nodes] = np.arange(len(nodes)) - np.repeat(first[:-1], sizes)
        of_edge = label[self.edges[:, 0]]
        edges = place[self.edges[np.argsort(of_edge, kind="stable")]]
        counts = np.bincount(of_edge, minlength=len(sizes))
        first_edge = starts_of(counts)
        for group in groups(sizes):
            members = nodes[first[group][:, None] + np.arange(sizes[group[0]])]
            inside = edges[ranges(first_edge[group], counts[group])]
            yield members, np.column_stack([np.repeat(np.arange(len(group)), counts[group]), inside])

    def _connected(self) -> Ids:
        from scipy.sparse.csgraph import connected_components

        label: Ids = connected_components(self.steps(), directed=False)[1]
        return label

    def adjacencies(self, directed: bool = False) -> Iterator[tuple[Ids, NDArray[np.bool_]]]:
        """(b,) some structures of the same size, and (b, n, n) whether an edge leads from one node to another.

        Without ``directed``, and in structures whose edges have no direction, edges lead in both.
        """
        for nodes, edges in self.parts(connected=False):
            members = self.graph[nodes[:, 0]]
            leading = self.directed[members] if directed else None
            yield members, adjacency_matrices(edges, len(nodes), nodes.shape[1], leading)


class OfNodes(Encoding):
    """Encodings of nodes: each unit has the value of its node."""

    arity = 1

    @abstractmethod
    def of_nodes(self, graphs: Graphs, structures: Sequence[Structure]) -> Array:
        """(T, ...) the values of the nodes of all structures, which are also given one by one."""

    def many(self, structures: Sequence[Structure]) -> Column:
        graphs = Graphs.of(structures)
        return Column.of_units(graphs.units, graphs.of_units(self.of_nodes(graphs, structures)))


@dataclass(frozen=True)
class Limited(Encoding):
    """Encodings of distances up to a largest one.

    Args:
        max_distance: the largest distance, 1 or more; None for no limit.

    Raises:
        EncodingError: ``max_distance`` is below 1.
    """

    max_distance: int | None = None

    def __post_init__(self) -> None:
        check_limits(self, max_distance=self.max_distance)


def of_units(structure: Structure, nodes: NDArray[Any]) -> NDArray[Any]:
    """From values per node to values per unit: each unit has the value of its node."""
    return nodes if structure.owner is None else nodes[structure.owner]


def places_by(structure: Structure, rank: NDArray[Any]) -> Ids:
    """(u,) the place of each unit if nodes are read in the order of a rank (n,), and units of a node in their order."""
    places = np.argsort(np.argsort(of_units(structure, rank), kind="stable"), kind="stable")
    return places.astype(np.int64)


def ranks(structure: Structure) -> Ids:
    """(n,) the place of each node in reading order, or its number if there is no order.

    Random numbers per node are drawn in this order, so they do not depend on the numbering of nodes.
    """
    return np.arange(structure.size) if structure.order is None else structure.order


def ranks_of_all(structures: Sequence[Structure]) -> Ids:
    """(T,) the ranks of all structures, concatenated; without any order the numbers of nodes over all structures."""
    if all(each.order is None for each in structures):
        return np.arange(sum(len(each.nodes) for each in structures))
    each_rank = [np.arange(len(each.nodes)) if each.order is None else each.order for each in structures]
    return np.concatenate([np.zeros(0, dtype=np.int64), *each_rank])


def adjacency_matrices(
    edges: Ids, count: int, size: int, directed: NDArray[np.bool_] | None = None
) -> NDArray[np.bool_]:
    """(count, size, size) whether an edge leads from one node of a part to another.

    Args:
        edges: (e, 3) index of the part, of the source and of the target among its nodes, as from :meth:`Graphs.parts`.
        count: how many parts.
        size: of each.
        directed: (count,) whether edges of a part join two nodes in their own direction only; None if in no part.
    """
    result = np.zeros((count, size, size), dtype=np.bool_)
    part, source, target = edges.T
    result[part, source, target] = True
    if directed is not None:
        part, source, target = edges[~directed[part]].T
    result[part, target, source] = True
    return result


def finite(numbers: Array) -> Extent:
    """The extent of numbers, except for the largest that the dtype has, and whether that one is there.

    It stands for pairs without a number, which saves an array that says which pairs have none.
    """
    if not numbers.size:
        return 0, 0, False
    top = np.iinfo(numbers.dtype).max
    high = int(numbers.max())
    if high == top:
        high = below_top(numbers)
        return min(int(numbers.min()), high), high, True
    return int(numbers.min()), high, False


def below_top(numbers: Array) -> int:
    """The largest number, except for the largest that the dtype has, block by block: no copy of all is made."""
    flat, one = numbers.reshape(-1), numbers.dtype.type(1)  # one more than the largest is the least number of the dtype
    return max(int((flat[first : first + _BLOCK] + one).max()) for first in range(0, flat.size, _BLOCK)) - 1


def clipped(numbers: Array, limit: int | None) -> Array:
    """The numbers between -limit and limit, in place; those of pairs without a number stay."""
    if limit is None:
        return numbers
    low, high, lacking = finite(numbers)
    if limit >= max(high, -low):
        return numbers
    there: Any = numbers != np.iinfo(numbers.dtype).max if lacking else True
    np.minimum(numbers, limit, out=numbers, where=there)
    return numbers if low >= -limit else np.maximum(numbers, -limit, out=numbers)


def values_of(numbers: Array, extent: Extent | None = None) -> tuple[Ids, Array]:
    """The values of numbers, which are consecutive and end with ``UNREACHABLE`` if a pair has none, and the index.

    Args:
        numbers: of pairs; the largest number of their dtype stands for ``UNREACHABLE``. The index is written in their
            place if it is as wide.
        extent: of the numbers; None to search for it.
    """
    low, high, lacking = finite(numbers) if extent is None else extent
    values = np.arange(low, high + 1 + lacking)
    if lacking:
        values[-1] = UNREACHABLE
    return values, _index_of(numbers, low, high, lacking)


def _at_most(numbers: Array, limit: int) -> Array:
    """The numbers, flat, up to a limit, in place: the minimum with an array takes a tenth of that with one number."""
    limits = np.full(min(len(numbers), _BLOCK >> 4), limit, dtype=numbers.dtype)
    for first in range(0, len(numbers), len(limits)):
        part = numbers[first : first + len(limits)]
        np.minimum(part, limits[: len(part)], out=part)
    return numbers


def _extent(numbers: Array, also: Array) -> Extent:
    low, high, lacking = finite(numbers)
    return min(low, int(also.min())), max(high, int(also.max())), lacking


def _index_of(numbers: Array, low: int, high: int, lacking: bool) -> Array:
    if low == 0 and not lacking and numbers.dtype.kind == "u":
        return numbers
    top, missing, unsigned = np.iinfo(numbers.dtype).max, high - low + 1, np.dtype(f"u{numbers.itemsize}")
    if high < top and missing <= np.iinfo(unsigned).max:  # differences fit, and so does the larger one of the top
        index: Array = numbers.view(unsigned)
        if low:
            np.subtract(index, unsigned.type(low % (1 << 8 * numbers.itemsize)), out=index)
        return _at_most(index, missing) if lacking else index
    wide = numbers.astype(np.int64) - low
    wide[numbers == top] = missing
    found: Array = wide.astype(np.min_scalar_type(missing))
    return found


def known(numbers: Array, most: int) -> tuple[Ids, Array]:
    """The values and the index of numbers from 0 to ``most`` - 1: all of them, or those that occur if they are many."""
    if most <= 1 << 8:
        return np.arange(most), numbers
    seen = np.zeros(most, dtype=np.bool_)
    seen[numbers] = True
    values = np.flatnonzero(seen)
    place = np.empty(most, dtype=np.min_scalar_type(len(values)))
    place[values] = np.arange(len(values))
    return values, place[numbers]


def column_of_integers(graphs: Graphs, numbers: Array, within: bool = True, also: Array | None = None) -> Column:
    """From flat numbers (P,) of pairs of nodes to the column of pairs of units.

    Args:
        graphs: the structures.
        numbers: in a signed or unsigned dtype, whose largest number stands for ``UNREACHABLE``.
        within: whether two units of one node have ``WITHIN + k``, or the number of their node.
        also: other numbers that are to be among the values, which begin with consecutive ones.
    """
    values, index = values_of(numbers, None if also is None else _extent(numbers, also))
    index = graphs.pairs_of_units(index)
    places, offsets = graphs.inside() if within and graphs.owner is not None else (_EMPTY, _EMPTY)
    if len(places):
        first, most = len(values), int(offsets.max())
        values = np.append(values, WITHIN + np.delete(np.arange(-most, most + 1), most))  # 0 is the unit itself
        index = index.astype(_narrowest(values), copy=False)
        index[places] = offsets + first + most - (offsets > 0)
    return Column(graphs.units, values, index.astype(_narrowest(values), copy=False), graphs.unit_pair_start)


def _narrowest(values: Array) -> np.dtype[Any]:
    return np.min_scalar_type(max(len(values) - 1, 0))


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
            values: (b, n, n, ...) of their pairs of nodes.
            there: (b, n, n) which pairs have a value of their own.
        """
        there = there.reshape(len(members), -1)
        pairs = there.shape[1]
        number = np.cumsum(there, axis=1, dtype=np.uint32)
        counts = number[:, -1:].copy()
        number -= 1
        np.copyto(number, counts, where=~there)
        kept = values.reshape(-1, *values.shape[3:])
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
