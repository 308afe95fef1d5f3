"""Attention over listed pairs that are a large part of all pairs: a mask, and the kernel that is best with it."""

from __future__ import annotations

from torch import Tensor

from structpe.attention.attend import attend_masked, cost_masked, kernel
from structpe.terms import Terms

__all__ = ["masked"]


@kernel(
    "masked",
    supports="maps factors bias gate mask key query product value act scale pairs causal",
    cost=cost_masked,
    needs="pairs",
)
def masked(q: Tensor, k: Tensor, v: Tensor, terms: Terms, dropout: float = 0.0) -> Tensor:
    """Time and memory of all pairs, which products of matrices compute much faster than listed ones."""
    return attend_masked(q, k, v, terms, dropout)
