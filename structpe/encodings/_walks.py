"""Steps of random walks in many graphs at once: probabilities of returns, and from each node to each other.

Graphs of one size are one block: a sparse matrix with a small square per graph times a dense one, so that a product
takes time edges x nodes of a graph and one call. Shapes: b graphs of n nodes each, T nodes of all graphs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from structpe.encodings import _device
from structpe.encodings._encoded import Column
from structpe.encodings._fast import compiled, fast
from structpe.encodings._flat import ranges, starts_of
from structpe.encodings._graphs import Graphs
from structpe.encodings._own_values import OwnValues, column_of
from structpe.encodings._rounding import SPLIT, significant
from structpe.structure import Ids

__all__ = ["Walks"]

Floats = NDArray[np.float64]
Array = NDArray[Any]

_LARGE = 500  # above this number of nodes, a graph is walked in blocks of targets
_CELLS = 1 << 16  # of a dense matrix: half a dozen of them stay in the cache
_TARGETS = 128


@dataclass(frozen=True, eq=False)
class Walks:
    """The steps of all graphs.

    Attributes:
        graphs: the graphs.
        steps: (T, T) P = D^-1 A, where A counts edges and rows of nodes without an edge are zero.
        back: (g,) whether A of a graph is symmetric.
    """

    graphs: Graphs
    steps: csr_array
    back: NDArray[np.bool_]

    @classmethod
    def of(cls, graphs: Graphs, undirected: bool) -> Walks:
        """The steps; with ``undirected``, max(A, A^T) in place of A."""
        nodes = int(graphs.start[-1])
        source, target = graphs.edges.T
        mirrored = (source != target) & ~np.repeat(graphs.directed, np.diff(graphs.edge_start))
        both = np.concatenate([source, target[mirrored]]), np.concatenate([target, source[mirrored]])
        counts = csr_array((np.ones(len(both[0])), both), shape=(nodes, nodes))
        if undirected:
            counts = csr_array(counts.maximum(counts.T))
        counts.data /= np.repeat(counts.sum(axis=1), np.diff(counts.indptr))
        return cls(graphs, counts, ~graphs.directed | undirected)

    def returns(self, steps: int) -> NDArray[np.float32]:
        """(T, steps) diagonals of P, P^2, ... of each graph, from half of the powers.

        diag(P^(a+b)) is the row sum of the elementwise product of P^a and the transpose of P^b.
        """
        result = np.empty((int(self.graphs.start[-1]), steps), dtype=np.float32)
        largest = _device.LARGEST if _device.chosen() else _LARGE
        if _device.chosen():
            for block in self._blocks(largest):
                result[block.nodes] = _device.returns(block.squares, steps)
        elif fast():
            matrix = self.steps
            _returns(matrix.indptr, matrix.indices, matrix.data, self.graphs.start, _LARGE, steps, result)
        else:
            for block in self._blocks(_LARGE):
                result[block.nodes] = block.returns(steps)
        for graph in np.flatnonzero(self.graphs.sizes > largest):
            a, b = self.graphs.start[graph : graph + 2]
            walk = csr_array(self.steps[a:b, a:b])
            result[a:b] = _by_halves(walk, steps) if self.back[graph] else _one_by_one(walk, steps)
        return result

    def powers(self, steps: int) -> Column:
        """I, P, P^2, ... of each pair, float64 (steps); pairs that no such walk joins share a row of zeros.

        They are rounded by :func:`structpe.encodings._rounding.significant` while they are in the cache: all of them
        afterwards would take longer than to compute them.
        """
        graphs = self.graphs
        if not fast():
            found = OwnValues(graphs, np.zeros(steps, dtype=np.float64))
            for block in self._blocks(None):
                values, there = block.powers(steps)
                found.add(block.members, significant(values), there)
            return found.column()
        pairs, count = int(graphs.pair_start[-1]), len(graphs.sizes)
        values = np.empty((pairs, steps), dtype=np.float64)  # memory that is not written to is not taken
        index, counts = np.empty(pairs, dtype=np.uint32), np.empty(count, dtype=np.int64)
        _powers(self.steps.indptr, self.steps.indices, self.steps.data, graphs.start, values, index, counts)
        return column_of(graphs, values[: counts.sum()], index, counts)

    def _blocks(self, largest: int | None) -> Iterator[_Block]:
        """Graphs of the same size, some at a time, up to the largest size."""
        sizes = self.graphs.sizes
        for size in np.unique(sizes):
            if largest is None or size <= largest:
                cells = _device.CELLS if _device.chosen() else _CELLS
                same, most = np.flatnonzero(sizes == size), max(1, cells // int(size) ** 2)
                for first in range(0, len(same), most):
                    yield _Block.of(self.graphs, self.steps, same[first : first + most])


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
    def of(cls, graphs: Graphs, steps: csr_array, members: Ids) -> _Block:
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
        last = powers[-1].reshape(squares).swapaxes(1, 2).reshape(self.walk.shape)
        near = [np.einsum("bii->bi", power.reshape(squares)) for power in powers]
        far = [np.einsum("ij,ij->i", last, power).reshape(squares[:2]) for power in powers[: steps - half]]
        return np.stack([*near, *far], axis=-1)

    def powers(self, steps: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """(b, n n, steps) I, P, P^2, ..., and (b, n n) which pairs a walk joins."""
        (b, n), power = self.nodes.shape, self.walk
        values, reached = np.zeros((b, n * n, steps), dtype=np.float64), np.zeros(b * n * n)
        values[:, :: n + 1, 0] = 1
        for step in range(1, steps):
            power = power if step == 1 else self.step @ power
            values[..., step] = power.reshape(b, n * n)
            reached += power.reshape(-1)
        there = reached.reshape(b, n * n) > 0
        there[:, :: n + 1] = True
        return values, there


def _by_halves(walk: csr_array, steps: int) -> Floats:
    """(n, steps) returns in one large graph with symmetric A, by half of the powers of D^-1/2 A D^-1/2."""
    size, half = walk.shape[0], -(-steps // 2)
    even = csr_array((np.sqrt(walk.data * walk.T.tocsr().data), walk.indices, walk.indptr), shape=walk.shape)
    result = np.empty((size, steps))
    for nodes in _targets(size):
        powers = [even[nodes].toarray().T.copy()]
        while len(powers) < half:
            powers.append(even @ powers[-1])
        for step, power in enumerate(powers):
            result[nodes, step] = power[nodes, np.arange(len(nodes))]
            if half + step < steps:
                result[nodes, half + step] = np.einsum("ij,ij->j", powers[-1], power)
    return result


def _one_by_one(walk: csr_array, steps: int) -> Floats:
    """The same with directions: all powers."""
    result = np.empty((walk.shape[0], steps))
    for nodes in _targets(walk.shape[0]):
        arrive = walk[:, nodes].toarray()
        for step in range(steps):
            arrive = walk @ arrive if step else arrive
            result[nodes, step] = arrive[nodes, np.arange(len(nodes))]
    return result


def _targets(size: int) -> Iterator[Ids]:
    for first in range(0, size, _TARGETS):
        yield np.arange(first, min(first + _TARGETS, size))


@compiled
def _returns(indptr: Array, indices: Array, data: Array, start: Ids, largest: int, steps: int, result: Array) -> None:
    half, most = (steps + 1) // 2, 0
    for g in range(len(start) - 1):
        if start[g + 1] - start[g] <= largest:
            most = max(most, start[g + 1] - start[g])
    room, turned, total = np.empty(half * most * most), np.empty(most * most), np.empty(most)
    for g in range(len(start) - 1):
        a, n = start[g], start[g + 1] - start[g]
        if n > largest:
            continue
        powers, last = room[: half * n * n].reshape(half, n, n), turned[: n * n].reshape(n, n)
        for k in range(half):
            powers[k] = 0.0
            for i in range(n):
                at = powers[k, i]
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
            total[:n] = 0.0
            for j in range(n):
                one, other = last[j], powers[k, j]
                for i in range(n):  # all sums at once: the sum of one node cannot be vectorised
                    total[i] += one[i] * other[i]
            for i in range(n):
                result[a + i, half + k] = total[i]


@compiled
def _powers(indptr: Array, indices: Array, data: Array, start: Ids, values: Array, index: Array, counts: Array) -> None:
    steps, most, row, pair = values.shape[1], 0, 0, 0
    for g in range(len(start) - 1):
        most = max(most, start[g + 1] - start[g])
    room = np.empty(steps * most * most)
    for g in range(len(start) - 1):
        a, n, first = start[g], start[g + 1] - start[g], row
        powers = room[: steps * n * n].reshape(steps, n, n)
        powers[:] = 0.0
        for i in range(n):
            powers[0, i, i] = 1.0
        for k in range(1, steps):
            for i in range(n):
                at = powers[k, i]
                for p in range(indptr[a + i], indptr[a + i + 1]):
                    before, weight = powers[k - 1, indices[p] - a], data[p]
                    for j in range(n):
                        at[j] += weight * before[j]
        flat, cells, lacking = room[: steps * n * n], powers.reshape(steps, n * n), False
        for q in range(len(flat)):
            high = flat[q] * SPLIT
            flat[q] = high - (high - flat[q])
        for q in range(n * n):
            total = 0.0
            for k in range(steps):
                values[row, k] = cells[k, q]
                total += cells[k, q]
            index[pair + q] = row - first
            if total > 0:
                row += 1
            else:
                index[pair + q], lacking = n * n, True
        if lacking:
            for q in range(pair, pair + n * n):
                index[q] = min(index[q], row - first)
            values[row] = 0.0
            row += 1
        pair, counts[g] = pair + n * n, row - first
