"""The largest numbers over the nodes of a graph."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from structpe.data.batch import Batch
from structpe.nn.readouts.base import Readout

__all__ = ["Max"]


class Max(Readout, name="max", level="graph"):
    """r_g = max_i x_i over the nodes of graph g, in each dimension (Qi et al. 2017)."""

    def forward(self, x: Float[Tensor, "N d"], batch: Batch) -> Float[Tensor, "g d"]:
        lowest = x.new_full((len(batch.sizes), x.shape[1]), -torch.inf)
        return lowest.scatter_reduce(0, batch.graph[:, None].expand_as(x), x, "amax")
