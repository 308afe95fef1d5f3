"""The nodes themselves."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from structpe.data.batch import Batch
from structpe.nn.readouts.base import Readout

__all__ = ["Node"]


class Node(Readout, name="node", level="node", default=True):
    """r_i = x_i of each node of ``Batch.target_mask``, of all nodes where the batch has none."""

    def forward(self, x: Float[Tensor, "N d"], batch: Batch) -> Float[Tensor, "c d"]:
        return x if batch.target_mask is None else x[batch.target_mask]
