"""The mean over the nodes of a graph."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from structpe.data.batch import Batch
from structpe.nn.readouts._pooling import summed
from structpe.nn.readouts.base import Readout

__all__ = ["Mean"]


class Mean(Readout, name="mean", level="graph", default=True):
    """r_g = 1/n_g sum_i x_i over the n_g nodes of graph g."""

    def forward(self, x: Float[Tensor, "N d"], batch: Batch) -> Float[Tensor, "g d"]:
        return summed(x, batch) / batch.sizes[:, None].to(x.dtype)
