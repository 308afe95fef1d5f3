"""The similarity of the random walks from two nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from structpe.encodings._nearby import neighbours, ranks
from structpe.encodings._rounding import significant
from structpe.encodings.base import MOST_NODES, Encoded, Encoding, check_all_pairs, check_sizes, narrow
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
        check_all_pairs(self, [structure])
        if (visits := structure.size * self.walks * self.length) > MOST_NODES**2:
            raise self.error(
                structure,
                f"the walks visit {visits} nodes, which take {visits / 2**27:.0f} GiB; {MOST_NODES**2} at most. "
                f"Take fewer or shorter walks, or encode parts of the graph",
            )
        kernel = significant(kernel_of(self._draw(structure)))
        owner = structure.unit_owner
        values, index = np.unique(kernel, return_inverse=True)
        return Encoded(values, narrow(index.reshape(kernel.shape)[owner[:, None], owner[None, :]]))

    def _draw(self, structure: Structure) -> Ids:
        """(n, walks, length) the nodes that the walks from each node visit."""
        rank, generator = ranks(structure), np.random.default_rng(self.seed)
        start = np.argsort(rank)
        near = [np.sort(rank[each]) if len(each) else rank[i : i + 1] for i, each in enumerate(neighbours(structure))]
        places = [near[node] for node in start]  # by rank: neighbours of the first node, of the second, ...
        degree = np.array([len(each) for each in places])
        flat, first = np.concatenate(places), np.cumsum(degree) - degree
        at = np.repeat(np.arange(structure.size), self.walks)
        visits = [at]
        for _ in range(self.length - 1):
            at = flat[first[at] + (generator.random(len(at)) * degree[at]).astype(np.int64)]
            visits.append(at)
        by_rank = start[np.stack(visits, axis=-1).reshape(structure.size, self.walks, self.length)]
        result: Ids = by_rank[rank]
        return result


def kernel_of(walks: Ids) -> NDArray[np.float64]:
    """(n, n) K from the nodes (n, walks, length) that the walks from each node visit."""
    n = len(walks)
    visits = np.zeros((n, n))
    np.add.at(visits, (np.repeat(np.arange(n), walks[0].size), walks.reshape(-1)), 1.0)
    products = visits @ visits.T  # of whole numbers, so exact for any order of the sum
    own = np.sqrt(np.diagonal(products))
    kernel: NDArray[np.float64] = products / (own[:, None] * own[None, :])
    return kernel
