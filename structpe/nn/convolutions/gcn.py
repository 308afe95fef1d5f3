"""Graph convolution (Kipf & Welling 2017)."""

from __future__ import annotations

from torch import Tensor, nn

from structpe.data.adjacency import CSRAdjacency
from structpe.nn.convolutions.base import Convolution
from structpe.nn.propagation import propagate

__all__ = ["GCN"]


class GCN(Convolution, name="gcn"):
    """x_i' = W (x_i / D_i + sum_j x_j / sqrt(D_i D_j)) + b,  D_i = 1 + number of messages to i.

    Kipf & Welling 2017, equation 2; each node is its own neighbour. Edge features are not read.

    Args:
        width: d.
    """

    keeps_sums = True

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.linear = nn.Linear(width, width)
        nn.init.xavier_uniform_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x: Tensor, edges: Tensor | None, adjacency: CSRAdjacency) -> tuple[Tensor, Tensor | None]:
        own = adjacency.inverse_degrees.to(x.dtype)[:, None]
        return self.linear(propagate(x, adjacency, adjacency.symmetric_weights) + own * x), edges
