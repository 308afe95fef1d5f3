"""The similarity of the random walks from two nodes."""

from __future__ import annotations

import math
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

_VISITS = 1 << 18  # of the walks of a group of graphs


@dataclass(frozen=True)
class WalkKernel(Encoding, name="walk-kernel"):
    """The similarity of the random walks from two nodes.

    K_ts = <F_t, F_s> / (|F_t| |F_s|), F_tv how often random walks from the node of unit t visit node v: float64.

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
            size = linked.shape[1]
            order = np.argsort(rank[graphs.start[members][:, None] + np.arange(size)], axis=1)
            most = max(1, _VISITS // (size * self.walks * self.length))
            for first in range(0, len(members), most):
                some = slice(first, first + most)
                kernel = significant(kernel_of(self._draw(linked[some], order[some], drawn)))
                found.add(members[some], kernel.reshape(len(kernel), -1), kernel.reshape(len(kernel), -1) > 0)
        return found.column()

    def _check_visits(self, structure: Structure) -> None:
        if (visits := structure.size * self.walks * self.length) > MOST_NODES**2:
            raise self.error(
                structure,
                f"the walks visit {visits} nodes, which take {visits / 2**27:.0f} GiB; {MOST_NODES**2} at most. "
                f"Take fewer or shorter walks, or encode parts of the graph",
            )

    def _draw(self, linked: NDArray[np.bool_], order: Ids, drawn: NDArray[np.float64]) -> Ids:
        """(b, n, walks, length) the nodes that the walks from each node visit, from its nodes in order (b, n)."""
        b, n = order.shape
        by_rank = linked[np.arange(b)[:, None, None], order[:, :, None], order[:, None]]
        by_rank[:, np.arange(n), np.arange(n)] |= ~by_rank.any(axis=2)
        degree = by_rank.sum(axis=2).reshape(-1)
        ends, first, base = np.nonzero(by_rank)[2], np.cumsum(degree) - degree, np.arange(b)[:, None] * n
        at = np.tile(np.repeat(np.arange(n), self.walks), (b, 1))
        visits = [at]
        for step in range(self.length - 1):
            share, row = drawn[step * at.shape[1] : (step + 1) * at.shape[1]], base + at
            at = ends[first[row] + (share * degree[row]).astype(np.int64)]
            visits.append(at)
        numbers = np.stack(visits, axis=-1).reshape(b, n, self.walks, self.length)
        result = np.empty_like(numbers)
        result[np.arange(b)[:, None], order] = order[np.arange(b)[:, None, None, None], numbers]
        return result


def kernel_of(walks: Ids) -> NDArray[np.float64]:
    """(..., n, n) K from the nodes (..., n, walks, length) that the walks from each node of a graph visit."""
    shape, n = walks.shape[:-2], walks.shape[-3]
    starts = np.repeat(np.arange(math.prod(shape)) * n, math.prod(walks.shape[-2:]))
    visits = np.bincount(starts + walks.reshape(-1), minlength=math.prod(shape) * n).reshape(*shape, n)
    products = visits.astype(np.float64) @ visits.swapaxes(-1, -2)  # of whole numbers, exact in any order of the sum
    own = np.sqrt(np.diagonal(products, axis1=-2, axis2=-1))
    kernel: NDArray[np.float64] = products / (own[..., :, None] * own[..., None, :])
    return kernel
