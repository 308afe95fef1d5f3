"""TransE (Bordes et al. 2013)."""

from __future__ import annotations

import torch
from torch import Tensor

from structpe.nn.readouts._pairs import PairReadout

__all__ = ["TransE"]


class TransE(PairReadout, name="transe"):
    """s(h, r, t) = -||h + r - t||, the Euclidean norm (Bordes et al. 2013, equation 1 with the L2 norm).

    The authors keep entities on the unit sphere and train with a margin; here vectors are free, and the loss is that of
    the objective.
    """

    def score(self, given: Tensor, relation: Tensor, reverse: Tensor, candidates: Tensor) -> Tensor:
        wanted = given + torch.where(reverse, -relation, relation)
        # |w - t|^2 = |w|^2 - 2 w.t + |t|^2 takes (q, N) numbers; the differences themselves would take (q, N, d).
        squares = wanted.square().sum(1, keepdim=True) - 2 * wanted @ candidates.T + candidates.square().sum(1)
        return -squares.clamp(min=1e-12).sqrt()
