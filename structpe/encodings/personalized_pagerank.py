"""Personalised PageRank: how often a walk that restarts at one node is at another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from structpe.encodings._graphs import Graphs
from structpe.encodings._own_values import OwnValues
from structpe.encodings._parts import squares
from structpe.encodings._rounding import to_grid
from structpe.encodings.base import UNREACHABLE, Column, Encoded, Encoding, check_all_pairs
from structpe.errors import EncodingError
from structpe.structure import Structure

__all__ = ["PersonalizedPageRank"]

_ERRORS = 8
_LEAST = 1e-9  # below, the matrix is as good as singular


@dataclass(frozen=True)
class PersonalizedPageRank(Encoding, name="personalized-pagerank"):
    """Personalised PageRank: how often a walk that restarts at one node is at another.

    -log(P_ts + 10^-9), float64, with P = c (I - (1 - c) A D^-1)^-1: how rarely a walk from the key is at the query.

    The walk ignores directions of edges: A_ij = 1 if an edge joins i and j, and D is its column sum. With ``directed``
    it follows them: A_ij = 1 if an edge leads from j to i. At each step it restarts with probability c; P_ts is the
    share of time that a walk from s is at t. Only a restart leaves a node without edges to follow, so that P_ss = c
    there. (Page et al. 1999; as in the code of Zuegner et al. 2021.) Units have the values of their nodes. P is rounded
    to about 12 decimals, fewer if c is small, so that equivalent nodes have the same number; each pair that is not
    UNREACHABLE has its own row.

    Args:
        restart: c.
        threshold: pairs with a smaller P are UNREACHABLE; the authors use e^-5. None for no threshold.
        directed: whether the walk follows directions, as the authors' code does if it is given a directed matrix.

    Raises:
        EncodingError: c is not between 0 and 1, the threshold is negative, or there are more than 20,000 nodes.
    """

    arity = 2
    real = True
    version = 2
    codes = ("unreachable",)

    restart: float = 0.15
    threshold: float | None = 0.006737946999085467
    directed: bool = False

    def __post_init__(self) -> None:
        if not _LEAST <= self.restart < 1:
            raise EncodingError(
                f"encoding {self.name!r}: restart is {self.restart}; give a probability between 0 and 1"
            )
        if self.threshold is not None and not 0 <= self.threshold < math.inf:
            raise EncodingError(f"encoding {self.name!r}: threshold is {self.threshold}; give 0 or more, or None")

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        check_all_pairs(self, structures)
        graphs = Graphs.of(structures)
        found = OwnValues(graphs, np.array(float(UNREACHABLE)))
        most = np.inf if not self.threshold else -math.log(self.threshold)
        for members, linked in squares(graphs, self.directed):
            rarity = self._rarity(linked).reshape(len(members), -1)
            found.add(members, rarity, rarity <= most)
        return found.column()

    def _rarity(self, linked: NDArray[np.bool_]) -> NDArray[np.float64]:
        """(b, n, n) of adjacencies (source, target)."""
        walk = linked.swapaxes(1, 2) / np.maximum(linked.sum(axis=2), 1)[:, None]
        share = self.restart * np.linalg.inv(np.eye(linked.shape[1]) - (1 - self.restart) * walk)
        share = to_grid(share, _ERRORS * np.finfo(np.float64).eps / self.restart)
        rarity: NDArray[np.float64] = -np.log(np.maximum(share, 0.0) + 1e-9)
        return rarity
