"""Relative random walks: the probability to get from one node to another in 0, 1, 2, ... steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from structpe.encodings._graphs import Graphs
from structpe.encodings._walks import Walks
from structpe.encodings.base import Column, Encoded, Encoding, check_all_pairs, check_sizes
from structpe.structure import Structure

__all__ = ["RRWP"]


@dataclass(frozen=True)
class RRWP(Encoding, name="rrwp"):
    """Relative random walks: the probability to get from one node to another in 0, 1, 2, ... steps.

    P_ts = [I, M, M^2, ..., M^(steps - 1)]_ts with M = D^-1 A: values (r, steps), float64.

    (Ma et al. 2023, GRIT.) M_ts is the probability of a step from the node of query t to that of key s. A counts edges,
    each of several parallel ones and each self-loop once; D is its row sum; rows of nodes without an outgoing edge are
    zero (as in :class:`RandomWalk`, which has the diagonals). In a directed structure walks follow directions. Units of
    one node have the value of the node with itself. Probabilities have 11 significant digits, so that pairs that a
    symmetry exchanges have the same. Pairs that no walk of this length joins share a row of zeros, and each other pair
    of nodes has its own row.

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
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        check_all_pairs(self, structures, self.steps)
        return Walks.of(Graphs.of(structures), undirected=False).powers(self.steps)
