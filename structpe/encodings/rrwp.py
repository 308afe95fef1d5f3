"""Relative random walks: the probability to get from one node to another in 0, 1, 2, ... steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from structpe.encodings._rounding import significant
from structpe.encodings.base import Encoded, Encoding, check_all_pairs, check_sizes, narrow
from structpe.structure import Structure

__all__ = ["RRWP"]


@dataclass(frozen=True)
class RRWP(Encoding, name="rrwp"):
    """P_ts = [I, M, M^2, ..., M^(steps - 1)]_ts with M = D^-1 A: values (r, steps), float64.

    (Ma et al. 2023, GRIT.) M_ts is the probability of a step from the node of query t to that of key s. A counts edges,
    each of several parallel ones and each self-loop once; D is its row sum; rows of nodes without an outgoing edge are
    zero (as in :class:`RandomWalk`, which has the diagonals). In a directed structure walks follow directions. Units of
    one node have the value of the node with itself. Probabilities have 11 significant digits, so that equivalent pairs
    have the same value.

    The authors' code lists pairs in the other order: its pair of source j and target i, over which i attends to j, has
    (M^k)_ij, as here.

    Args:
        steps: K, number of powers, including the identity: 8 in the code, 17 to 24 in its configurations.

    Raises:
        EncodingError: more than 20,000 / sqrt(steps) nodes: 7,071 with 8 steps.
    """

    arity = 2
    real = True
    version = 2

    steps: int = 8

    def __post_init__(self) -> None:
        check_sizes(self, steps=self.steps)

    def one(self, structure: Structure) -> Encoded:
        check_all_pairs(self, [structure], self.steps)
        powers = self._powers(structure)
        n, owner = structure.size, structure.unit_owner
        rows = np.ascontiguousarray(powers.reshape(n * n, self.steps))
        # Comparing rows as bytes is several times faster.
        items = rows.view(np.dtype((np.void, rows.itemsize * self.steps))).reshape(-1)
        _, first, index = np.unique(items, return_index=True, return_inverse=True)
        return Encoded(rows[first], narrow(index.reshape(n, n)[owner[:, None], owner[None, :]]))

    def _powers(self, structure: Structure) -> NDArray[np.float64]:
        """(n, n, steps)."""
        counts = structure.adjacency()
        walk = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
        powers = [np.eye(structure.size)]
        while len(powers) < self.steps:
            powers.append(powers[-1] @ walk)
        return significant(np.stack(powers, axis=-1))  # sums of products above 0, whose relative errors are small
