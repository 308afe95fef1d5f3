"""Label sequences along the shortest paths of many graphs at once, ignoring directions of edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from structpe.errors import EncodingError
from structpe.structure import Ids, Structure

__all__ = ["FIRST_STEP", "SELF", "TOO_LONG", "UNKNOWN", "UNREACHED", "Walks", "check_memory", "labels_of", "walk"]

_MOST = 1 << 27
"""The largest number of symbols in all sequences: 1 GiB."""

UNKNOWN, SELF, UNREACHED, TOO_LONG, FIRST_STEP = range(5)
"""Symbols: a step with an unknown label, then three that represent a whole path; steps follow, two per label."""


@dataclass(frozen=True, eq=False)
class Walks:
    """The shortest paths of a list of structures.

    Attributes:
        paths: (p, L) the distinct paths of all structures, each a sequence of symbols, padded with -1. The rows 0, 1, 2
            are the paths "self", "unreachable" and "too long".
        rows: per structure (n, n, k) integers: rows of the shortest paths of each pair, padded with -1.
    """

    paths: Ids
    rows: list[Ids]


def labels_of(structures: Sequence[Structure]) -> tuple[str, ...]:
    """The distinct relation labels, sorted; the label of an unlabelled edge is the empty string."""
    found = {label for s in structures for label in s.relations}
    if any(len(s.edges) and not s.relations for s in structures):
        found.add("")
    return tuple(sorted(found))


def walk(structures: Sequence[Structure], labels: Mapping[str, int], limit: int | None, cut: bool, most: int) -> Walks:
    """The label sequences of the shortest paths between all pairs of nodes.

    A breadth-first search from all nodes of all structures at once. Of the shortest paths of a pair, those with the
    smallest sequences of symbols are kept, so that the choice does not depend on the numbering of nodes.

    Args:
        structures: the graphs.
        labels: number of each known label.
        limit: length of the longest path that is kept whole.
        cut: whether to cut longer paths after ``limit`` steps; otherwise they are the path "too long".
        most: largest number of paths per pair. Paths through different nodes count separately, even if their labels
            are the same.

    Raises:
        EncodingError: the sequences would not fit into memory.
    """
    graph = _Union(structures, labels)
    rows = np.full((graph.pairs, most), -1)
    rows[:, 0] = UNREACHED - SELF
    front, prefixes, first = graph.start(), np.zeros((1, 0), dtype=np.int64), 0
    tables: list[Ids] = []
    rows[front.pair, 0] = 0
    for length in count(1):
        if limit is not None and length == limit + 1 and not cut:
            front, first, most = _Front(front.node, front.pair, front.pair * 0, front.place), TOO_LONG - SELF, 1
        front, keys = graph.step(front, most, limit is None or length <= limit)
        if not len(front.node):
            return Walks(_stack(tables), graph.split(rows))
        if keys is not None:
            first = 3 if not tables else first + len(prefixes)
            prefixes = np.c_[prefixes[keys // graph.symbols], keys % graph.symbols]
            tables.append(prefixes)
            check_memory(sum(map(len, tables)), length)
        rows[front.pair, front.place] = first + front.path
    raise AssertionError("unreachable")


@dataclass(frozen=True, eq=False)
class _Front:
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


class _Union:
    """The disjoint union of the structures, each edge with the symbols of both directions."""

    def __init__(self, structures: Sequence[Structure], labels: Mapping[str, int]) -> None:
        self.sizes = np.array([s.size for s in structures])
        self.symbols = FIRST_STEP + 2 * len(labels)
        first = np.cumsum(self.sizes) - self.sizes
        ends = np.concatenate([s.edges + at for s, at in zip(structures, first, strict=True)])
        down = np.concatenate([_symbols(s, labels) for s in structures])
        up = np.concatenate([np.full(len(s.edges), int(s.directed)) for s in structures]) * (down != UNKNOWN) + down
        source = np.concatenate([ends[:, 0], ends[:, 1]])
        order = np.argsort(source, kind="stable")
        self.target = np.concatenate([ends[:, 1], ends[:, 0]])[order]
        self.symbol = np.concatenate([down, up])[order]
        self.degree = np.bincount(source, minlength=int(self.sizes.sum()))
        self.edge = np.cumsum(self.degree) - self.degree
        self.local = np.arange(len(self.degree)) - np.repeat(first, self.sizes)
        self.pairs = int((self.sizes**2).sum())
        self.seen = np.zeros(self.pairs, dtype=bool)

    def start(self) -> _Front:
        """The empty path of each node. Marks these pairs as seen."""
        nodes = np.arange(len(self.degree))
        row = np.cumsum(np.repeat(self.sizes, self.sizes)) - np.repeat(self.sizes, self.sizes)
        pair = row + self.local
        self.seen[pair] = True
        return _Front(nodes, pair, nodes * 0, nodes * 0)

    def step(self, front: _Front, most: int, named: bool) -> tuple[_Front, Ids | None]:
        """Extend all paths by one edge to pairs not seen yet, up to ``most`` per pair; the smallest ones if ``named``.

        Returns:
            The paths; and, if named, prefix * symbols + symbol of each distinct sequence.
        """
        degree = self.degree[front.node]
        old = np.repeat(np.arange(len(degree)), degree)
        edge = np.arange(len(old)) + np.repeat(self.edge[front.node] - (np.cumsum(degree) - degree), degree)
        node = self.target[edge]
        pair = front.pair[old] - self.local[front.node[old]] + self.local[node]
        fresh = ~self.seen[pair]
        old, edge, node, pair = old[fresh], edge[fresh], node[fresh], pair[fresh]
        path = front.path[old] * self.symbols + self.symbol[edge] if named else front.path[old]
        order = np.lexsort((path, pair))
        node, pair, path = node[order], pair[order], path[order]
        place = _places(pair)
        few = place < most
        node, pair, path, place = node[few], pair[few], path[few], place[few]
        self.seen[pair] = True
        if not named:
            return _Front(node, pair, path, place), None
        keys, path = np.unique(path, return_inverse=True)
        return _Front(node, pair, path, place), keys

    def split(self, rows: Ids) -> list[Ids]:
        """The rows of each structure, (n, n, k)."""
        parts = np.split(rows, np.cumsum(self.sizes**2)[:-1])
        return [part.reshape(n, n, -1) for part, n in zip(parts, self.sizes, strict=True)]


def check_memory(paths: int, length: int) -> None:
    """Check that so many sequences of so many symbols fit into memory.

    Raises:
        EncodingError: they do not.
    """
    if paths * length > _MOST:
        raise EncodingError(
            f"the shortest paths have {paths:,} different sequences of labels, of up to {length} steps and more, which "
            f"do not fit into memory; give a limit of the number of steps, such as limit=8, or smaller graphs"
        )


def _symbols(structure: Structure, labels: Mapping[str, int]) -> Ids:
    """(e,) symbol of each edge in its direction."""
    names = structure.relations or ("",) * len(structure.edges)
    numbers = np.array([labels.get(name, -1) for name in names], dtype=np.int64)
    return np.where(numbers < 0, UNKNOWN, FIRST_STEP + 2 * numbers)


def _places(groups: Ids) -> Ids:
    """0, 1, 2, ... within each run of equal numbers."""
    if not len(groups):
        return groups
    starts = np.r_[True, groups[1:] != groups[:-1]]
    places = np.arange(len(groups))
    return places - np.maximum.accumulate(np.where(starts, places, 0))


def _stack(tables: Sequence[Ids]) -> Ids:
    """Stack the three special paths and the tables, each of which has one more column than the one before."""
    width = tables[-1].shape[1] if tables else 1
    whole = np.array([[SELF], [UNREACHED], [TOO_LONG]])
    return np.concatenate([np.pad(t, [(0, 0), (0, width - t.shape[1])], constant_values=-1) for t in (whole, *tables)])
