"""Sums over the nodes of each graph."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from structpe.data.batch import Batch

__all__ = ["summed"]


def summed(x: Float[Tensor, "N d"], batch: Batch) -> Float[Tensor, "g d"]:
    """The sum over the nodes of each graph."""
    return x.new_zeros(len(batch.sizes), x.shape[1]).index_add(0, batch.graph, x)
