"""How many paths lead from one node to another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from structpe.encodings.base import Column, Encoding, check_all_pairs, check_sizes
from structpe.encodings.columns import groups, ranges, starts_of
from structpe.encodings.graphs import Graphs, OwnValues
from structpe.structure import Ids, Structure

__all__ = ["SimplePaths"]

_PATHS = 1 << 18  # of a block, by the bound: this limits the memory
MOST = 100_000_000


@dataclass(frozen=True)
class SimplePaths(Encoding, name="simple-paths"):
    """Simple paths: how many of 0, 1, 2, ... steps lead from one node to another, none of which meets a node twice.

    [log(1 + c_0), ..., log(1 + c_(steps - 1))],  c_k paths of k edges lead from query t to key s

    Values (r, steps), float64. (Airale et al. 2025, SPSE.) Unlike random walks they tell a cycle from a path. Paths
    follow the direction of edges; parallel edges count once, self-loops do not count; from a node to itself there is
    one path, of no step, so that c_0 is the identity of ``rrwp``. Counts are exact: paths are listed one by one. The
    authors estimate them from below for graphs with many paths, by a search with random choices. They compose
    logarithms to keep the numbers small, in a form that their code does not show; one logarithm is our choice. Units of
    one node have the value of the node with itself. Pairs without such a path share a row of zeros, each other pair has
    its own.

    Args:
        steps: how many lengths, 0 among them.
        log: whether to take logarithms; otherwise the values are the counts.

    Raises:
        EncodingError: a structure has more than 100 million walks of so many steps that do not turn back, which bound
            the paths; or more than 20,000 / sqrt(steps) nodes.
    """

    arity = 2
    real = True

    steps: int = 8
    log: bool = True

    def __post_init__(self) -> None:
        check_sizes(self, steps=self.steps)

    def many(self, structures: Sequence[Structure]) -> Column:
        check_all_pairs(self, structures, self.steps)
        graphs = Graphs.of(structures)
        onward = _Steps.of(graphs)
        walks = onward.walks(self.steps - 1)
        totals = np.bincount(graphs.graph, walks, minlength=len(structures))
        for which in np.flatnonzero(totals > MOST)[:1]:
            raise self.error(
                structures[which],
                f"up to {totals[which]:.2g} paths of {self.steps - 1} steps would be listed, and {MOST:.2g} are "
                f"allowed; take fewer steps, or choose an encoding that lists none, such as 'rrwp'",
            )
        found, pairs = OwnValues(graphs, np.zeros(self.steps)), onward.counts(graphs, walks, self.steps)
        for members in groups(graphs.sizes):
            n = int(graphs.sizes[members[0]])
            rows = pairs[graphs.pair_start[members][:, None] + np.arange(n * n)].reshape(-1, n, n, self.steps)
            found.add(members, np.log1p(rows) if self.log else rows, rows.any(axis=-1))
        return found.column()


@dataclass(frozen=True, eq=False)
class _Steps:
    """The steps from each node to others, over all structures.

    Attributes:
        start: (T + 1,) the first step from each node.
        source: (e,) its node.
        target: (e,) where it leads to.
        back: (e,) the number of the step in the other direction; e without one.
    """

    start: Ids
    source: Ids
    target: Ids
    back: Ids

    @classmethod
    def of(cls, graphs: Graphs) -> _Steps:
        ahead = graphs.steps().tocoo()
        apart = ahead.row != ahead.col
        nodes = ahead.shape[0]
        codes = np.sort(ahead.row[apart].astype(np.int64) * nodes + ahead.col[apart])
        source, target = np.divmod(codes, max(nodes, 1))
        reverse = target * nodes + source
        at = np.searchsorted(codes, reverse)
        there = np.append(codes, -1)[at] == reverse
        back = np.where(there, at, len(codes))
        return cls(starts_of(np.bincount(source, minlength=nodes)), source, target, back)

    def walks(self, steps: int) -> NDArray[np.float64]:
        """(T,) how many walks of 1 to so many steps from each node never turn back: at least as many as paths."""
        nodes = len(self.start) - 1
        onward, total = np.ones(len(self.source)), np.zeros(nodes)
        for _ in range(steps):  # onward: how many walks of so many steps begin with a step
            from_node = np.bincount(self.source, onward, minlength=nodes)
            total += from_node
            onward = from_node[self.target] - np.append(onward, 0)[self.back]
        return total

    def counts(self, graphs: Graphs, walks: NDArray[np.float64], steps: int) -> NDArray[np.float64]:
        """(P, steps) how many simple paths of 0, 1, ... edges lead from the first node of a pair to the second."""
        pairs = int(graphs.pair_start[-1])
        result = np.zeros((pairs, steps))
        for first in _blocks(walks):
            paths = np.arange(first.start, first.stop)[:, None]
            for step in range(steps):
                paths = self._further(paths) if step else paths
                if not len(paths):
                    break
                ends, found = np.unique(graphs.pairs_at(paths[:, 0], paths[:, -1]), return_counts=True)
                result[ends, step] = found
        return result

    def _further(self, paths: Ids) -> Ids:
        """(P', k + 1) from (P, k): each path with each step that leads to a node it has not met."""
        last = paths[:, -1]
        degree = self.start[last + 1] - self.start[last]
        which = np.repeat(np.arange(len(paths)), degree)
        target = self.target[ranges(self.start[last], degree)]
        longer = np.concatenate([paths.take(which, axis=0), target[:, None]], axis=1)
        kept: Ids = longer[(longer[:, :-1] != target[:, None]).all(axis=1)]
        return kept


def _blocks(walks: NDArray[np.float64]) -> Iterator[slice]:
    """Consecutive nodes from which so many walks begin together; one at the least."""
    ends, first = np.cumsum(walks), 0
    while first < len(walks):
        before = ends[first] - walks[first]
        last = max(first + 1, int(np.searchsorted(ends, before + _PATHS, side="right")))
        yield slice(first, last)
        first = last
