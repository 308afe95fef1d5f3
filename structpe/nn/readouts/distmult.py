"""DistMult (Yang et al. 2015)."""

from __future__ import annotations

from torch import Tensor

from structpe.nn.readouts._pairs import PairReadout

__all__ = ["DistMult"]


class DistMult(PairReadout, name="distmult", default=True):
    """s(h, r, t) = sum_k h_k r_k t_k.

    Yang et al. 2015, equation 2 with a diagonal matrix. The score is the same in both directions.
    """

    def score(self, given: Tensor, relation: Tensor, reverse: Tensor, candidates: Tensor) -> Tensor:
        del reverse
        return (given * relation) @ candidates.T
