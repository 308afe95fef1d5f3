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

from structpe.encodings.columns import narrow, ranges, starts_of
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
    "by_words",
    "grown",
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
        _steps(self.start, self.indptr, self.indices, roots, np.empty_like(result), result)
        return result


@compiled
def _adjacent(
    start: Ids, edge_start: Ids, edges: Ids, mirrored: NDArray[np.bool_], indptr: Ids, indices: NDArray[np.int32]
) -> None:
    """Fill (T + 1,) where the neighbours of each node begin, and the neighbours, counted in their graph."""
    for g in range(len(start) - 1):
        for e in range(edge_start[g], edge_start[g + 1]):
            indptr[edges[e, 0]] += 1
            if mirrored[g]:
                indptr[edges[e, 1]] += 1
    for node in range(len(indptr) - 1):
        indptr[node + 1] += indptr[node]
    # Each is where the neighbours of a node end, and moves down to where they begin.
    for g in range(len(start) - 1):
        first = start[g]
        for e in range(edge_start[g], edge_start[g + 1]):
            source, target = edges[e, 0], edges[e, 1]
            indptr[source] -= 1
            indices[indptr[source]] = target - first
            if mirrored[g]:
                indptr[target] -= 1
                indices[indptr[target]] = source - first


@compiled
def _steps(start: Ids, indptr: Ids, indices: NDArray[np.int32], roots: Ids, queue: Ids, result: Ids) -> None:
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
def _line(missing: int, room: Array, i: int, level: int, count: int, spread: Array, line: Array) -> None:
    """The steps from node i to ``count`` times eight targets, a byte each: 255 for those that are missing."""
    byte = np.uint64(255)
    for c in range(count):
        shift, digit = np.uint64(8 * c), 0
        packed = spread[(missing >> shift) & byte] * byte
        while level >> digit:
            packed |= spread[(room[2 + digit, i] >> shift) & byte] << np.uint64(digit)
            digit += 1
        line[c] = packed


@compiled
def squares(
    start: Ids, at: Ids, widths: Ids, edge_start: Ids, edges: Ids, mirrored: Array, left: Array, found: Array,
    spread: Array, room: Array, line: Array, numbers: Array, ends: Array,
) -> tuple[int, bool]:  # fmt: skip
    """All pairs of each graph for which there is room, 64 targets at a time, a graph after the other.

    The longest path of those that are done is returned, and whether a pair has none.

    Args:
        start: (g + 1,) the first node of each graph.
        at: (g + 1,) where the matrix of each begins.
        widths: (g,) of these matrices.
        edge_start: (g + 1,) the first edge of each.
        edges: (E, 2) the edges.
        mirrored: (g,) whether edges are walked in both directions.
        left: (g,) which graphs; those that are done become False, unless they are larger or have paths of more than 63
            edges.
        found: flat matrices: the lengths, 255 where no path leads; those of graphs that are left mean nothing.
        spread: :data:`BYTES`.
        room: (9, n) words; larger graphs are left.
        line: (8,) words.
        numbers: (64,) their bytes.
        ends: (e, 2) as many edges as a graph has at the most; unsigned, which are not compared with 0.
    """
    none, one, most = np.uint64(0), np.uint64(1), room.shape[1]
    longest, lacking = 0, none
    for g in range(len(start) - 1):
        n, count = start[g + 1] - start[g], edge_start[g + 1] - edge_start[g]
        left[g], mine = n > most and left[g], left[g] and n <= most
        for e in range(count if mine else 0):
            ends[e, 0], ends[e, 1] = edges[edge_start[g] + e, 0] - start[g], edges[edge_start[g] + e, 1] - start[g]
        for first in range(0, n if mine else 0, 64):
            last, level, moved = min(n, first + 64), 0, one
            old, new = room[0], room[1]
            for i in range(n):
                old[i] = one << np.uint64(i - first) if first <= i < last else none
            while moved and level < 64:
                level, digit, moved = level + 1, 0, none
                # One more step for the targets not reached yet: as in adding one to a binary number, each digit up to
                # the lowest one of `level` flips, for all targets at once.
                while (level >> digit) << digit == level:
                    its, known = room[2 + digit], level != 1 << digit
                    for i in range(n):
                        its[i] = (its[i] if known else none) ^ ~old[i]
                    digit += 1
                for i in range(n):
                    new[i] = old[i]
                for e in range(count):
                    new[ends[e, 0]] |= old[ends[e, 1]]
                    if mirrored[g]:
                        new[ends[e, 1]] |= old[ends[e, 0]]
                for i in range(n):
                    moved |= new[i] ^ old[i]
                old, new = new, old
            if moved:
                left[g] = True
                break
            longest, unused = max(longest, level - 1), np.uint64(64 - (last - first))
            for i in range(n):
                lacking |= (~old[i] << unused) >> unused
                _line(~old[i], room, i, level, (last - first + 7) >> 3, spread, line)
                row = found[at[g] + i * widths[g] + first : at[g] + i * widths[g] + last]
                for j in range(len(row)):
                    row[j] = numbers[j]
    return longest, lacking != none


@compiled
def _sorted_ends(edges: Ids, begin: int, end: int, node: int, n: int, first: Array, near: Array) -> None:
    """Fill ``near`` with the neighbours of each node of a graph, which begin at ``first``; all counted in the graph."""
    one, two = np.uint64(1), np.uint64(2)
    for i in range(n + 2):
        first[i] = 0
    for e in range(begin, end):
        first[np.uint64(edges[e, 0] - node) + two] += np.uint32(1)
        first[np.uint64(edges[e, 1] - node) + two] += np.uint32(1)
    for i in range(2, n + 2):
        first[i] += first[i - 1]
    for e in range(begin, end):
        a, b = np.uint64(edges[e, 0] - node), np.uint64(edges[e, 1] - node)
        near[first[a + one]] = b
        first[a + one] += np.uint32(1)
        near[first[b + one]] = a
        first[b + one] += np.uint32(1)


@compiled
def _shorten(words: Array, mine: int, theirs: int, width: int, steps: int) -> None:
    """A row becomes the minimum of itself and another one so many steps more, eight numbers below 128 at a time."""
    high, seven = np.uint64(0x8080808080808080), np.uint64(7)
    for w in range(width):
        old, more = words[mine + w], words[theirs + w] + steps
        less = ((old | high) - (more & ~high)) & ~more & high
        words[mine + w] = old ^ ((old ^ more) & (less | (less - (less >> seven))))


@compiled
def _largest(words: Array, mine: int, width: int, most: int, gaps: bool) -> int:
    """The larger ones of eight numbers, ``most``, and those of a row; if there are ``gaps``, its 127 become 255."""
    ones, high, seven = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080), np.uint64(7)
    for w in range(width):
        word = words[mine + w]
        gone = ((word + ones) & high) if gaps else np.uint64(0)
        words[mine + w] = word | gone
        here = word & ~(gone - (gone >> seven))
        less = ((here | high) - most) & high
        most ^= (most ^ here) & (less | (less - (less >> seven)))
    return most


@compiled
def _grow(n: int, first: Array, near: Array, words: Array, numbers: Array, order: Array, when: Array) -> int:
    """Fill the rows of one graph; the number of its connected parts."""
    none, one, three, line = np.uint64(0), np.uint64(1), np.uint64(3), np.uint64(16)
    ones, new, low = np.uint64(0x0101010101010101), np.uint32(1 << 31), np.uint64(0x7F7F7F7F7F7F7F7F)
    size, parts, width = none, 0, np.uint64((n + 7) >> 3)
    for i in range(n):
        when[i] = new
    for root in range(n):
        if when[root] != new:
            continue
        part, at, parts = size, size, parts + 1
        order[size], when[root], size = root, size, size + one
        while at < size:
            node, joined, far = np.uint64(order[at]), 0, False
            mine = node * line
            for p in range(np.uint64(first[node]), np.uint64(first[node + one])):
                other = np.uint64(near[p])
                if when[other] == new:
                    order[size], when[other], size = other, size, size + one
                elif when[other] < at:
                    joined, theirs = joined + 1, other * line
                    for w in range(width if joined == 1 else none):
                        more = words[theirs + w] + ones
                        words[mine + w] = more - ((more & ~low) >> np.uint64(7))  # 127 remains so
                    if joined > 1:
                        far |= joined > 2 or numbers[(mine << three) + other] > 3
                        _shorten(words, mine, theirs, width, ones)
            if not joined:
                for w in range(width):
                    words[mine + w] = low
                if n & 7:  # beyond the last node, 0: as if the root were there, too
                    words[mine + width - one] = low >> np.uint64(64 - 8 * (n & 7))
            numbers[(mine << three) + node] = 0
            for q in range(part, at):
                other = np.uint64(order[q])
                numbers[(other * line << three) + node] = numbers[(mine << three) + other]
            for q in range(part, at if far else part):
                other = np.uint64(order[q])
                _shorten(words, other * line, mine, width, ones * np.uint64(numbers[(mine << three) + other]))
            at += one
    return parts


@compiled
def grown(
    start: Ids, at: Ids, widths: Ids, edge_start: Ids, edges: Ids, mirrored: Array, left: Array, found: Array,
    words: Array, numbers: Array, near: Array, order: Array, when: Array, first: Array,
) -> tuple[int, bool]:  # fmt: skip
    """As :func:`squares`, of graphs of up to 127 nodes with few cycles, whose edges are walked in both directions.

    Nodes are added in the order of a search. The row of a node is that of a neighbour, one step more; only where it
    joins nodes that were more than two steps apart, a way through it may be shorter, and all rows are compared with it.
    Eight lengths are a word, each a number of seven bits, of which 127 means that no path leads.

    Args:
        start, at, widths, edge_start, edges, mirrored, left, found: as of :func:`squares`.
        words: room for 127 rows of 16 words.
        numbers: their bytes.
        near: room for twice as many numbers as there are edges, at most 190; those of 32 bits.
        order, when: room for a number of each node.
        first: room for two more.
    """
    longest, lacking = np.uint64(0), False
    line, three = np.uint64(16), np.uint64(3)
    for g in range(len(start) - 1):
        n, begin, end = start[g + 1] - start[g], edge_start[g], edge_start[g + 1]
        left[g] = n > 127 or end - begin > n + n // 2 or not mirrored[g]
        if left[g]:
            continue
        _sorted_ends(edges, begin, end, start[g], n, first, near)
        gaps = _grow(n, first, near, words, numbers, order, when) > 1
        lacking |= gaps
        width, most = np.uint64((n + 7) >> 3), np.uint64(0)
        for i in range(n):
            mine = np.uint64(i) * line
            most = _largest(words, mine, width, most, gaps)
            row = found[at[g] + i * widths[g] : at[g] + i * widths[g] + n]
            its = numbers[mine << three : (mine << three) + np.uint64(n)]
            for j in range(len(row)):
                row[j] = its[j]
        while most:
            longest, most = max(longest, most & np.uint64(255)), most >> np.uint64(8)
    return int(longest), lacking


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
    indptr: Ids, indices: NDArray[np.int32], node: int, first: int, most: int, old: Array, new: Array, digits: Array,
    full: Array, done: Array,
) -> int:  # fmt: skip
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
        full: (WORDS,) room, empty, for all targets.
        done: (n,) room, empty, bytes.
    """
    # Two arrays take turns, so each step reads what the one before has found. A node that has reached all targets
    # (`done` is 1) is copied once more, until both hold it (2), and is then left out.
    n, one = len(old), np.uint64(1)
    here, there = old, new
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
def unpack(
    reached: Array, digits: Array, steps: int, first: int, spread: Array, line: Array, lengths: Array, result: Array
) -> None:
    """From what :func:`levels` found to a part of the lengths (n, n) of a graph, from the first target on.

    There is room for 64 words (``line``), whose bytes are ``lengths``.
    """
    n, byte = len(reached), np.uint64(255)
    end = min(n, first + 512)
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
def queues(indptr: Ids, indices: NDArray[np.int32], node: int, top: int, queue: Array, result: Array) -> bool:
    """Fill the lengths (n, n) of one graph by a search from each node; whether the dtype holds all of them.

    Its largest number, ``top``, stands for pairs without a path. The queue is room for the nodes.
    """
    n, one = len(result), np.uint64(1)
    for i in range(n):
        mine = result[i]
        for j in range(n):
            mine[j] = top
        mine[i], queue[0] = 0, i
        at, last = np.uint64(0), one  # unsigned: not compared with 0
        while at < last:
            here = queue[at]
            at += one
            length = mine[here] + 1
            for p in range(indptr[node + here], indptr[node + here + 1]):
                other = indices[p]
                if mine[other] == top:
                    if length >= top:
                        return False
                    mine[other] = length
                    queue[last] = other
                    last += one
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


def _slots(first: Ids, degree: Ids, near: Ids) -> tuple[Ids, list[Ids], Ids, Ids]:
    """The rows, those with most neighbours first, and their neighbours, as in :class:`_Rows`.

    Args:
        first: (r,) where the neighbours of each row begin.
        degree: (r,) how many it has.
        near: the neighbours.
    """
    order = np.argsort(narrow(degree.max(initial=0) - degree), kind="stable")  # 16 bits are sorted by counting
    first, degree = first[order], degree[order]
    filled = np.searchsorted(-degree, -np.arange(_SLOTS + 1), side="left").tolist()  # rows with more than 0, 1, ...
    slots = [near[first[:count] + slot] for slot, count in enumerate(filled[:_SLOTS]) if count]
    hubs = filled[_SLOTS]
    rest = near[ranges(first[:hubs] + _SLOTS, degree[:hubs] - _SLOTS)]
    return order, slots, rest, starts_of(degree[:hubs] - _SLOTS)[:-1]


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
        order, slots, rest, rest_start = _slots(first, degree, steps.indices)
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        there = np.full(steps.shape[0], -1)
        there[nodes] = back
        return cls(back, (nodes - start)[order], graph[order], [there[each] for each in slots], there[rest], rest_start)

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


_AT_ONCE = 1 << 13  # words of some graphs that are searched together, all in the cache
_LONGEST = 63  # of paths in graphs that are searched together, as in `squares`
_EACH = 3  # after so many steps, words that are complete are left out


def by_words(graphs: Graphs, mirrored: NDArray[np.bool_], members: Ids, results: Sequence[Array]) -> list[int]:
    """As :func:`by_bits`, for small graphs: each word of targets of each node is a row, those of many graphs at once.

    Args:
        graphs: the graphs.
        mirrored: (g,) whether edges are walked in both directions.
        members: which graphs.
        results: those of each graph, also of others.
    """
    long: list[int] = []
    order = members[np.argsort(graphs.sizes[members], kind="stable")]
    cuts = np.cumsum(graphs.sizes[order] * _words(graphs.sizes[order])) // _AT_ONCE
    for some in np.split(order, np.flatnonzero(np.diff(cuts)) + 1) if len(order) else ():
        group, which = np.sort(some), np.zeros(len(graphs.sizes), dtype=np.bool_)
        which[group] = True
        rows = _WordRows(graphs.only(which), mirrored[group])
        long += group[rows.search()].tolist()
        rows.write([results[i] for i in group.tolist()])
    return long


def _words(sizes: Ids) -> Ids:
    """How many words of 64 targets graphs of these sizes have."""
    return -(-sizes // 64)


class _WordRows:
    """The words of targets of all nodes of some graphs, a row each; those of a node follow one another.

    Args:
        graphs: the graphs.
        mirrored: (g,) whether edges are walked in both directions.
    """

    def __init__(self, graphs: Graphs, mirrored: NDArray[np.bool_]) -> None:
        self.graphs, nodes = graphs, np.arange(int(graphs.start[-1]))
        self.words = np.repeat(_words(graphs.sizes), graphs.sizes)  # of each node
        self.row = starts_of(self.words)  # the first of each
        local, beyond = nodes - graphs.start[graphs.graph], graphs.sizes.astype(np.uint64) & np.uint64(63)
        self.reached: Words = np.zeros(int(self.row[-1]), dtype=np.uint64)
        # Targets after the last node of a graph count as reached, so that words become complete.
        full = np.where(beyond > 0, ~np.uint64(0) << beyond, np.uint64(0))
        self.reached[self.row[1:] - 1] = full[graphs.graph]
        self.reached[self.row[:-1] + (local >> 6)] |= np.uint64(1) << (local & 63).astype(np.uint64)
        self.left, self.digits = np.empty_like(self.reached), list[Words]()
        self.order, self.slots, self.rest, self.rest_start = self._near(mirrored)

    def _near(self, mirrored: NDArray[np.bool_]) -> tuple[Ids, list[Ids], Ids, Ids]:
        """The rows that each row reads, as of :func:`_slots`."""
        source, target = self.graphs.edges.T
        back = np.repeat(mirrored, np.diff(self.graphs.edge_start))
        source, target = np.concatenate([source, target[back]]), np.concatenate([target, source[back]])
        if len(self.reached) > len(self.words):
            many = self.words[source]
            source, target = ranges(self.row[source], many), ranges(self.row[target], many)
        degree = np.bincount(source, minlength=len(self.reached))
        return _slots(np.cumsum(degree) - degree, degree, target[np.argsort(narrow(source), kind="stable")])

    def search(self) -> Ids:
        """Find the steps to all targets; the graphs that have a longer path."""
        where, slots, hubs, reached = self.order, self.slots, len(self.rest_start), self.reached
        for step in range(1, _LONGEST + 2):
            self._count(step)
            before = reached[where]
            new = before.copy()
            for slot in slots:
                np.bitwise_or(new[: len(slot)], reached[slot], out=new[: len(slot)])
            if hubs:
                new[:hubs] |= np.bitwise_or.reduceat(reached[self.rest], self.rest_start)
            reached[where] = new
            if step % _EACH == 0 or step > _LONGEST:
                moved = self._unfinished(where, new != before)
                if not moved.any():
                    break
                moved[:hubs] |= step <= _LONGEST  # their other neighbours are not sorted out
                where, slots = where[moved], [slot[moved[: len(slot)]] for slot in slots]
        else:
            return np.unique(np.repeat(self.graphs.graph, self.words)[where])
        return np.zeros(0, dtype=np.int64)

    def _unfinished(self, where: Ids, moved: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which of some rows are of nodes that have found a target in this step, and so may find others."""
        if len(self.reached) == len(self.words):
            return moved
        each = np.zeros(len(self.reached), dtype=np.bool_)
        each[where] = moved
        found: NDArray[np.bool_] = np.repeat(np.logical_or.reduceat(each, self.row[:-1]), self.words)[where]
        return found

    def _count(self, step: int) -> None:
        """One step more to the targets that are not reached yet."""
        np.invert(self.reached, out=self.left)
        for digit in range((step & -step).bit_length()):  # where a one is carried to
            if digit == len(self.digits):
                self.digits.append(np.zeros_like(self.left))
            self.digits[digit] ^= self.left

    def write(self, results: Sequence[Array]) -> None:
        """From digits to the lengths (n, n) of each graph."""
        lines = np.negative(_spread(~self.reached))  # 255 where no path leads
        for digit, word in enumerate(self.digits):
            bits = _spread(word).view(np.uint64)
            bits <<= np.uint64(digit)
            lines.view(np.uint64)[:] |= bits
        ends = (64 * self.row[self.graphs.start]).tolist()
        for first, last, result in zip(ends, ends[1:], results, strict=False):
            result[:] = lines[first:last].reshape(len(result), -1)[:, : len(result)]


def _spread(words: Words) -> NDArray[np.uint8]:
    """(64 w,) each bit as a byte."""
    return np.unpackbits(words.astype("<u8", copy=False).view(np.uint8), bitorder="little")


def _bytes(words: Words) -> NDArray[np.uint8]:
    """(r, 64 w) each bit as a byte."""
    return np.unpackbits(words.astype("<u8", copy=False).view(np.uint8), axis=1, bitorder="little")
