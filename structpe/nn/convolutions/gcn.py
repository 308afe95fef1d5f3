"""Graph convolution (Kipf & Welling 2017)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structpe.data.adjacency import CSRAdjacency
from structpe.nn.convolutions.base import Convolution
from structpe.nn.propagation import propagate

__all__ = ["GCN"]


class GCN(Convolution, name="gcn"):
    """x_i' = W (x_i / D_i + sum_j x_j / sqrt(D_i D_j)) + b,  D_i = 1 + number of messages to i.

    Kipf & Welling 2017, equation 2; each node is its own neighbour. A self-loop of the graph is one more message, where
    PyG has one in place of it. Edge features are not read. In a sample, D is that of the full graph, and the messages
    that were drawn stand for all.

    Args:
        width: d.
    """

    keeps_sums = True
    glorot = True

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.linear = nn.Linear(width, width)
        nn.init.xavier_uniform_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x: Tensor, edges: Tensor | None, adjacency: CSRAdjacency) -> tuple[Tensor, Tensor | None]:
        exact = torch.promote_types(x.dtype, torch.float32)  # float16 ends at 65,504, degrees do not
        root = (1 + adjacency.whole_degrees).to(exact).rsqrt().to(x.dtype)[:, None]
        x = root * x
        sums = propagate(x, adjacency)
        if adjacency.whole is not None:
            sums = sums * (adjacency.whole / adjacency.degrees.clamp(min=1)).to(x.dtype)[:, None]
        return self.linear(root * (sums + x)), edges
