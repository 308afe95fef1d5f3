"""Label sequences along the shortest paths of many graphs at once, edges walked both ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from structpe.errors import EncodingError
from structpe.structure import Ids, Structure

__all__ = ["FIRST_STEP", "SELF", "TOO_LONG", "UNKNOWN", "UNREACHED", "Walks", "labels_of", "walk"]

_MOST = 1 << 27
"""The most symbols in the sequences of all paths: 1 GiB."""

UNKNOWN, SELF, UNREACHED, TOO_LONG, FIRST_STEP = range(5)
"""Symbols: a step whose label is not known, then three that stand for a whole path; steps follow, two per label."""


@dataclass(frozen=True, eq=False)
class Walks:
    """The shortest paths of a list of structures.

    Attributes:
        paths: (p, L) the distinct paths of all structures, each a sequence of symbols, -1 where it has ended. The
            rows 0, 1, 2 are the paths "self", "unreachable" and "too long".
        rows: per structure (n, n, k) integers: rows of the shortest paths of each pair, -1 where there are fewer.
    """

    paths: Ids
    rows: list[Ids]


def labels_of(structures: Sequence[Structure]) -> tuple[str, ...]:
    """The distinct relation labels, sorted; edges without a label count as labelled with the empty string."""
    found = {label for s in structures for label in s.relations}
    if any(len(s.edges) and not s.relations for s in structures):
        found.add("")
    return tuple(sorted(found))


def walk(structures: Sequence[Structure], labels: Mapping[str, int], limit: int | None, cut: bool, most: int) -> Walks:
    """The label sequences of the shortest paths between all pairs of nodes.

    A breadth-first search from all nodes of all structures in step. Among the shortest paths of a pair the smallest
    sequences of symbols are kept, so that the choice does not depend on how nodes are numbered.

    Args:
        structures: the graphs.
        labels: number of each known label.
        limit: longest path that is kept whole.
        cut: whether a longer path is its first ``limit`` steps; if not, it is the path "too long".
        most: paths kept per pair. Two paths through other nodes count as two, be their labels the same.

    Raises:
        EncodingError: there are so many sequences, and so long, that memory would not hold them.
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
            _check_memory(sum(map(len, tables)), length)
        rows[front.pair, front.place] = first + front.path
    raise AssertionError("unreachable")


@dataclass(frozen=True, eq=False)
class _Front:
    """The paths of one length, one entry each: the pair they join, and which of that pair's paths they are.

    Attributes:
        node: where the path has come to, numbered over all structures.
        pair: number of the pair (source, node).
        path: number of its sequence of symbols among those of this length, in their lexicographic order.
        place: 0 for the pair's first path, 1 for the second, ...
    """

    node: Ids
    pair: Ids
    path: Ids
    place: Ids


class _Union:
    """The structures side by side as one graph, each edge with the symbols of both its directions."""

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
        """The empty path of each node; marks these pairs as seen."""
        nodes = np.arange(len(self.degree))
        row = np.cumsum(np.repeat(self.sizes, self.sizes)) - np.repeat(self.sizes, self.sizes)
        pair = row + self.local
        self.seen[pair] = True
        return _Front(nodes, pair, nodes * 0, nodes * 0)

    def step(self, front: _Front, most: int, named: bool) -> tuple[_Front, Ids | None]:
        """All paths one edge longer to pairs not seen yet, at most ``most`` each; the smallest if they are ``named``.

        Returns:
            the paths; and, if named, prefix * symbols + symbol of each distinct sequence.
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


def _check_memory(paths: int, length: int) -> None:
    if paths * length > _MOST:
        raise EncodingError(
            f"the shortest paths have {paths:,} different sequences of labels, of up to {length} steps and more, which "
            f"memory would not hold; give a limit of the steps that are told apart, such as limit=8, or smaller graphs"
        )


def _symbols(structure: Structure, labels: Mapping[str, int]) -> Ids:
    """(e,) symbol of each edge, walked along its direction."""
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
    """The three whole paths, then the tables, which grow by one column each."""
    width = tables[-1].shape[1] if tables else 1
    whole = np.array([[SELF], [UNREACHED], [TOO_LONG]])
    return np.concatenate([np.pad(t, [(0, 0), (0, width - t.shape[1])], constant_values=-1) for t in (whole, *tables)])
