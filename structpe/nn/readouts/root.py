"""The root of a graph."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from structpe.data.batch import Batch
from structpe.nn.readouts.base import Readout

__all__ = ["Root"]


class Root(Readout, name="root", level="graph"):
    """r_g = x_root, for trees; the first node of a graph without a root."""

    def forward(self, x: Float[Tensor, "N d"], batch: Batch) -> Float[Tensor, "g d"]:
        return x[batch.roots]
