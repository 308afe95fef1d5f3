"""The sum over the nodes of a graph."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from structpe.data.batch import Batch
from structpe.nn.readouts._pooling import summed
from structpe.nn.readouts.base import Readout

__all__ = ["Sum"]


class Sum(Readout, name="sum", level="graph"):
    """r_g = sum_i x_i over the nodes of graph g (Xu et al. 2019)."""

    def forward(self, x: Float[Tensor, "N d"], batch: Batch) -> Float[Tensor, "g d"]:
        return summed(x, batch)
