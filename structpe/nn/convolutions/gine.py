"""Graph isomorphism network with edge features (Hu et al. 2020)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structpe.data.adjacency import CSRAdjacency
from structpe.nn.convolutions.base import Convolution
from structpe.nn.propagation import propagate_rectified

__all__ = ["GINE"]


class GINE(Convolution, name="gine"):
    """x_i' = MLP((1 + e) x_i + sum_j relu(x_j + e_ji)),  MLP = Linear, rectifier, Linear; e is learned, 0 at first.

    Hu et al. 2020, "Strategies for Pre-training Graph Neural Networks"; the rectifier inside the sum and e are those of
    OGB's code.

    Args:
        width: d.
    """

    reads_edges = True
    rectifies = True

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.mlp = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        self.own = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor, edges: Tensor | None, adjacency: CSRAdjacency) -> tuple[Tensor, Tensor | None]:
        assert edges is not None
        return self.mlp(torch.addcmul(propagate_rectified(x, edges, adjacency), x, 1 + self.own)), edges
