"""GraphSAGE with the mean of the neighbours (Hamilton et al. 2017)."""

from __future__ import annotations

from torch import Tensor, nn

from structpe.data.adjacency import CSRAdjacency
from structpe.nn.convolutions.base import Convolution
from structpe.nn.propagation import propagate

__all__ = ["SAGE"]


class SAGE(Convolution, name="sage"):
    """x_i' = A x_i + B mean_j x_j;  without neighbours the mean is 0.

    Hamilton et al. 2017, section 3.3, without its normalisation to length 1. Edge features are not read.

    Args:
        width: d.
    """

    keeps_sums = True

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.own, self.neighbours = nn.Linear(width, width), nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor, edges: Tensor | None, adjacency: CSRAdjacency) -> tuple[Tensor, Tensor | None]:
        mean = propagate(x, adjacency) / adjacency.degrees.clamp(min=1).to(x.dtype)[:, None]
        return self.own(x) + self.neighbours(mean), edges
