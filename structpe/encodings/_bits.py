"""Shortest paths by sets of bits, for graphs of more than a few dozen nodes.

The targets that a node reaches in one step more are those that its neighbours reach so far: a bitwise or of words of 64
targets. Steps are counted for all pairs at once by a counter whose digits are words: until a pair is reached, each
step adds one. Shapes: r nodes (rows) of some graphs, w words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from structpe.encodings._flat import ranges, starts_of
from structpe.encodings._graphs import Graphs
from structpe.structure import Ids

__all__ = ["STEPS", "by_bits"]

Array = NDArray[Any]
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
