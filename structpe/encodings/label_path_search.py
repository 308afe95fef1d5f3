"""The smallest label sequence of a shortest path of each pair of nodes, of many graphs at once.

Breadth-first searches from all nodes, ignoring directions of edges. A search carries the number of the sequence that
leads to each node, so none is written out before all are known: sequences are the nodes of a trie, each a shorter
sequence and one more symbol. Shapes: g structures, T nodes, P pairs of nodes, m steps (edges in both directions), s
nodes of a trie.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count, repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from structpe.encodings.columns import blocks, narrow, ranges, starts_of
from structpe.encodings.compiled import OF_A_LIST, compiled
from structpe.encodings.graphs import Graphs
from structpe.errors import EncodingError
from structpe.structure import Ids, Structure

__all__ = [
    "FIRST_STEP",
    "SELF",
    "TOO_LONG",
    "UNKNOWN",
    "UNREACHED",
    "PairSequences",
    "ShortestPaths",
    "check_memory",
    "labels_of",
    "numbers_of_edges",
    "search",
    "walk",
]


_MOST = 1 << 27
"""The largest number of symbols in all sequences: 1 GiB."""

UNKNOWN, SELF, UNREACHED, TOO_LONG, FIRST_STEP = range(5)
"""Symbols: a step with an unknown label, then three that represent a whole path; steps follow, two per label."""


class ShortestPaths(NamedTuple):
    """The shortest paths of a list of structures.

    Attributes:
        paths: (p, L) the distinct paths of all structures, each a sequence of symbols, padded with -1. The rows 0, 1, 2
            are the paths "self", "unreachable" and "too long".
        rows: (P, k) rows of the shortest paths of each pair of nodes, padded with -1.
    """

    paths: Ids
    rows: Ids


def labels_of(structures: Sequence[Structure]) -> tuple[str, ...]:
    """The distinct relation labels, sorted; the label of an unlabelled edge is the empty string."""
    found = {label for s in structures for label in s.relations}
    if any(len(s.edges) and not s.relations for s in structures):
        found.add("")
    return tuple(sorted(found))


def numbers_of_edges(structures: Sequence[Structure], numbers: Mapping[str, int], unknown: int) -> Ids:
    """(E,) the number of the label of each edge of all structures."""
    names = chain.from_iterable(each.relations or repeat("", len(each.edges)) for each in structures)
    total = sum(len(each.edges) for each in structures)
    return np.fromiter(map(numbers.get, names, repeat(unknown)), dtype=np.int64, count=total)


def walk(
    graphs: Graphs,
    structures: Sequence[Structure],
    labels: Mapping[str, int],
    max_length: int | None,
    cut: bool,
    most: int,
) -> ShortestPaths:
    """The label sequences of the shortest paths between all pairs of nodes.

    A breadth-first search from all nodes of all structures at once. Of the shortest paths of a pair, those with the
    smallest sequences of symbols are kept, so the choice does not depend on the numbering of nodes.

    Args:
        graphs: the structures.
        structures: the same, with their labels.
        labels: number of each known label.
        max_length: length of the longest path that is kept whole.
        cut: whether to cut longer paths after ``max_length`` steps; otherwise they are the path "too long".
        most: largest number of paths per pair. Paths through different nodes count separately, even if their labels
            are the same.

    Raises:
        EncodingError: the sequences would not fit into memory.
    """
    steps, nodes = _Steps.of(graphs, structures, labels), np.arange(int(graphs.start[-1]))
    pairs, nothing = graphs.pairs_at(nodes, nodes), np.zeros_like(nodes)
    rows, seen = np.full((int(graphs.pair_start[-1]), most), -1), np.zeros(int(graphs.pair_start[-1]), dtype=np.bool_)
    rows[:, 0], seen[pairs] = UNREACHED - SELF, True
    rows[pairs, 0] = 0
    front, first = _Front(nodes, pairs, nothing, nothing), 0
    prefixes, tables = np.zeros((1, 0), dtype=np.int64), list[Ids]()
    for length in count(1):
        if max_length is not None and length == max_length + 1 and not cut:
            front, first, most = front._replace(path=np.zeros_like(front.path)), TOO_LONG - SELF, 1
        named = max_length is None or length <= max_length
        front = _extended(front, graphs, steps, seen, most, named)
        if not len(front.node):
            break
        if named:
            keys, path = np.unique(front.path, return_inverse=True)
            front, first = front._replace(path=path), 3 if not tables else first + len(prefixes)
            prefixes = np.c_[prefixes[keys // steps.symbols], keys % steps.symbols]
            tables.append(prefixes)
            check_memory(sum(map(len, tables)), length)
        rows[front.pair, front.place] = first + front.path
    special, width = np.array([[SELF], [UNREACHED], [TOO_LONG]]), max(len(tables), 1)  # a table has a column per step
    padded = [np.pad(each, [(0, 0), (0, width - each.shape[1])], constant_values=-1) for each in (special, *tables)]
    return ShortestPaths(np.concatenate(padded), rows)


class _Front(NamedTuple):
    """The paths of one length, one entry each: the pair they join, and which of that pair's paths they are.

    Attributes:
        node: the last node of the path, numbered over all structures.
        pair: number of the pair (source, node).
        path: number of its sequence of symbols among those of this length, in their lexicographic order.
        place: 0 for the pair's first path, 1 for the second, ...
    """

    node: Ids
    pair: Ids
    path: Ids
    place: Ids


def _extended(front: _Front, graphs: Graphs, steps: _Steps, seen: NDArray[np.bool_], most: int, named: bool) -> _Front:
    """All paths, longer by one edge, to pairs not seen yet: up to ``most`` per pair, the smallest ones if ``named``.

    Then paths are numbers prefix * symbols + symbol, which are in the order of the sequences.
    """
    old, step = steps.onward(front.node)
    base = graphs.start[graphs.graph[front.node]]
    pair = (front.pair - front.node + base)[old] + (step & steps.low)
    fresh = ~seen[pair]
    old, step, pair = old[fresh], step[fresh], pair[fresh]
    path = front.path[old] * steps.symbols + (step >> steps.bits) if named else front.path[old]
    order = np.lexsort((path, pair))
    old, step, pair, path = old[order], step[order], pair[order], path[order]
    place = np.arange(len(pair)) - np.searchsorted(pair, pair)  # 0, 1, ... among the paths of a pair
    few = place < most
    seen[pair] = True
    return _Front((base[old] + (step & steps.low))[few], pair[few], path[few], place[few])


def check_memory(paths: int, length: int) -> None:
    """Check that so many sequences of so many symbols fit into memory.

    Raises:
        EncodingError: they do not.
    """
    if paths * length > _MOST:
        raise EncodingError(
            f"the shortest paths have {paths:,} different sequences of labels, of up to {length} steps and more, which "
            f"do not fit into memory; shorten the paths, for example with max_length=8, or give smaller graphs"
        )


Array = NDArray[Any]

_EMPTY, _NONE, _LONG, _FIRST = range(4)
"""Nodes of every trie: the empty sequence, that of a node and itself; no path; a path that is too long; others."""

_PAIRS = 1 << 18  # of the graphs that NumPy searches together: fewer take more calls, more do not stay in the cache
_CELLS = 1 << 18  # of an index, renumbered at a time
_FEW = 32  # numbers that are sorted as they come
_ROOM = 1 << 12  # nodes for which a trie has room at first
_MIX = 0x1E3779B97F4A7C15  # spreads the keys of the hash table
_SLOWER = 4  # how much longer a pair takes than a distance, both without numba


@dataclass(frozen=True, eq=False)
class PairSequences:
    """The sequence of each pair of units.

    Attributes:
        table: (r, L) distinct sequences of symbols, padded with -1, by length, then by symbols, in the narrowest signed
            dtype. Each is that of a pair.
        parent: (r,) the row of each sequence without its last symbol; -1 if that is empty, or is not in the table.
        index: the row of each pair, flat, in the narrowest unsigned dtype.
    """

    table: Array
    parent: Ids
    index: Array


@dataclass(frozen=True, eq=False)
class _Found:
    """The sequences of some structures.

    Attributes:
        index: (P,) the node of the trie for each pair of nodes.
        trie: (3, s) of each node: that of the sequence without the last symbol; the last symbol; the number of symbols.
            The first three have their own number as symbol, and no others.
    """

    index: Array
    trie: Array


def search(
    graphs: Graphs, structures: Sequence[Structure], labels: Mapping[str, int], max_length: int | None, cut: bool
) -> PairSequences:
    """Of the shortest paths of each pair, the smallest sequence of symbols; see :class:`structpe.encodings.LabelPath`.

    Args:
        graphs: the structures.
        structures: the same, with their labels.
        labels: number of each known label.
        max_length: length of the longest path that is kept whole.
        cut: whether to cut longer paths after ``max_length`` steps; otherwise they are the path "too long".

    Raises:
        EncodingError: the sequences would not fit into memory.
    """
    if not structures:
        return PairSequences(np.zeros((0, 1), dtype=np.int8), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint8))
    steps = _Steps.of(graphs, structures, labels)
    longest = int(graphs.sizes.max()) if max_length is None else max_length
    compiled_pays = _search.pays(OF_A_LIST + _SLOWER * int(graphs.pair_start[-1]))
    found = [_compiled(graphs, steps, longest, cut)] if compiled_pays else [*_in_parts(graphs, steps, longest, cut)]
    indices, tries = [each.index for each in found], [each.trie for each in found]
    del found
    first = starts_of([trie.shape[1] for trie in tries])
    special = np.array([True, *(any((index == node).any() for index in indices) for node in (_NONE, _LONG))])
    row, table, above = _rows(tries, special, steps.symbols)
    rows = np.split(row, first[1:-1])
    index = np.concatenate([_renumbered(part, own) for part, own in zip(indices, rows, strict=True)])
    return _in_use(PairSequences(table, above, index), graphs)


def _renumbered(index: Array, row: Array) -> Array:
    """row[index]; in the memory of the index where both have the same width."""
    result = index if index.itemsize == row.itemsize else np.empty(len(index), dtype=row.dtype)
    if _take.pays(len(index)):
        _take(index, row, result)
        return result
    for first in range(0, len(index), _CELLS):  # NumPy converts an index to eight bytes each
        result[first : first + _CELLS] = row[index[first : first + _CELLS]]
    return result


@compiled
def _take(index: Array, row: Array, result: Array) -> None:
    for pair in range(len(index)):
        result[pair] = row[index[pair]]


@dataclass(frozen=True, eq=False)
class _Steps:
    """The steps from each node.

    Attributes:
        first: (T + 1,) the first step from each node, and m.
        step: (m,) symbol << bits | target, those from one node together; targets count within a structure.
        bits: as many as the largest target needs.
        symbols: number of symbols.
    """

    first: Ids
    step: Ids
    bits: int
    symbols: int

    @property
    def low(self) -> int:
        """The bits of a target."""
        return (1 << self.bits) - 1

    @classmethod
    def of(cls, graphs: Graphs, structures: Sequence[Structure], labels: Mapping[str, int]) -> _Steps:
        """From the structures, and the number of each known label."""
        known = {label: FIRST_STEP + 2 * number for label, number in labels.items()}
        down, counts = numbers_of_edges(structures, known, UNKNOWN), np.diff(graphs.edge_start)
        source, target = np.ascontiguousarray(graphs.edges.T)
        base, up = np.repeat(graphs.start[:-1], counts), down + (np.repeat(graphs.directed, counts) & (down != UNKNOWN))
        bits = int(graphs.sizes.max(initial=1)).bit_length()
        step = np.concatenate([down << bits | target - base, up << bits | source - base])
        nodes, steps = int(graphs.start[-1]), len(step)
        rows = csr_array((step, (np.concatenate([source, target]), np.arange(steps))), shape=(nodes, max(steps, 1)))
        return cls(rows.indptr.astype(np.int64), rows.data, bits, FIRST_STEP + 2 * len(labels))

    def onward(self, nodes: Ids) -> tuple[Ids, Ids]:
        """All steps from some nodes: the index of the node in the list, and the step."""
        begin = self.first[nodes]
        degree = self.first[nodes + 1] - begin
        return np.repeat(np.arange(len(nodes)), degree), self.step[ranges(begin, degree)]


def _rows(tries: list[Array], special: NDArray[np.bool_], symbols: int) -> tuple[Array, Array, Ids]:
    """The row of each node, one trie after the other, the table, and the parent of each of its rows.

    Equal sequences have one row.

    Args:
        tries: they are taken out of the list, as there may not be memory for them beside the table.
        special: which of the first three nodes have a row.
        symbols: number of symbols.
    """
    first = starts_of([trie.shape[1] for trie in tries])
    parent = np.concatenate([trie[0] + at for trie, at in zip(tries, first, strict=False)])
    symbol, depth = np.concatenate([trie[1:] for trie in tries], axis=1)
    tries.clear()
    row = np.where(depth == 0, (np.cumsum(special) - 1)[np.minimum(symbol, _LONG)], 0)
    by_depth = np.argsort(depth.astype(np.uint16), kind="stable")  # counted, not compared, as there are two bytes
    levels = np.split(by_depth, np.cumsum(np.bincount(depth))[:-1])[1:]
    ends, keys = [_EMPTY, int(special.sum())], []
    for members in levels:
        key = (row[parent[members]] - ends[-2]) * symbols + symbol[members]
        mine, where = np.unique(narrow(key), return_inverse=True)
        row[members] = ends[-1] + where
        ends.append(ends[-1] + len(mine))
        keys.append(mine.astype(np.int64))
    check_memory(ends[-1], len(levels))
    table = np.full((ends[-1], max(len(levels), 1)), -1, dtype=np.min_scalar_type(-symbols))
    table[: ends[1], 0] = np.array([SELF, UNREACHED, TOO_LONG])[special]
    above = np.full(len(table), -1)
    for length, mine in enumerate(keys):
        of_level = table[ends[length + 1] : ends[length + 2]]
        of_level[:, :length] = table[ends[length] : ends[length + 1], :length][mine // symbols]
        of_level[:, length] = mine % symbols
        above[ends[length + 1] : ends[length + 2]] = ends[length] + mine // symbols if length else -1
    return narrow(row), table, above


def _in_use(paths: PairSequences, graphs: Graphs) -> PairSequences:
    """From pairs of nodes to pairs of units, without the rows that none has."""
    if graphs.owner is None:
        return paths
    index, used = graphs.pairs_of_units(paths.index), np.zeros(len(paths.table), dtype=np.bool_)
    for first in range(0, len(index), _CELLS):
        used[index[first : first + _CELLS]] = True
    row, table = np.cumsum(used) - 1, paths.table[used]
    above = paths.parent[used]
    above = np.where((above >= 0) & used[above], row[above], -1)
    longest = int((table >= 0).any(axis=0).sum())
    return PairSequences(table[:, :longest], above, _renumbered(index, narrow(row)))


def _compiled(graphs: Graphs, steps: _Steps, longest: int, cut: bool) -> _Found:
    """By one search after the other, which write into one trie."""
    of_graphs = graphs.start, graphs.graph, graphs.pair_start
    index = np.full(int(graphs.pair_start[-1]), _NONE, dtype=np.uint16)
    trie = np.zeros((3, _ROOM), dtype=np.int32)  # parent, symbol, depth
    trie[1, :_FIRST] = range(_FIRST)
    source, used = 0, _FIRST
    while True:
        slots = np.full(2 * trie.shape[1], -1, dtype=np.int32)
        _fill(slots, trie, used, steps.symbols)
        source, used = _search(
            source,
            used,
            *of_graphs,
            steps.first,
            steps.step,
            steps.bits,
            longest,
            cut,
            steps.symbols,
            index,
            trie,
            slots,
        )
        if source == len(graphs.graph):
            return _Found(index, trie[:, :used])
        trie = np.concatenate([trie, np.zeros_like(trie)], axis=1)
        if trie.shape[1] > 1 << 16:
            index = index.astype(np.uint32, copy=False)


@compiled
def _fill(slots: Array, trie: Array, used: int, symbols: int) -> None:
    for node in range(_FIRST, used):
        slot = ((trie[0, node] * symbols + trie[1, node]) * _MIX >> 32) & (len(slots) - 1)
        while slots[slot] >= 0:
            slot = (slot + 1) & (len(slots) - 1)
        slots[slot] = node


@compiled
def _search(
    source: int,
    used: int,
    start: Ids,
    graph: Ids,
    pair_start: Ids,
    first: Ids,
    step: Ids,
    bits: int,
    longest: int,
    cut: bool,
    symbols: int,
    index: Array,
    trie: Array,
    slots: Array,
) -> tuple[int, int]:
    """From ``source`` on, while there is room: the next source, and how many nodes the trie has.

    Nodes of a level are visited in the order of their sequences. Those with the same sequence are one group, whose
    steps are sorted: so the first to reach a node reaches it by the smallest sequence. A child of the group's node in
    the trie is found by open addressing: ``slots`` is a hash table of (node, symbol), a power of 2 in size.
    """
    low, most = (1 << bits) - 1, len(slots) - 1
    queue, number, keys = np.empty(low + 1, np.int64), np.empty(low + 1, np.int64), np.empty(len(step), np.int64)
    # A search adds a node to the trie for each node of the graph at the most; the caller makes room for the next one.
    while source < len(graph) and used + len(queue) <= trie.shape[1]:
        a, n = start[graph[source]], start[graph[source] + 1] - start[graph[source]]
        row = index[pair_start[graph[source]] + (source - a) * n :][:n]
        row[source - a], queue[0], number[0] = _EMPTY, source, _EMPTY
        done, filled, end, length = 0, 1, 1, 0  # of the queue: visited, known, the end of the level, and its length
        while done < filled:
            if done == end:
                end, length = filled, length + 1
            # The steps from all nodes of the group to nodes without a sequence. A step is its symbol, then its target,
            # so sorted numbers are in the order of symbols. Few numbers are sorted fastest as they come.
            group, last, some = number[done], done, 0
            while last < end and number[last] == group:
                for p in range(first[queue[last]], first[queue[last] + 1]):
                    if row[step[p] & low] == _NONE:
                        place, some = some, some + 1
                        while 0 < place < _FEW and keys[place - 1] > step[p]:
                            keys[place] = keys[place - 1]
                            place -= 1
                        keys[place] = step[p]
                last += 1
            if some > _FEW:
                keys[:some].sort()
            # Each target gets the child of the group's node by the symbol; steps with one symbol share it.
            done, child, before = last, -1, -1
            for key in keys[:some]:
                target, symbol = key & low, key >> bits
                if row[target] != _NONE:  # reached by another of these steps
                    continue
                if length >= longest:
                    child = group if cut else _LONG
                elif symbol != before:
                    before, slot = symbol, ((group * symbols + symbol) * _MIX >> 32) & most
                    while slots[slot] >= 0 and (trie[0, slots[slot]] != group or trie[1, slots[slot]] != symbol):
                        slot = (slot + 1) & most
                    if slots[slot] < 0:
                        trie[0, used], trie[1, used], trie[2, used] = group, symbol, length + 1
                        slots[slot], used = used, used + 1
                    child = slots[slot]
                row[target], queue[filled], number[filled], filled = child, a + target, child, filled + 1
        source += 1
    return source, used


def _in_parts(graphs: Graphs, steps: _Steps, longest: int, cut: bool) -> Iterator[_Found]:
    """By searches from all nodes of some graphs at once, level by level; each part has a trie of its own."""
    for part in blocks(np.square(graphs.sizes), _PAIRS):
        nodes = np.arange(graphs.start[part.start], graphs.start[part.stop])
        graph, begin = graphs.graph[nodes], graphs.pair_start[part.start]
        origin = graphs.pair_start[graph] - begin + (nodes - graphs.start[graph]) * graphs.sizes[graph]
        base, pairs = graphs.start[graphs.graph], int(graphs.pair_start[part.stop] - begin)
        yield _by_levels(steps, base, nodes, origin, pairs, longest, cut)


def _by_levels(steps: _Steps, base: Ids, node: Ids, origin: Ids, pairs: int, longest: int, cut: bool) -> _Found:
    """All levels. A front has the node, the origin of the source, and the rank of the sequence, of each pair.

    Args:
        steps: the steps from each node.
        base: (T,) the first node of the graph of each.
        node: (t,) the nodes of these graphs.
        origin: (t,) the pair of each of them with the first node of its graph, among the pairs of these graphs.
        pairs: number of pairs.
        longest: length of the longest path that is kept whole.
        cut: whether to cut longer paths.
    """
    symbols, rank = steps.symbols, np.zeros_like(node)
    number, best = np.full(pairs, _NONE, dtype=np.int32), np.empty(pairs, dtype=np.int64)
    number[origin + node - base[node]] = _EMPTY
    first, used, trie = _EMPTY, _FIRST, [np.stack([[0, 0, 0], range(_FIRST), [0, 0, 0]])]
    for length in range(1, pairs + 1):
        old, step = steps.onward(node)
        pair = origin[old] + (step & steps.low)
        fresh = np.flatnonzero(number[pair] == _NONE)
        if not len(fresh):
            break
        old, step, pair = old[fresh], step[fresh], pair[fresh]
        named = length <= longest
        key = rank[old] * symbols + (step >> steps.bits) if named else rank[old]
        won = _smallest(pair, key, best, number)
        old, pair, step, rank = old[won], pair[won], step[won], key[won]
        if named:
            keys, rank = _ranked(rank)
            trie.append(np.stack([first + keys // symbols, keys % symbols, np.full_like(keys, length)]))
            first, used = used, used + len(keys)
        number[pair] = first + rank if named or cut else _LONG
        node, origin = base[node[old]] + (step & steps.low), origin[old]
    return _Found(narrow(number), np.concatenate(trie, axis=1).astype(np.int32))


def _smallest(pair: Ids, key: Ids, best: Ids, place: Array) -> Ids:
    """One entry of each pair, with its smallest key. Both matrices of pairs are for notes.

    Of the entries of one pair any writes last; those with a smaller key write again, until none is left.
    """
    best[pair] = key
    lower = np.flatnonzero(best[pair] > key)
    while len(lower):
        best[pair[lower]] = key[lower]
        lower = lower[best[pair[lower]] > key[lower]]
    won = np.flatnonzero(best[pair] == key)
    place[pair[won]] = np.arange(len(won))
    once: Ids = won[place[pair[won]] == np.arange(len(won))]
    return once


def _ranked(keys: Ids) -> tuple[Ids, Ids]:
    """The distinct keys, ascending, and the index of each."""
    most = int(keys.max()) + 1
    if most > 8 * len(keys):
        return np.unique(keys, return_inverse=True)
    there = np.zeros(most, dtype=np.bool_)  # counting is faster than sorting
    there[keys] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[keys]
