"""The smallest label sequence of a shortest path of each pair of nodes, of many graphs at once.

Breadth-first searches from all nodes, ignoring directions of edges. A search carries the number of the sequence that
leads to each node, so none is written out before all are known: sequences are the nodes of a trie, each a shorter
sequence and one more symbol. Shapes: g structures, T nodes, P pairs of nodes, m steps (edges in both directions), s
nodes of a trie.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count, pairwise, repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
_TOGETHER = 1 << 20  # pairs of the nodes from which numba searches together
_FREE = -1  # a pair that is not reached
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
            The first three have their own number as symbol, and no others. By that number, then by the sequence.
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
    found = [*(_compiled if compiled_pays else _in_parts)(graphs, steps, longest, cut)]
    indices, tries = [each.index for each in found], [each.trie for each in found]
    del found
    special = np.array([True, *(any((index == node).any() for index in indices) for node in (_NONE, _LONG))])
    nodes, trie = _merged(tries, steps.symbols)
    row, table, above = _table(trie, special, steps.symbols)
    index = np.concatenate([_renumbered(part, row[own]) for part, own in zip(indices, nodes, strict=True)])
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
        step: (m,) symbol << bits | target, ascending for each node; targets count within a structure.
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
        begin, symbols = np.concatenate([source, target]), FIRST_STEP + 2 * len(labels)
        numbers = bits + symbols.bit_length()
        step |= begin << numbers  # sorting numbers is several times as fast as sorting their places
        step.sort()
        step &= (1 << numbers) - 1
        return cls(starts_of(np.bincount(begin, minlength=int(graphs.start[-1]))), step, bits, symbols)

    def onward(self, nodes: Ids) -> tuple[Ids, Ids]:
        """All steps from some nodes: the index of the node in the list, and the step."""
        begin = self.first[nodes]
        degree = self.first[nodes + 1] - begin
        return np.repeat(np.arange(len(nodes)), degree), self.step[ranges(begin, degree)]


def _merged(tries: list[Array], symbols: int) -> tuple[list[Array], Array]:
    """The node in one trie for each node of several, and that trie. Nodes are sorted by depth, then by sequence.

    Args:
        tries: they are taken out of the list, as there may not be memory for them beside the others.
        symbols: number of symbols.
    """
    if len(tries) == 1:
        return [np.arange(tries[0].shape[1])], tries.pop()
    first = starts_of([trie.shape[1] for trie in tries])
    parent = np.concatenate([trie[0] + at for trie, at in zip(tries, first, strict=False)])
    symbol, depth = np.concatenate([trie[1:] for trie in tries], axis=1)
    parts = [tries[0][:, :_FIRST].astype(np.int64)]
    tries.clear()
    node = np.where(depth == 0, symbol, 0)
    by_depth = np.argsort(depth.astype(np.uint16), kind="stable")  # counted, not compared, as there are two bytes
    levels = np.split(by_depth, np.cumsum(np.bincount(depth))[:-1])[1:]
    begin, end = _EMPTY, _FIRST
    for length, members in enumerate(levels, start=1):
        key = (node[parent[members]] - begin) * symbols + symbol[members]
        mine, where = np.unique(narrow(key), return_inverse=True)
        node[members], mine = end + where, mine.astype(np.int64)
        parts.append(np.stack([begin + mine // symbols, mine % symbols, np.full_like(mine, length)]))
        begin, end = end, end + len(mine)
    return np.split(narrow(node), first[1:-1]), np.concatenate(parts, axis=1)


def _table(trie: Array, special: NDArray[np.bool_], symbols: int) -> tuple[Array, Array, Ids]:
    """The row of each node of a trie, the table, and the parent of each of its rows; nodes are sorted by depth.

    Args:
        trie: (3, s).
        special: which of the first three nodes have a row.
        symbols: number of symbols.
    """
    begin = int(special.sum())
    row = np.concatenate([np.cumsum(special) - 1, np.arange(begin, begin + trie.shape[1] - _FIRST)])
    parent, symbol, depth = trie[:, _FIRST:]
    above = np.concatenate([np.full(begin, -1), np.where(depth > 1, row[parent], -1)])
    width = int(depth.max(initial=1))
    check_memory(len(above), width)
    table = np.full((len(above), width), -1, dtype=np.min_scalar_type(-symbols))
    table[:begin, 0] = np.array([SELF, UNREACHED, TOO_LONG])[special]
    if _write.pays(table.size):
        _write(above, symbol, depth, begin, table)
        return narrow(row), table, above
    ends = begin + np.cumsum(np.bincount(depth, minlength=1))
    for length, (first, last) in enumerate(pairwise(ends)):
        table[first:last, :length] = table[above[first:last], :length]
        table[first:last, length] = symbol[first - begin : last - begin]
    return narrow(row), table, above


@compiled
def _write(above: Ids, symbol: Array, depth: Array, begin: int, table: Array) -> None:
    for number in range(len(symbol)):
        mine, length = table[begin + number], depth[number]
        if length > 1:
            other = table[above[begin + number]]
            for place in range(length - 1):
                mine[place] = other[place]
        mine[length - 1] = symbol[number]


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


def _compiled(graphs: Graphs, steps: _Steps, longest: int, cut: bool) -> Iterator[_Found]:
    """By searches from some nodes at once, level by level; each part has a trie of its own."""
    base, counts = graphs.start[graphs.graph], np.diff(steps.first)
    target = ((steps.step & steps.low) + np.repeat(base, counts)).astype(np.int32)
    symbol, widths = (steps.step >> steps.bits).astype(np.int32), graphs.sizes[graphs.graph]
    most = max(min(_TOGETHER, int(graphs.pair_start[-1])), int(widths.max()))
    queue = [np.empty(most, dtype=np.int32) for _ in range(6)]
    trie, count = np.empty((3, most + _FIRST), dtype=np.int32), np.empty(steps.symbols + 1, dtype=np.int64)
    trie[:, :_FIRST] = [[0, 0, 0], range(_FIRST), [0, 0, 0]]
    for part in blocks(widths, _TOGETHER):
        index = np.full(int(widths[part].sum()), _FREE, dtype=np.int32)
        filled, rows = part.stop - part.start, starts_of(widths[part])[:-1]
        queue[0][:filled], queue[2][:filled] = np.arange(part.start, part.stop), _EMPTY
        queue[1][:filled] = rows + queue[0][:filled] - base[part]
        index[queue[1][:filled]] = _EMPTY
        used = _search(filled, steps.first, target, symbol, longest, cut, count, index, *queue, trie)
        index[index == _FREE] = _NONE
        yield _Found(index.astype(np.min_scalar_type(used)), trie[:, :used].copy())


@compiled
def _sort(
    fresh: int, filled: int, count: Ids, node: Array, pair: Array, group: Array, last: Array, moved_node: Array,
    moved_pair: Array,
) -> None:  # fmt: skip
    """By symbol, from ``fresh`` on; equal ones stay in order."""
    if filled - fresh <= _FEW:
        for i in range(fresh + 1, filled):
            here, reached, own = node[i], pair[i], last[i]
            k = i
            while k > fresh and last[k - 1] > own:
                node[k], pair[k], last[k] = node[k - 1], pair[k - 1], last[k - 1]
                k -= 1
            node[k], pair[k], last[k] = here, reached, own
    else:
        for own in range(len(count)):
            count[own] = 0
        for i in range(fresh, filled):
            moved_node[i], moved_pair[i], group[i] = node[i], pair[i], last[i]
            count[last[i] + 1] += 1
        for own in range(1, len(count)):
            count[own] += count[own - 1]
        for i in range(fresh, filled):
            k, count[group[i]] = fresh + count[group[i]], count[group[i]] + 1
            node[k], pair[k], last[k] = moved_node[i], moved_pair[i], group[i]


@compiled
def _search(
    filled: int,
    first: Ids,
    target: Array,
    symbol: Array,
    longest: int,
    cut: bool,
    count: Ids,
    index: Array,
    node: Array,
    pair: Array,
    group: Array,
    last: Array,
    moved_node: Array,
    moved_pair: Array,
    trie: Array,
) -> int:
    """From the nodes that are in the queue at first, ``filled`` of them: how many nodes the trie has.

    The queue has pairs (their node and number, the sequence that leads there, its last symbol) in the order of
    sequences, which is that of the nodes of the trie. Those with one sequence are a group. What is reached from a
    group has the smallest symbol of any of its steps there, and is then sorted by symbol; until that the index has
    the place in the queue, as -2 and less. ``count`` is room for a number of each symbol, and one more.
    """
    done, used, length = 0, _FIRST, 0
    while done < filled:
        level, length = filled, length + 1
        while done < level:
            mine, fresh, before = group[done], filled, -1
            while done < level and group[done] == mine:
                row, here = pair[done] - node[done], node[done]
                for step in range(first[here], first[here + 1]):
                    reached = row + target[step]
                    if index[reached] == _FREE:
                        node[filled], pair[filled], last[filled] = target[step], reached, symbol[step]
                        index[reached], filled = -2 - filled, filled + 1
                    elif index[reached] < 0 and symbol[step] < last[-2 - index[reached]]:
                        last[-2 - index[reached]] = symbol[step]
                done += 1
            if length > longest:
                for i in range(fresh, filled):
                    index[pair[i]] = group[i] = mine if cut else _LONG
                continue
            _sort(fresh, filled, count, node, pair, group, last, moved_node, moved_pair)
            for i in range(fresh, filled):
                if last[i] != before:
                    before = last[i]
                    trie[0, used], trie[1, used], trie[2, used] = mine, before, length
                    used += 1
                index[pair[i]] = group[i] = used - 1
    return used


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
