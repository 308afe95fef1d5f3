"""Searches of shortest paths, by queues that numba compiles and by sets of bits.

Targets that are reached are bits: those of a node after one step more are those of its neighbours after the steps so
far. Steps are counted for all bits at once, by a counter whose digits are words: until a target is reached, each step
adds one. Shapes: g graphs, T nodes of all graphs, n of one, r nodes (rows) of some graphs, w words of 64 targets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from structpe.encodings.columns import ranges, starts_of
from structpe.encodings.compiled import compiled
from structpe.encodings.graphs import Graphs
from structpe.structure import Ids

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = [
    "BYTES",
    "DIGITS",
    "STEPS",
    "WORDS",
    "Adjacent",
    "by_bits",
    "levels",
    "queues",
    "signs",
    "small_signs",
    "squares",
    "unpack",
]


Array = NDArray[Any]

WORDS = 8
"""How many words of 64 targets are searched at once: a line of the cache."""

DIGITS = 7
"""Of counters, which count to 64 at the least."""

BYTES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").view("<u8").reshape(-1)
"""(256,) the eight bits of a byte as eight bytes of a word."""


@dataclass(frozen=True, eq=False)
class Adjacent:
    """The neighbours of all nodes.

    Attributes:
        start: (g + 1,) the first node of each graph, and T.
        indptr: (T + 1,) where the neighbours of each node begin.
        indices: the neighbours, numbered within their graph.
    """

    start: Ids
    indptr: Ids
    indices: NDArray[np.int32]

    @classmethod
    def of(cls, graphs: Graphs, mirrored: NDArray[np.bool_]) -> Adjacent:
        """Of graphs, of which some (g,) are walked in both directions."""
        count = len(graphs.edges) + int(np.diff(graphs.edge_start)[mirrored].sum())
        indptr, indices = np.zeros(int(graphs.start[-1]) + 1, dtype=np.int64), np.empty(count, dtype=np.int32)
        _adjacent(graphs.start, graphs.edge_start, graphs.edges, mirrored, indptr, indices)
        return cls(graphs.start, indptr, indices)

    def steps_from(self, roots: Ids) -> Ids:
        """(T,) the length of the shortest path from the root (g,) of each graph, counted in it; -1 without a path."""
        result = np.full(len(self.indptr) - 1, -1)
        _steps(self.start, self.indptr, self.indices, roots, result)
        return result


@compiled
def _adjacent(
    start: Ids, edge_start: Ids, edges: Ids, mirrored: NDArray[np.bool_], indptr: Ids, indices: NDArray[np.int32]
) -> None:
    """Fill (T + 1,) where the neighbours of each node begin, and the neighbours, counted in their graph."""
    for g in range(len(start) - 1):
        for e in range(edge_start[g], edge_start[g + 1]):
            indptr[edges[e, 0] + 1] += 1
            if mirrored[g]:
                indptr[edges[e, 1] + 1] += 1
    for node in range(len(indptr) - 1):
        indptr[node + 1] += indptr[node]
    filled = indptr[:-1].copy()
    for g in range(len(start) - 1):
        first = start[g]
        for e in range(edge_start[g], edge_start[g + 1]):
            source, target = edges[e, 0], edges[e, 1]
            indices[filled[source]] = target - first
            filled[source] += 1
            if mirrored[g]:
                indices[filled[target]] = source - first
                filled[target] += 1


@compiled
def _steps(start: Ids, indptr: Ids, indices: NDArray[np.int32], roots: Ids, result: Ids) -> None:
    queue = np.empty(len(result), dtype=np.int64)
    for g in range(len(start) - 1):
        first, at, last = start[g], 0, 1
        queue[0] = first + roots[g]
        result[queue[0]] = 0
        while at < last:
            node = queue[at]
            at += 1
            for p in range(indptr[node], indptr[node + 1]):
                other = first + indices[p]
                if result[other] < 0:
                    result[other] = result[node] + 1
                    queue[last] = other
                    last += 1


@compiled
def squares(
    start: Ids, pairs: Ids, edge_start: Ids, ends: Array, mirrored: Array, most: int, spread: Array, left: Array,
    found: Array,
) -> None:  # fmt: skip
    """All pairs of each graph of at most ``most`` nodes, 64 targets at a time, a graph after the other.

    Args:
        start: (g + 1,) the first node of each graph.
        pairs: (g + 1,) the first pair of each.
        edge_start: (g + 1,) the first edge of each.
        ends: (E, 2) the edges, between nodes counted in their graph; unsigned, as they are then not compared with 0.
        mirrored: (g,) whether edges are walked in both directions.
        most: the number of nodes.
        spread: :data:`BYTES`.
        left: (g,) becomes True for larger graphs and for those with paths of more than 63 edges.
        found: (P,) the lengths, 255 where no path leads; those of graphs that are left mean nothing.
    """
    none, one, byte, line = np.uint64(0), np.uint64(1), np.uint64(255), np.empty(8, dtype=np.uint64)
    room, digits, numbers = np.empty((2, most), line.dtype), np.empty((7, most), line.dtype), line.view(np.uint8)
    for g in range(len(start) - 1):
        n = start[g + 1] - start[g]
        left[g] = n > most
        for first in range(0, 0 if left[g] else n, 64):
            last, level, moved, old, new = min(n, first + 64), 0, one, room[0, :n], room[1, :n]
            old[:] = none
            for j in range(first, last):
                old[j] = one << np.uint64(j - first)
            while moved and level < 64:
                level, digit, moved = level + 1, 0, none
                # One more step for the targets not reached yet: as in adding one to a binary number, each digit up to
                # the lowest one of `level` flips, for all targets at once.
                while (level >> digit) << digit == level:
                    mine, known = digits[digit, :n], level != 1 << digit
                    for i in range(n):
                        mine[i] = (mine[i] if known else none) ^ ~old[i]
                    digit += 1
                new[:] = old
                for e in range(edge_start[g], edge_start[g + 1]):
                    new[ends[e, 0]] |= old[ends[e, 1]]
                    if mirrored[g]:
                        new[ends[e, 1]] |= old[ends[e, 0]]
                for i in range(n):
                    moved |= new[i] ^ old[i]
                old, new = new, old
            if moved:
                left[g] = True
                break
            for i in range(n):
                for c in range((last - first + 7) >> 3):
                    shift, digit = np.uint64(8 * c), 0
                    packed = spread[(~old[i] >> shift) & byte] * byte  # 255 where no path leads, else 0
                    while level >> digit:
                        packed |= spread[(digits[digit, i] >> shift) & byte] << np.uint64(digit)
                        digit += 1
                    line[c] = packed
                row = found[pairs[g] + i * n + first : pairs[g] + i * n + last]
                for j in range(len(row)):
                    row[j] = numbers[j]


@compiled
def small_signs(start: Ids, pairs: Ids, left: NDArray[np.bool_], lengths: Array, result: Array) -> None:
    """As :func:`signs`, for all graphs that are not left, flat, and in place: both arrays are of eight bits."""
    for g in range(len(start) - 1):
        n, at = start[g + 1] - start[g], pairs[g]
        for i in range(0 if left[g] else n):
            for j in range(i + 1):
                to, fro = np.int64(lengths[at + i * n + j]), np.int64(lengths[at + j * n + i])
                if to == fro:
                    result[at + i * n + j] = result[at + j * n + i] = min(to, 127)
                else:
                    nearer = min(to, fro)
                    result[at + i * n + j] = nearer if to == nearer else -nearer
                    result[at + j * n + i] = nearer if fro == nearer else -nearer


@compiled
def levels(
    indptr: Ids, indices: NDArray[np.int32], node: int, first: int, most: int, old: Array, new: Array, digits: Array
) -> int:
    """Search the paths to WORDS words of targets of one graph; the number of steps, or -1 if there would be more.

    Args:
        indptr: (T + 1,) where the neighbours of each node begin.
        indices: the neighbours, counted in their graph.
        node: the first node of the graph.
        first: the first target.
        most: how many steps are made at the most.
        old: (n, WORDS) room; in the end the targets that are reached.
        new: the same, both empty.
        digits: (DIGITS, n, WORDS) empty; in the end the steps to each target.
    """
    # Two arrays take turns, so each step reads what the one before has found. A node that has reached all targets
    # (`done` is 1) is copied once more, until both hold it (2), and is then left out.
    n, one, here, there = len(old), np.uint64(1), old, new
    full, done = np.zeros(8, dtype=np.uint64), np.zeros(n, dtype=np.uint8)
    for j in range(first, min(n, first + 512)):
        old[j, (j - first) >> 6] |= one << np.uint64((j - first) & 63)
        full[(j - first) >> 6] |= one << np.uint64((j - first) & 63)
    for level in range(1, most + 2):
        moved = False
        for i in range(n):
            if done[i] == 2:  # both arrays hold it
                continue
            for w in range(8):
                there[i, w] = here[i, w]
            if done[i] == 1:
                done[i] = 2
                continue
            digit = 0
            # One more step for the targets not reached yet: as in adding one to a binary number, each digit up to the
            # lowest one of `level` flips, for all targets at once.
            while (level >> digit) << digit == level:
                for w in range(8):
                    digits[digit, i, w] ^= ~here[i, w]
                digit += 1
            for p in range(indptr[node + i], indptr[node + i + 1]):
                other = indices[p]
                for w in range(8):
                    there[i, w] |= here[other, w]
            left = same = np.uint64(0)
            for w in range(8):
                left |= there[i, w] ^ full[w]
                same |= there[i, w] ^ here[i, w]
            moved |= same != 0
            done[i] = left == 0
        here, there = there, here
        if not moved:
            return level  # of the targets that no path reaches; both arrays are alike
    return -1


@compiled
def unpack(reached: Array, digits: Array, steps: int, first: int, spread: Array, result: Array) -> None:
    """From what :func:`levels` found to a part of the lengths (n, n) of a graph, from the first target on."""
    n, end = len(reached), min(len(reached), first + 512)
    line, byte = np.zeros(64, dtype=np.uint64), np.uint64(255)
    lengths = line.view(np.uint8)
    for i in range(n):
        for w in range(8):
            missing = ~reached[i, w]
            for c in range(8):
                shift = np.uint64(8 * c)
                packed = spread[(missing >> shift) & byte] * byte  # 255 where no path leads, else 0
                for digit in range(7):
                    if steps >> digit:
                        packed |= spread[(digits[digit, i, w] >> shift) & byte] << np.uint64(digit)
                line[8 * w + c] = packed
        for j in range(first, end):
            result[i, j] = lengths[j - first]


@compiled
def queues(indptr: Ids, indices: NDArray[np.int32], node: int, top: int, result: Array) -> bool:
    """Fill the lengths (n, n) of one graph by a search from each node; whether the dtype holds all of them.

    Its largest number, ``top``, stands for pairs without a path.
    """
    n, queue = len(result), np.empty(len(result), dtype=np.int32)
    for i in range(n):
        mine = result[i]
        mine[:] = top
        mine[i], queue[0] = 0, i
        at, last = 0, 1
        while at < last:
            here = queue[at]
            at += 1
            length = mine[here] + 1
            for p in range(indptr[node + here], indptr[node + here + 1]):
                if mine[indices[p]] == top:
                    if length >= top:
                        return False
                    mine[indices[p]] = length
                    queue[last] = indices[p]
                    last += 1
    return True


@compiled
def signs(top: int, there: Array, result: Array) -> None:
    """From lengths (n, n) to signed ones: that of the other direction, negative, where it is shorter.

    Pairs without a path, whose length is ``top``, keep their number.
    """
    for i in range(len(there)):
        for j in range(len(there)):
            to, fro = there[i, j], there[j, i]
            if to > fro:
                result[i, j] = -np.int64(fro)
            elif to < top:
                result[i, j] = to


Words = NDArray[np.uint64]

STEPS = 32
"""The longest path that is searched in this way: it takes time steps x edges x nodes, a queue edges x nodes."""

_WORDS = 8  # of the targets of a large graph that are searched at once
_ROOM = 1 << 15  # words of some graphs that are searched together
_SLOTS = 24  # neighbours of a node that are visited one after the other, those of all nodes at once
_LINES = 1 << 19  # lengths that are written at once


def by_bits(graphs: Graphs, steps: csr_array, members: Ids, results: Sequence[Array]) -> list[int]:
    """Fill the lengths (n, n), uint8, of some graphs; those with longer paths are returned, and theirs mean nothing.

    Args:
        graphs: the graphs.
        steps: (T, T) a step along each edge.
        members: which graphs.
        results: those of each graph, also of others.
    """
    long: list[int] = []
    for group in _groups(graphs.sizes, members):
        n, start = graphs.sizes[group], graphs.start[group]
        rows = _Rows.of(steps, ranges(start, n), np.repeat(start, n), np.repeat(np.arange(len(group)), n))
        squares = [results[i] for i in group.tolist()]
        most = int(n.max())
        for first in range(0, most, 64 * _WORDS):
            width = min(_WORDS, -(-(most - first) // 64))
            unfinished = rows.search(first, width, squares)
            if len(unfinished):
                long += group[unfinished].tolist()
                break
    return long


def _groups(sizes: Ids, members: Ids) -> Iterator[Ids]:
    """Graphs with as many words, some together; large ones alone."""
    for width in np.unique(words := -(-sizes[members] // 64)).tolist():
        same = members[words == width]
        if width > _WORDS:
            yield from same[:, None]
            continue
        parts = np.cumsum(sizes[same] * width) // _ROOM
        yield from np.split(same, np.flatnonzero(np.diff(parts)) + 1)


@dataclass(frozen=True, eq=False)
class _Rows:
    """The neighbours of nodes, of which those with most come first.

    Attributes:
        back: (r,) where each node went.
        local: (r,) the number of each row in its graph.
        graph: (r,) the graph of each row.
        slots: of the first neighbours, the second, ... of as many rows as have one.
        rest: further neighbours of the first rows.
        rest_start: where those of each row begin in ``rest``.
    """

    back: Ids
    local: Ids
    graph: Ids
    slots: list[Ids]
    rest: Ids
    rest_start: Ids

    @classmethod
    def of(cls, steps: csr_array, nodes: Ids, start: Ids, graph: Ids) -> _Rows:
        """From the nodes (r,) of some graphs, the first node of each one's graph, and the number of its graph."""
        first = steps.indptr[nodes].astype(np.int64)
        degree = steps.indptr[nodes + 1] - first
        order = np.argsort(-degree, kind="stable")
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        there = np.full(steps.shape[0], -1)
        there[nodes] = back
        first, degree = first[order], degree[order]
        slots = []
        for slot in range(min(int(degree.max(initial=0)), _SLOTS)):
            filled = int(np.searchsorted(-degree, -slot, side="left"))
            slots.append(there[steps.indices[first[:filled] + slot]])
        more = int(np.searchsorted(-degree, -_SLOTS, side="left"))
        rest = there[steps.indices[ranges(first[:more] + _SLOTS, degree[:more] - _SLOTS)]]
        rest_start = starts_of(degree[:more] - _SLOTS)[:-1]
        return cls(back, (nodes - start)[order], graph[order], slots, rest, rest_start)

    def search(self, first: int, width: int, results: Sequence[Array]) -> Ids:
        """Write the lengths to some words of targets from the first one on; the graphs with longer paths."""
        old = np.zeros((len(self.local), width), dtype=np.uint64)
        near = np.flatnonzero((self.local >= first) & (self.local < first + 64 * width))
        bit = self.local[near] - first
        old[near, bit >> 6] = np.uint64(1) << (bit & 63).astype(np.uint64)
        new, room, digits = np.empty_like(old), np.empty_like(old), list[Words]()
        for step in range(1, STEPS + 2):
            np.invert(old, out=room)
            for digit in range((step & -step).bit_length()):  # where a one is carried to
                if digit == len(digits):
                    digits.append(np.zeros_like(old))
                digits[digit] ^= room
            self._step(old, new, room)
            moved = old != new
            old, new = new, old
            if not moved.any():
                self._write(old, digits, first, results)
                return np.zeros(0, dtype=np.int64)
        unfinished = np.unique(self.graph[moved.any(axis=1)])
        self._write(old, digits, first, results)
        return unfinished

    def _step(self, old: Words, new: Words, room: Words) -> None:
        np.copyto(new, old)
        for slot in self.slots:
            np.take(old, slot, axis=0, out=room[: len(slot)], mode="clip")
            np.bitwise_or(new[: len(slot)], room[: len(slot)], out=new[: len(slot)])
        if len(self.rest):
            new[: len(self.rest_start)] |= np.bitwise_or.reduceat(old[self.rest], self.rest_start, axis=0)

    def _write(self, reached: Words, digits: Sequence[Words], first: int, results: Sequence[Array]) -> None:
        """From digits to numbers, some rows at a time."""
        sizes = [len(each) for each in results]
        width, start = 64 * reached.shape[1], starts_of(sizes).tolist()
        some = max(1, _LINES // width)
        lengths = np.empty((some if len(results) == 1 else len(self.back), width), dtype=np.uint8)
        for begin in range(0, len(self.back), some):
            rows = self.back[begin : begin + some]
            at = 0 if len(results) == 1 else begin
            lines = lengths[at : at + len(rows)]
            lines[:] = _bytes(reached[rows]) - np.uint8(1)  # 255 where no path leads
            for digit, word in enumerate(digits):
                lines |= _bytes(word[rows]) << np.uint8(digit)
            if len(results) == 1:
                end = min(sizes[0], first + width)
                results[0][begin : begin + some, first:end] = lines[:, : end - first]
        if len(results) > 1:
            for result, size, a in zip(results, sizes, start, strict=False):
                result[:] = lengths[a : a + size, :size]


def _bytes(words: Words) -> NDArray[np.uint8]:
    """(r, 64 w) each bit as a byte."""
    return np.unpackbits(words.astype("<u8", copy=False).view(np.uint8), axis=1, bitorder="little")
