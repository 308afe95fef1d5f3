"""The similarity of the random walks from two nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from structpe.encodings._graphs import Graphs
from structpe.encodings._nearby import ranks_of_all
from structpe.encodings._own_values import OwnValues
from structpe.encodings._parts import squares
from structpe.encodings._rounding import significant
from structpe.encodings.base import MOST_NODES, Column, Encoded, Encoding, check_all_pairs, check_sizes
from structpe.errors import EncodingError
from structpe.structure import Ids, Structure

__all__ = ["WalkKernel", "kernel_of"]


@dataclass(frozen=True)
class WalkKernel(Encoding, name="walk-kernel"):
    """K_ts = <F_t, F_s> / (|F_t| |F_s|), F_tv how often random walks from the node of unit t visit node v: float64.

    Each of ``walks`` walks visits ``length`` nodes, including its start. Each step goes to a neighbour, ignoring
    directions, with equal probabilities; without neighbours a walk stays at its node. K is between 0 and 1, and 1 for a
    unit with itself, and has 11 significant digits. (Choromanski et al. 2022, GKAT; the authors' notebook uses 50 walks
    of 4 nodes.)

    Numpy's default generator starts from ``seed`` for each structure and draws the walks of nodes in reading order;
    without an order, of nodes by number, so that another numbering gives another sample of the same distribution.

    Args:
        walks: number of walks from each node.
        length: number of nodes of each walk.
        seed: seed of the generator.
    """

    arity = 2
    real = True
    version = 2

    walks: int = 50
    length: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        if self.walks < 1 or self.length < 1:
            raise EncodingError(
                f"encoding 'walk-kernel': {self.walks} walks of length {self.length}; give 1 or more of both"
            )
        check_sizes(self, walks=self.walks, length=self.length)
        if self.seed < 0:
            raise EncodingError(f"encoding 'walk-kernel': the seed is {self.seed}; give 0 or more")

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        check_all_pairs(self, structures)
        graphs, rank = Graphs.of(structures), ranks_of_all(structures)
        for structure in structures:
            self._check_visits(structure)
        most = int(graphs.sizes.max(initial=0)) * self.walks * (self.length - 1)
        drawn, found = np.random.default_rng(self.seed).random(most), OwnValues(graphs, np.array(0.0))
        for members, linked in squares(graphs):
            order = np.argsort(rank[graphs.start[members][:, None] + np.arange(linked.shape[1])], axis=1)
            for each, graph, nodes in zip(linked, members, order, strict=True):
                kernel = significant(kernel_of(self._draw(each, nodes, drawn)))
                found.add(graph[None], kernel.reshape(1, -1), kernel.reshape(1, -1) > 0)
        return found.column()

    def _check_visits(self, structure: Structure) -> None:
        if (visits := structure.size * self.walks * self.length) > MOST_NODES**2:
            raise self.error(
                structure,
                f"the walks visit {visits} nodes, which take {visits / 2**27:.0f} GiB; {MOST_NODES**2} at most. "
                f"Take fewer or shorter walks, or encode parts of the graph",
            )

    def _draw(self, linked: NDArray[np.bool_], order: Ids, drawn: NDArray[np.float64]) -> Ids:
        """(n, walks, length) the nodes that the walks from each node visit, from its nodes in order."""
        by_rank = linked[order[:, None], order]
        by_rank[np.arange(len(order)), np.arange(len(order))] |= ~by_rank.any(axis=1)
        degree = by_rank.sum(axis=1)
        flat, first = np.nonzero(by_rank)[1], np.cumsum(degree) - degree
        at = np.repeat(np.arange(len(order)), self.walks)
        visits = [at]
        for step in range(self.length - 1):
            share = drawn[step * len(at) : (step + 1) * len(at)]
            at = flat[first[at] + (share * degree[at]).astype(np.int64)]
            visits.append(at)
        result = np.empty((len(order), self.walks, self.length), dtype=np.int64)
        result[order] = order[np.stack(visits, axis=-1).reshape(result.shape)]
        return result


def kernel_of(walks: Ids) -> NDArray[np.float64]:
    """(n, n) K from the nodes (n, walks, length) that the walks from each node visit."""
    n = len(walks)
    starts = np.repeat(np.arange(n) * n, walks[0].size)
    visits = np.bincount(starts + walks.reshape(-1), minlength=n * n).reshape(n, n).astype(np.float64)
    products = visits @ visits.T  # of whole numbers, so exact for any order of the sum
    own = np.sqrt(np.diagonal(products))
    kernel: NDArray[np.float64] = products / (own[:, None] * own[None, :])
    return kernel
