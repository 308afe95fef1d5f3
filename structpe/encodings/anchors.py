"""Distances to random sets of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from structpe.encodings.base import check_sizes
from structpe.encodings.columns import ranges, starts_of
from structpe.encodings.graphs import Graphs, OfNodes, ranks
from structpe.errors import EncodingError
from structpe.structure import Ids, Structure

__all__ = ["AnchorDistances"]


@dataclass(frozen=True)
class AnchorDistances(OfNodes, name="anchor-distances"):
    """How near the nodes of random sets are: a place in the graph, as seen from landmarks.

    p_u = [1 / (1 + d(u, A_1)), ..., 1 / (1 + d(u, A_sets))]: float32 (sets), 0 for a set that no path leads to.

    d(u, A) is the length of the shortest path from u to the nearest node of A, in any direction of edges. Of n nodes
    the sets have n/2, n/4, ..., 1 in turn, rounded down: few nodes tell where u is, many tell how central. (You et al.
    2019, P-GNN, the distances of their code, which has about log(n)^2 sets and a network over graphs of its own. Here a
    model of vectors per unit reads them, such as ``rwse``.) They are drawn by NumPy's default generator from ``seed``
    for each structure, over nodes in reading order; without an order, by number. All units of a node have its vector.

    Args:
        sets: how many.
        seed: of the generator.

    Raises:
        EncodingError: a number of sets below 1, or a seed below 0.
    """

    real = True

    sets: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        check_sizes(self, sets=self.sets)
        if self.seed < 0:
            raise EncodingError(f"encoding {self.name!r}: the seed is {self.seed}; give 0 or more")

    def of_nodes(self, graphs: Graphs, structures: Sequence[Structure]) -> NDArray[np.float32]:
        starts = graphs.start[:-1].tolist()
        drawn = [start * self.sets + self._drawn(each) for start, each in zip(starts, structures, strict=True)]
        first, second, _ = graphs.links()
        begin = starts_of(np.bincount(first, minlength=int(graphs.start[-1])))
        # A node seen from a set has one number, so that one search serves all sets of all structures.
        steps = np.full(int(graphs.start[-1]) * self.sets, -1, dtype=np.int64)
        reached, length = np.concatenate([np.zeros(0, dtype=np.int64), *drawn]), 0
        while len(reached):
            steps[reached] = length
            node, which = np.divmod(reached, self.sets)
            degree = begin[node + 1] - begin[node]
            ahead = second[ranges(begin[node], degree)] * self.sets + np.repeat(which, degree)
            reached, length = np.unique(ahead[steps[ahead] < 0]), length + 1
        near = np.where(steps < 0, 0.0, 1 / (1 + np.maximum(steps, 0)))
        return near.reshape(-1, self.sets).astype(np.float32)

    def _drawn(self, structure: Structure) -> Ids:
        """The numbers of the nodes of each set, as seen from it."""
        generator, read = np.random.default_rng(self.seed), np.argsort(ranks(structure))
        size = structure.size
        halvings = max(1, size.bit_length() - 1)
        found = []
        for which in range(self.sets):
            many = max(1, size >> (1 + which % halvings))
            found.append(read[generator.choice(size, many, replace=False)] * self.sets + which)
        return np.concatenate(found)
