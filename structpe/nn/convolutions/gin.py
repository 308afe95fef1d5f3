"""Graph isomorphism network (Xu et al. 2019)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structpe.data.adjacency import CSRAdjacency
from structpe.nn.convolutions.base import Convolution
from structpe.nn.propagation import propagate

__all__ = ["GIN"]


class GIN(Convolution, name="gin"):
    """x_i' = MLP((1 + e) x_i + sum_j x_j),  MLP = Linear, rectifier, Linear; e is learned, 0 at first.

    Xu et al. 2019, equation 4.1. Edge features are not read.

    Args:
        width: d.
    """

    rectifies = True

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.mlp = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        self.own = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor, edges: Tensor | None, adjacency: CSRAdjacency) -> tuple[Tensor, Tensor | None]:
        return self.mlp((1 + self.own) * x + propagate(x, adjacency)), edges
