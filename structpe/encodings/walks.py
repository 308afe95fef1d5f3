"""Random walks: returns, ways from one node to another, PageRank and what compares two walks.

Graphs of one size are one block: a sparse matrix with a small square per graph times a dense one. A product
takes time edges x nodes of a graph and one call. Shapes: b graphs of n nodes each, T nodes of all graphs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from structpe.encodings import device
from structpe.encodings.base import MOST_NODES, UNREACHABLE, Encoding, check_all_pairs, check_matrices, check_sizes
from structpe.encodings.columns import SPLIT, Column, groups, ranges, significant, starts_of, to_grid
from structpe.encodings.compiled import OF_A_LIST, compiled
from structpe.encodings.graphs import (
    Graphs,
    OfNodes,
    OwnValues,
    chosen_device,
    column_of,
    of_units,
    ranks,
    ranks_of_all,
)
from structpe.encodings.walk_probes import estimated
from structpe.errors import EncodingError
from structpe.structure import Ids, Structure

__all__ = ["RRWP", "HopOverlap", "Intimacy", "PersonalizedPageRank", "RandomWalk", "WalkKernel", "Walks", "kernel_of"]


Floats = NDArray[np.float64]
Array = NDArray[Any]
_Estimate: TypeAlias = Callable[["Walks", int], tuple[Floats, Floats]]
"""Values of a graph, by its number, and their standard errors."""

_LARGE = 500  # above this number of nodes, a graph is walked from some of its nodes at a time
_CELLS = 1 << 16  # of a dense matrix: half a dozen of them stay in the cache
_TARGETS = 32  # of a large graph: more numbers per node do not stay in the cache
_TABLE = 128  # up to so many nodes, a table of all pairs takes less time than a sparse matrix


class _Steps(NamedTuple):
    """The rows of a sparse square matrix, as in ``csr_array``: SciPy's checks of one take as long as a small graph."""

    indptr: Ids
    indices: Ids
    data: Floats

    @classmethod
    def counted(cls, source: Ids, target: Ids, nodes: int, undirected: bool) -> _Steps:
        """D^-1 A of edges; with ``undirected``, of max(A, A^T)."""
        counts = csr_array((np.ones(len(source)), (source, target)), shape=(nodes, nodes))
        if undirected:
            counts = csr_array(counts.maximum(counts.T))
        counts.data /= np.repeat(counts.sum(axis=1), np.diff(counts.indptr))
        return cls(counts.indptr.astype(np.int64), counts.indices.astype(np.int64), counts.data)

    @classmethod
    def counted_dense(cls, source: Ids, target: Ids, nodes: int, undirected: bool) -> _Steps:
        """The same numbers, of few nodes in less time."""
        counts = np.bincount(source * nodes + target, minlength=nodes * nodes).reshape(nodes, nodes)
        if undirected:
            counts = np.maximum(counts, counts.T)
        row, indices = np.divmod(np.flatnonzero(counts), nodes)
        indptr = starts_of(np.bincount(row, minlength=nodes))
        return cls(indptr, indices, counts[row, indices] / counts.sum(axis=1)[row])

    def of_graph(self, first: int, end: int) -> csr_array:
        """The rows and columns of some nodes."""
        begin, last = self.indptr[[first, end]]
        some = self.data[begin:last], self.indices[begin:last] - first, self.indptr[first : end + 1] - begin
        return csr_array(some, shape=(end - first, end - first))


@dataclass(frozen=True, eq=False)
class Walks:
    """The steps of all graphs.

    Attributes:
        graphs: the graphs.
        steps: P = D^-1 A, where A counts edges and rows of nodes without an edge are zero.
        back: (g,) whether A of a graph is symmetric.
    """

    graphs: Graphs
    steps: _Steps
    back: NDArray[np.bool_]

    @classmethod
    def of(cls, graphs: Graphs, undirected: bool) -> Walks:
        """The steps; with ``undirected``, max(A, A^T) in place of A."""
        nodes = int(graphs.start[-1])
        source, target = graphs.edges.T
        mirrored = source != target
        if graphs.directed.any():
            mirrored &= ~np.repeat(graphs.directed, np.diff(graphs.edge_start))
        both = np.concatenate([source, target[mirrored]]), np.concatenate([target, source[mirrored]])
        counted = _Steps.counted_dense if nodes <= _TABLE else _Steps.counted
        return cls(graphs, counted(*both, nodes, undirected), ~graphs.directed | undirected)

    def returns(self, steps: int, estimate: _Estimate | None = None) -> NDArray[np.float32]:
        """(T, steps) diagonals of P, P^2, ... of each graph, from half of the powers.

        diag(P^(a+b)) is the row sum of the elementwise product of P^a and the transpose of P^b.

        Args:
            steps: how many.
            estimate: what computes those of a graph of more than 500 nodes, by its number; None for exact ones.
        """
        result = np.empty((int(self.graphs.start[-1]), steps), dtype=np.float32)
        by_device = chosen_device() is not None
        largest, sizes = device.LARGEST if by_device and estimate is None else _LARGE, self.graphs.sizes
        if by_device:
            for block in self._blocks(largest):
                result[block.nodes] = device.returns(block.squares, steps)
        elif _returns.pays(OF_A_LIST + steps * int(np.square(sizes[sizes <= _LARGE]).sum()) // 8):
            most = int(sizes[sizes <= _LARGE].max(initial=0))
            room, turned = np.empty(-(-steps // 2) * most * most), np.empty(most * most)
            _returns(*self.steps, self.graphs.start, _LARGE, steps, room, turned, np.empty(most), result)
        else:
            for block in self._blocks(_LARGE):
                result[block.nodes] = block.returns(steps)
        for graph in np.flatnonzero(self.graphs.sizes > largest).tolist():
            a, b = self.graphs.start[graph : graph + 2]
            result[a:b] = _of_large(*self.one(graph), steps) if estimate is None else estimate(self, graph)[0]
        return result

    def one(self, graph: int) -> tuple[csr_array, bool]:
        """P of a graph; if A is symmetric, S = D^-1/2 A D^-1/2, whose powers have the same diagonals. Which of both."""
        walk, symmetric = self.steps.of_graph(*self.graphs.start[graph : graph + 2]), bool(self.back[graph])
        if symmetric:
            even = np.sqrt(walk.data * walk.T.tocsr().data)
            walk = csr_array((even, walk.indices, walk.indptr), shape=walk.shape)
        return walk, symmetric

    def powers(self, steps: int) -> Column:
        """I, P, P^2, ... of each pair, float64 (steps); pairs that no such walk joins share a row of zeros.

        They are rounded by :func:`structpe.encodings.columns.significant` while they are in the cache: all of them
        afterwards would take longer than to compute them.
        """
        graphs = self.graphs
        pairs, count = int(graphs.pair_start[-1]), len(graphs.sizes)
        if not _powers.pays(OF_A_LIST + steps * pairs // 2):
            found = OwnValues(graphs, np.zeros(steps, dtype=np.float64))
            for block in self._blocks(None):
                values, there = block.powers(steps)
                found.add(block.members, significant(values), there)
            return found.column()
        values = np.empty((pairs, steps), dtype=np.float64)  # memory that is not written to is not taken
        index, counts = np.empty(pairs, dtype=np.uint32), np.empty(count, dtype=np.int64)
        room = np.empty(steps * int(np.square(graphs.sizes).max(initial=0)))
        _powers(*self.steps, graphs.start, room, values, index, counts)
        return column_of(graphs, values[: counts.sum()], index, counts)

    def _blocks(self, largest: int | None) -> Iterator[_Block]:
        """Graphs of the same size, some at a time, up to the largest size."""
        sizes = self.graphs.sizes
        for members in groups(sizes, device.CELLS if chosen_device() else _CELLS):
            if largest is None or sizes[members[0]] <= largest:
                yield _Block.of(self.graphs, self.steps, members)


@dataclass(frozen=True, eq=False)
class _Block:
    """Some graphs of one size.

    Attributes:
        members: (b,) which graphs.
        nodes: (b, n) their nodes.
        walk: (b n, n) P of each, one below the other.
        step: (b n, b n) the same, each in its columns.
    """

    members: Ids
    nodes: Ids
    walk: Floats
    step: csr_array

    @classmethod
    def of(cls, graphs: Graphs, steps: _Steps, members: Ids) -> _Block:
        size, start = int(graphs.sizes[members[0]]), graphs.start[members]
        nodes = start[:, None] + np.arange(size)
        rows = nodes.reshape(-1)
        first = steps.indptr[rows]
        lengths = steps.indptr[rows + 1] - first
        entries, row = ranges(first, lengths), np.repeat(np.arange(len(rows)), lengths)
        own, weights = steps.indices[entries] - start[row // size], steps.data[entries]
        walk = np.zeros((len(rows), size))
        walk[row, own] = weights
        step = csr_array((weights, own + row // size * size, starts_of(lengths)), shape=(len(rows), len(rows)))
        return cls(members, nodes, walk, step)

    @property
    def squares(self) -> Floats:
        """(b, n, n) P of each."""
        return self.walk.reshape(*self.nodes.shape, -1)

    def returns(self, steps: int) -> Floats:
        """(b, n, steps)."""
        half, squares = -(-steps // 2), (*self.nodes.shape, self.nodes.shape[1])
        powers = [self.walk]
        while len(powers) < half:
            powers.append(self.step @ powers[-1])
        last = np.ascontiguousarray(powers[-1].reshape(squares).swapaxes(1, 2))
        near = [np.einsum("bii->bi", power.reshape(squares)) for power in powers]
        # Products are added in the order of the kernel, one after the other: einsum's sums are other ones at the end.
        far = [(last * power.reshape(squares)).sum(axis=1) for power in powers[: steps - half]]
        return np.stack([*near, *far], axis=-1)

    def powers(self, steps: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """(b, n, n, steps) I, P, P^2, ..., and (b, n, n) which pairs a walk joins."""
        (b, n), power = self.nodes.shape, self.walk
        values, reached = np.zeros((b, n, n, steps), dtype=np.float64), np.zeros((b, n, n))
        values[:, np.arange(n), np.arange(n), 0] = 1
        for step in range(1, steps):
            power = power if step == 1 else self.step @ power
            values[..., step] = power.reshape(b, n, n)
            reached += values[..., step]
        return values, (reached > 0) | np.eye(n, dtype=np.bool_)


def _of_large(walk: csr_array, symmetric: bool, steps: int) -> NDArray[np.float32]:
    """(n, steps) returns in one large graph, from some of its nodes at a time.

    A symmetric matrix S takes half of the powers: diag(S^(2k)) is the row sum of S^k * S^k, and diag(S^(2k + 1)) that
    of S^k * S^(k + 1).
    """
    size, last = walk.shape[0], (steps - 1) // 2 * 2
    result = np.empty((size, steps), dtype=np.float32)
    ends = np.zeros((2, size, _TARGETS) if symmetric else (2, 0, 0))
    if _walk.pays(steps * size * (size + walk.nnz) // _TARGETS):
        room, reached = np.zeros((2, size, _TARGETS)), np.zeros(size, dtype=np.int64)
        lines = np.empty((3, _TARGETS))
        _walk(*_places(walk), *_places(walk.T.tocsr()), symmetric, *room, reached, *lines, ends, result)
    else:
        _walk_by_scipy(walk, symmetric, ends, result)
    if symmetric:
        result[:, last:] = ends[: steps - last].sum(axis=2).T
    return result


def _places(matrix: csr_array) -> tuple[Array, Array, Array]:
    return matrix.indptr, matrix.indices.astype(np.uint32), matrix.data  # unsigned: not looked at from the end


def _walk_by_scipy(walk: csr_array, symmetric: bool, ends: Floats, result: Array) -> None:
    """As :func:`_walk`, in the same order."""
    size, steps = result.shape
    for first in range(0, size, _TARGETS):
        nodes = np.arange(first, min(first + _TARGETS, size))
        power, number, stop = np.zeros((size, len(nodes))), np.arange(len(nodes)), first + len(nodes)
        power[nodes, number] = 1
        for step in range(0, steps, 2 if symmetric else 1):
            if symmetric and step + 2 >= steps:
                before, power = power[first:], walk[first:] @ power
                for end, products in zip(ends, (power * before, power * power), strict=True):
                    end[nodes, 0] += products.sum(axis=0)
                    end[stop:, : len(nodes)] += products[len(nodes) :]
                continue
            before, power = power, walk @ power
            if not symmetric:
                result[nodes, step] = power[nodes, number]
                continue
            result[nodes, step] = (power * before).sum(axis=0)
            result[nodes, step + 1] = (power * power).sum(axis=0)


_FEW = 5
"""Numbers of a matrix, one in so many at the most, that are added to their places one by one."""


@compiled
def _clear(reached: Ids, power: Floats, other: Floats) -> None:
    for i in range(len(reached)):
        if reached[i]:
            reached[i] = 0
            for j in range(power.shape[1]):
                power[i, j] = other[i, j] = 0.0


@compiled
def _walk(
    indptr: Array,
    indices: Array,
    data: Array,
    ahead: Array,
    onward: Array,
    shares: Array,
    symmetric: bool,
    power: Floats,
    other: Floats,
    reached: Ids,
    row: Floats,
    near: Floats,
    far: Floats,
    ends: Floats,
    result: Array,
) -> None:
    """Columns of the powers for some nodes at a time, in the rows that walks of this length reach.

    The first matrix is given with its transpose: ``ahead``, ``onward`` and ``shares``. Both matrices (n, width) of
    numbers are zero before and after; ``row``, ``near`` and ``far`` are room for a row. As long as few numbers are not
    zero, each goes to its places; then rows are summed, in the same order.

    The last power of a symmetric matrix is needed on one side of its diagonal only: its numbers count for the node of
    the column and, in ``ends``, for that of the row.
    """
    size, steps, width = result.shape[0], result.shape[1], power.shape[1]
    for first in range(0, size, width):
        count, length = min(width, size - first), 0
        for j in range(count):
            power[first + j, j], reached[first + j] = 1.0, 1
        numbers = count
        for step in range(0, steps, 2 if symmetric else 1):
            length += 1
            few = _reach(ahead, onward, length, reached) * width > _FEW * numbers
            if few:
                _spread(ahead, onward, shares, power, other, reached)
                numbers = 0
            for j in range(width):
                near[j] = far[j] = 0.0
            half = symmetric and step + 2 >= steps
            for i in range(first if half else 0, size):
                if not reached[i]:
                    continue
                if not few:
                    _add_rows(indptr, indices, data, i, power, row)
                for j in range(width):
                    if few:
                        row[j] = other[i, j]
                        numbers += row[j] != 0.0
                    else:
                        other[i, j] = row[j]
                _add_products(row, power[i], near, far)
                if half and i >= first + count:
                    _add_products(row, power[i], ends[0, i], ends[1, i])
            for j in range(count):
                if half:
                    ends[0, first + j, 0] += near[j]
                    ends[1, first + j, 0] += far[j]
                elif symmetric:
                    result[first + j, step], result[first + j, step + 1] = near[j], far[j]
                else:
                    result[first + j, step] = other[first + j, j]
            power, other = other, power
        _clear(reached, power, other)


@compiled
def _add_products(row: Floats, before: Floats, near: Floats, far: Floats) -> None:
    for j in range(len(row)):
        near[j] += row[j] * before[j]
        far[j] += row[j] * row[j]


@compiled
def _reach(ahead: Array, onward: Array, length: int, reached: Ids) -> int:
    """Mark the nodes that a walk reaches by its next step; how many were reached so far."""
    count = 0
    for i in range(len(reached)):
        if reached[i]:
            count += 1
        if reached[i] == length:
            for p in range(ahead[i], ahead[i + 1]):
                if not reached[onward[p]]:
                    reached[onward[p]] = length + 1
                    count += onward[p] < i
    return count


@compiled
def _spread(ahead: Array, onward: Array, shares: Array, power: Floats, other: Floats, reached: Ids) -> None:
    """The product, number by number."""
    for i in range(len(reached)):
        if reached[i]:
            for j in range(other.shape[1]):
                other[i, j] = 0.0
    for i in range(len(reached)):
        if reached[i]:
            for j in range(power.shape[1]):
                number = power[i, j]
                if number != 0.0:
                    for p in range(ahead[i], ahead[i + 1]):
                        other[onward[p], j] += shares[p] * number


@compiled
def _add_rows(indptr: Array, indices: Array, data: Array, i: int, power: Floats, row: Floats) -> None:
    """Row i of the product: four rows at a time, as each sum that is stored and read again takes as long as a row.

    A row of its own is summed by vector operations, as it does not overlap with others.
    """
    p, end = indptr[i], indptr[i + 1]
    for j in range(len(row)):
        row[j] = 0.0
    while p + 4 <= end:
        one, two = data[p], data[p + 1]
        three, four = data[p + 2], data[p + 3]
        a, b = power[indices[p]], power[indices[p + 1]]
        c, d = power[indices[p + 2]], power[indices[p + 3]]
        for j in range(len(row)):
            row[j] = row[j] + one * a[j] + two * b[j] + three * c[j] + four * d[j]
        p += 4
    while p < end:
        weight, before = data[p], power[indices[p]]
        for j in range(len(row)):
            row[j] += weight * before[j]
        p += 1


@compiled
def _returns(
    indptr: Ids, indices: Ids, data: Floats, start: Ids, largest: int, steps: int,
    room: Floats, turned: Floats, total: Floats, result: Array,
) -> None:  # fmt: skip
    """All graphs up to a size. There is room for half of the powers of the largest, for one, and for a row."""
    half = (steps + 1) // 2
    for g in range(len(start) - 1):
        a, n = start[g], start[g + 1] - start[g]
        if n > largest:
            continue
        powers, last = room[: half * n * n].reshape(half, n, n), turned[: n * n].reshape(n, n)
        for k in range(half):
            for i in range(n):
                at = powers[k, i]
                for j in range(n):
                    at[j] = 0.0
                for p in range(indptr[a + i], indptr[a + i + 1]):
                    if k == 0:
                        at[indices[p] - a] = data[p]
                        continue
                    before, weight = powers[k - 1, indices[p] - a], data[p]
                    for j in range(n):
                        at[j] += weight * before[j]
                result[a + i, k] = at[i]
        for i in range(n):
            for j in range(n):
                last[j, i] = powers[half - 1, i, j]
        for k in range(steps - half):
            for i in range(n):
                total[i] = 0.0
            for j in range(n):
                one, other = last[j], powers[k, j]
                for i in range(n):  # all sums at once: the sum of one node cannot be vectorised
                    total[i] += one[i] * other[i]
            for i in range(n):
                result[a + i, half + k] = total[i]


@compiled
def _powers(
    indptr: Ids, indices: Ids, data: Floats, start: Ids, room: Floats, values: Array, index: Array, counts: Ids
) -> None:
    """All graphs. There is room for the powers of the largest."""
    steps, row, pair = values.shape[1], 0, 0
    for g in range(len(start) - 1):
        a, n, first = start[g], start[g + 1] - start[g], row
        pairs, lacking = n * n, False
        flat = room[: steps * pairs]
        powers, cells = flat.reshape(steps, n, n), flat.reshape(steps, pairs)
        for q in range(len(flat)):
            flat[q] = 0.0
        for i in range(n):
            powers[0, i, i] = 1.0
        for k in range(1, steps):
            for i in range(n):
                at = powers[k, i]
                for p in range(indptr[a + i], indptr[a + i + 1]):
                    before, weight = powers[k - 1, indices[p] - a], data[p]
                    for j in range(n):
                        at[j] += weight * before[j]
        # As `significant`: all numbers are rounded here, where they are in the cache.
        for q in range(len(flat)):
            high = flat[q] * SPLIT
            flat[q] = high - (high - flat[q])
        for q in range(pairs):
            total = 0.0
            for k in range(steps):
                values[row, k] = cells[k, q]
                total += cells[k, q]
            index[pair + q] = row - first
            if total > 0:
                row += 1
            else:  # the next pair overwrites the row
                index[pair + q], lacking = pairs, True
        if lacking:  # pairs without a walk share the row of zeros behind the others
            for q in range(pair, pair + pairs):
                if index[q] == pairs:
                    index[q] = row - first
            for k in range(steps):
                values[row, k] = 0.0
            row += 1
        pair, counts[g] = pair + pairs, row - first


_SECONDS = 1e-9
"""Per start, edge (or node) and step on a large graph: 0.5 to 1.0 on random graphs of 5,000 to 20,000 nodes."""


@dataclass(frozen=True)
class RandomWalk(OfNodes, name="random-walk"):
    """Random walks: the probability of a return after 1, 2, ... steps.

    p_u = [(P)_uu, (P^2)_uu, ..., (P^steps)_uu] with P = D^-1 A: float32 (steps).

    (Dwivedi et al. 2022, LSPE; Rampasek et al. 2022, GraphGPS.) A counts edges, each of several parallel ones and each
    self-loop once; D is its row sum, the out-degree in a directed graph. Rows of nodes without an outgoing edge are
    zero, and so are the values of isolated nodes. LSPE writes A D^-1, whose powers have the same diagonals if A is
    symmetric. All units of a node have its vector.

    Walks begin at each node and follow all edges, so a large graph takes time nodes x edges x steps. If this would take
    longer than ``minutes``, by an estimate for one core, an error is raised before it begins.

    With ``probes`` m, values of graphs with more than 500 nodes are estimated in time edges x steps x m, by a matrix R
    of m random signs for each node (Hutchinson 1990; Bekas et al. 2007, "An estimator for the diagonal of a matrix"):

        (P^(a + b))_uu ~ sum_c (P^a R)_uc ((P^b)^T R)_uc / m,  a = b or a = b + 1.

    The standard error is at most sqrt((|P^a_u.|^2 |P^b_.u|^2 + (P^(a + b))_uu^2) / m). If A is symmetric, this is
    sqrt(2 / m) of the value of an even number of steps (9 % with m = 256), and for an odd one of the mean of its
    neighbours at most. :meth:`errors` measures it for each value; those of all nodes may be in common, as walks get
    long. The first steps are exact, as many as sparse
    powers of some 17 million products give: 4 of 100,000 nodes with 10 neighbours each. Estimates below zero become 0.
    Signs are drawn by NumPy's default generator from ``seed`` for each structure, over nodes in reading order; without
    an order, by number, so another numbering gives another estimate.

    All values of a directed graph without cycles are zero, unless directions are ignored. Nodes that an automorphism
    exchanges have the same vector.

    Args:
        steps: number of steps; computed in float64.
        undirected: ignore directions: max(A, A^T) instead of A.
        minutes: time limit for one graph, by an estimate; does not change values.
        probes: m, 2 or more; None for exact values.
        seed: seed of the generator of signs.
    """

    real = True

    steps: int = 16
    undirected: bool = False
    minutes: int = 10
    probes: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_sizes(self, steps=self.steps, minutes=self.minutes)
        if self.probes is not None:
            check_sizes(self, probes=self.probes)
            if self.probes < 2:
                raise EncodingError(f"encoding {self.name!r}: probes is 1; give 2 or more, or None for exact values")
        if self.seed < 0:
            raise EncodingError(f"encoding {self.name!r}: the seed is {self.seed}; give 0 or more")
        if self.seed and self.probes is None:
            raise EncodingError(f"encoding {self.name!r}: a seed without probes has no effect; give probes, or no seed")

    def of_nodes(self, graphs: Graphs, structures: Sequence[Structure]) -> Array:
        self._check_time(structures, graphs)
        return Walks.of(graphs, self.undirected).returns(self.steps, self._estimate(structures))

    def errors(self, structure: Structure) -> NDArray[np.float32]:
        """(r, steps) the standard error of each value of a structure; 0 for those that are exact.

        They are measured over the probes, and take as long as the values.
        """
        graphs = Graphs.of([structure])
        self._check_time([structure], graphs)
        found, estimate = np.zeros((structure.size, self.steps)), self._estimate([structure])
        if estimate is not None and structure.size > _LARGE:
            found = estimate(Walks.of(graphs, self.undirected), 0)[1]
        return of_units(structure, found).astype(np.float32)

    def _estimate(self, structures: Sequence[Structure]) -> _Estimate | None:
        if (probes := self.probes) is None:
            return None
        return lambda walks, graph: estimated(
            *walks.one(graph), self.steps, probes, self.seed, ranks(structures[graph])
        )

    def _check_time(self, structures: Sequence[Structure], graphs: Graphs) -> None:
        nodes = int(graphs.start[-1])
        if _SECONDS / 60 * nodes * (nodes + 2 * len(graphs.edges)) * self.steps <= self.minutes:
            return  # all of them together, so each
        edges = np.diff(graphs.edge_start) * np.where(graphs.directed & (not self.undirected), 1, 2)
        vectors = graphs.sizes if self.probes is None else np.minimum(graphs.sizes, self.probes)
        minutes = _SECONDS / 60 * vectors * (graphs.sizes + edges) * self.steps
        for which in np.flatnonzero(minutes > self.minutes)[:1]:
            least = math.ceil(minutes[which])
            rather = "probes: 256 for estimates within about 9 %" if self.probes is None else "fewer probes"
            raise self.error(
                structures[which],
                f"{self.steps} steps from each of {graphs.sizes[which]} nodes along {edges[which]} edges take about "
                f"{least} minutes, and {self.minutes} are allowed; take fewer steps, encode parts of the graph "
                f"(structpe.transforms.subgraph), give {rather}, or give minutes: {least} to allow it",
            )


@dataclass(frozen=True)
class RRWP(Encoding, name="rrwp"):
    """Relative random walks: the probability to get from one node to another in 0, 1, 2, ... steps.

    P_ts = [I, M, M^2, ..., M^(steps - 1)]_ts with M = D^-1 A: values (r, steps), float64.

    (Ma et al. 2023, GRIT.) M_ts is the probability of a step from the node of query t to that of key s. A counts edges,
    each of several parallel ones and each self-loop once; D is its row sum; rows of nodes without an outgoing edge are
    zero (as in :class:`RandomWalk`, which has the diagonals). In a directed structure walks follow directions. Units of
    one node have the value of the node with itself. Probabilities have 11 significant digits, so pairs that a
    symmetry exchanges have the same. Pairs that no walk of this length joins share a row of zeros, and each other pair
    of nodes has its own row.

    The authors' code lists pairs in the other order: its pair of source j and target i, over which i attends to j, has
    (M^k)_ij, as here.

    Args:
        steps: K, number of powers, including the identity: 8 in the code, 17 to 24 in its configurations.

    Raises:
        EncodingError: more than 20,000 / sqrt(steps) nodes: 7,071 with 8 steps.
    """

    arity = 2
    real = True
    version = 2

    steps: int = 8

    def __post_init__(self) -> None:
        check_sizes(self, steps=self.steps)

    def many(self, structures: Sequence[Structure]) -> Column:
        check_all_pairs(self, structures, self.steps)
        return Walks.of(Graphs.of(structures), undirected=False).powers(self.steps)


_ERRORS = 8
_LEAST = 1e-9  # below, the matrix is as good as singular


@dataclass(frozen=True)
class PersonalizedPageRank(Encoding, name="personalized-pagerank"):
    """Personalised PageRank: how often a walk that restarts at one node is at another.

    -log(P_ts + 10^-9), float64, with P = c (I - (1 - c) A D^-1)^-1: how rarely a walk from the key is at the query.

    The walk ignores directions of edges: A_ij = 1 if an edge joins i and j, and D is its column sum. With ``directed``
    it follows them: A_ij = 1 if an edge leads from j to i. At each step it restarts with probability c; P_ts is the
    share of time that a walk from s is at t. Only a restart leaves a node without edges to follow, so P_ss = c
    there. (Page et al. 1999; as in the code of Zuegner et al. 2021.) Units have the values of their nodes. P is rounded
    to about 12 decimals, fewer if c is small, so equivalent nodes have the same number; each pair that is not
    UNREACHABLE has its own row.

    Args:
        restart: c.
        threshold: pairs with a smaller P are UNREACHABLE; the authors use e^-5. None for no threshold.
        directed: whether the walk follows directions, as the authors' code does if it is given a directed matrix.

    Raises:
        EncodingError: c is not between 0 and 1, the threshold is negative, or there are more than 20,000 nodes.
    """

    arity = 2
    real = True
    version = 2
    codes = ("unreachable",)

    restart: float = 0.15
    threshold: float | None = 0.006737946999085467
    directed: bool = False

    def __post_init__(self) -> None:
        if not _LEAST <= self.restart < 1:
            raise EncodingError(
                f"encoding {self.name!r}: restart is {self.restart}; give a probability between 0 and 1"
            )
        if self.threshold is not None and not 0 <= self.threshold < math.inf:
            raise EncodingError(f"encoding {self.name!r}: threshold is {self.threshold}; give 0 or more, or None")

    def many(self, structures: Sequence[Structure]) -> Column:
        check_all_pairs(self, structures)
        graphs = Graphs.of(structures)
        found = OwnValues(graphs, np.array(float(UNREACHABLE)))
        most = np.inf if not self.threshold else -math.log(self.threshold)
        for members, linked in graphs.adjacencies(self.directed):
            rarity = self._rarity(linked)
            found.add(members, rarity, rarity <= most)
        return found.column()

    def _rarity(self, linked: NDArray[np.bool_]) -> NDArray[np.float64]:
        """(b, n, n) of adjacencies (source, target)."""
        walk = linked.swapaxes(1, 2) / np.maximum(linked.sum(axis=2), 1)[:, None]
        share = self.restart * np.linalg.inv(np.eye(linked.shape[1]) - (1 - self.restart) * walk)
        share = to_grid(share, _ERRORS * np.finfo(np.float64).eps / self.restart)
        rarity: NDArray[np.float64] = -np.log(np.maximum(share, 0.0) + 1e-9)
        return rarity


_SAME = 1e-9  # scores with a smaller relative difference are equal up to rounding


@dataclass(frozen=True)
class Intimacy(OfNodes, name="intimacy"):
    """Intimacy: the rank of a unit's node by its personalised PageRank from the root.

    rank(u): 1 + the number of nodes, except the root, with a higher intimacy to the root; 0 for the root.

    Intimacy is row ``root`` of S = c (I - (1 - c) D^-1/2 A D^-1/2)^-1, with A_ij = 1 if an edge joins i and j in either
    direction, and D its row sum (Zhang et al. 2020, section 3.1; their text normalises by columns, their code by rows
    and columns, as here). Nodes with the same intimacy have the same rank, so it does not depend on the numbering
    of nodes; in the code they have different ranks, by the order of sorting. All units of a node have its rank.

    The code ranks the k nodes of a context by their intimacy in the whole graph:
    :func:`structpe.transforms.parts.contexts`.

    Args:
        restart: c.

    Raises:
        EncodingError: the structure has no root, or c is not between 0 and 1.
    """

    restart: float = 0.15

    def __post_init__(self) -> None:
        if not 0 < self.restart < 1:
            raise EncodingError(f"encoding 'intimacy': restart is {self.restart}; give a probability between 0 and 1")

    def of_nodes(self, graphs: Graphs, structures: Sequence[Structure]) -> Array:
        for lacking in np.flatnonzero(graphs.roots < 0)[:1]:
            message = "the structure has no root to be near to; give Structure(root=...)"
            raise self.error(structures[lacking], message)
        check_matrices(self, int(graphs.sizes.max(initial=0)))
        result = np.empty(int(graphs.start[-1]), dtype=np.int64)
        for members, linked in graphs.adjacencies():
            places = graphs.start[members][:, None] + np.arange(linked.shape[1])
            result[places] = _ranks(self._scores(linked, graphs.roots[members]), graphs.roots[members])
        return result

    def _scores(self, linked: NDArray[np.bool_], roots: Ids) -> Floats:
        """(b, n) of (b, n, n) adjacencies."""
        scale = np.maximum(linked.sum(axis=2), 1) ** -0.5
        walk = scale[:, :, None] * linked * scale[:, None]
        start = self.restart * (np.arange(linked.shape[1]) == roots[:, None])
        scores: Floats = np.linalg.solve(np.eye(linked.shape[1]) - (1 - self.restart) * walk, start[..., None])
        return scores[..., 0]


def _ranks(scores: Floats, roots: Ids) -> Ids:
    """(b, n) ranks of scores; those of roots, which count as the highest, are 0."""
    np.put_along_axis(scores, roots[:, None], np.inf, axis=1)
    order = np.argsort(-scores, axis=1, kind="stable")
    falling = np.take_along_axis(scores, order, axis=1)
    falls = np.zeros(scores.shape, dtype=np.int64)
    falls[:, 1:] = np.arange(1, scores.shape[1]) * (falling[:, 1:] < falling[:, :-1] * (1 - _SAME))
    result = np.empty_like(falls)
    np.put_along_axis(result, order, np.maximum.accumulate(falls, axis=1), axis=1)
    return result


_VISITS = 1 << 18  # of the walks of a group of graphs


@dataclass(frozen=True)
class WalkKernel(Encoding, name="walk-kernel"):
    """The similarity of the random walks from two nodes.

    K_ts = <F_t, F_s> / (|F_t| |F_s|), F_tv how often random walks from the node of unit t visit node v: float64.

    Each of ``walks`` walks visits ``length`` nodes, including its start. Each step goes to a neighbour, ignoring
    directions, with equal probabilities; without neighbours a walk stays at its node. K is between 0 and 1, and 1 for a
    unit with itself, and has 11 significant digits. (Choromanski et al. 2022, GKAT; the authors' notebook uses 50 walks
    of 4 nodes.)

    Numpy's default generator starts from ``seed`` for each structure and draws the walks of nodes in reading order;
    without an order, of nodes by number, so another numbering gives another sample of the same distribution.

    Args:
        walks: number of walks from each node.
        length: number of nodes of each walk.
        seed: seed of the generator.
    """

    arity = 2
    real = True
    version = 2

    walks: int = 50
    length: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        check_sizes(self, walks=self.walks, length=self.length)
        if self.seed < 0:
            raise EncodingError(f"encoding 'walk-kernel': the seed is {self.seed}; give 0 or more")

    def many(self, structures: Sequence[Structure]) -> Column:
        check_all_pairs(self, structures)
        graphs, rank = Graphs.of(structures), ranks_of_all(structures)
        for structure in structures:
            self._check_visits(structure)
        most = int(graphs.sizes.max(initial=0)) * self.walks * (self.length - 1)
        drawn, found = np.random.default_rng(self.seed).random(most), OwnValues(graphs, np.array(0.0))
        for members, linked in graphs.adjacencies():
            size = linked.shape[1]
            order = np.argsort(rank[graphs.start[members][:, None] + np.arange(size)], axis=1)
            most = max(1, _VISITS // (size * self.walks * self.length))
            for first in range(0, len(members), most):
                some = slice(first, first + most)
                kernel = significant(kernel_of(self._draw(linked[some], order[some], drawn)))
                found.add(members[some], kernel, kernel > 0)
        return found.column()

    def _check_visits(self, structure: Structure) -> None:
        if (visits := structure.size * self.walks * self.length) > MOST_NODES**2:
            raise self.error(
                structure,
                f"the walks visit {visits} nodes, which take {visits / 2**27:.0f} GiB; {MOST_NODES**2} at most. "
                f"Take fewer or shorter walks, or encode parts of the graph",
            )

    def _draw(self, linked: NDArray[np.bool_], order: Ids, drawn: NDArray[np.float64]) -> Ids:
        """(b, n, walks, length) the nodes that the walks from each node visit, from its nodes in order (b, n)."""
        b, n = order.shape
        by_rank = linked[np.arange(b)[:, None, None], order[:, :, None], order[:, None]]
        by_rank[:, np.arange(n), np.arange(n)] |= ~by_rank.any(axis=2)
        degree = by_rank.sum(axis=2).reshape(-1)
        ends, first, base = np.nonzero(by_rank)[2], np.cumsum(degree) - degree, np.arange(b)[:, None] * n
        at = np.tile(np.repeat(np.arange(n), self.walks), (b, 1))
        visits = [at]
        for step in range(self.length - 1):
            share, row = drawn[step * at.shape[1] : (step + 1) * at.shape[1]], base + at
            at = ends[first[row] + (share * degree[row]).astype(np.int64)]
            visits.append(at)
        numbers = np.stack(visits, axis=-1).reshape(b, n, self.walks, self.length)
        result = np.empty_like(numbers)
        result[np.arange(b)[:, None], order] = order[np.arange(b)[:, None, None, None], numbers]
        return result


def kernel_of(walks: Ids) -> NDArray[np.float64]:
    """(..., n, n) K from the nodes (..., n, walks, length) that the walks from each node of a graph visit."""
    shape, n = walks.shape[:-2], walks.shape[-3]
    starts = np.repeat(np.arange(math.prod(shape)) * n, math.prod(walks.shape[-2:]))
    visits = np.bincount(starts + walks.reshape(-1), minlength=math.prod(shape) * n).reshape(*shape, n)
    products = visits.astype(np.float64) @ visits.swapaxes(-1, -2)  # of whole numbers, exact in any order of the sum
    own = np.sqrt(np.diagonal(products, axis1=-2, axis2=-1))
    kernel: NDArray[np.float64] = products / (own[..., :, None] * own[..., None, :])
    return kernel


@dataclass(frozen=True)
class HopOverlap(Encoding, name="hop-overlap"):
    """Overlaps of neighbourhoods: how many nodes are near both of two nodes.

    [|N_k(t) and N_l(s)| for k = 1..hops for l = 1..hops] of query t and key s: values (r, hops^2), float64.

    N_k(t) are the nodes at most k edges from the node of t, itself among them; edges have no direction. (The feature of
    GIST, "Graph Invariant Structural Trait", as its abstract says it; no code by its authors is known. They estimate
    the numbers by random sketches, here they are exact.) A position model of vectors per pair, such as ``mlp-bias``,
    makes a bias of it. Pairs whose neighbourhoods do not meet share a row of zeros, each other pair has its own.

    Args:
        hops: the largest k and l.

    Raises:
        EncodingError: more than 20,000 / hops nodes.
    """

    arity = 2
    real = True

    hops: int = 3

    def __post_init__(self) -> None:
        check_sizes(self, hops=self.hops)

    def many(self, structures: Sequence[Structure]) -> Column:
        check_all_pairs(self, structures, self.hops**2)
        graphs = Graphs.of(structures)
        found = OwnValues(graphs, np.zeros(self.hops**2))
        for members, linked in graphs.adjacencies():
            n = linked.shape[1]
            step, near = np.maximum(linked, np.eye(n)), [np.eye(n)[None]]
            for _ in range(self.hops):
                near.append(np.minimum(step @ near[-1], 1))
            counts = [k @ el for k in near[1:] for el in near[1:]]  # they are symmetric
            values = np.stack(counts, axis=-1)
            found.add(members, values, values[..., -1] > 0)
        return found.column()
