"""Graph attention with dynamic scores (Brody et al. 2022), of PyTorch Geometric."""

from __future__ import annotations

import torch
from torch import Tensor

from structpe.data.adjacency import CSRAdjacency
from structpe.errors import needing
from structpe.nn.convolutions.base import Convolution

__all__ = ["GATv2"]


class GATv2(Convolution, name="gatv2"):
    """x_i' = sum_j a_ji V x_j,  a_ji = softmax_j(a . leaky(U x_i + V x_j + W e_ji)), each node its own neighbour too.

    Brody et al. 2022, equations 3, 4 and 7; one head. It is PyTorch Geometric's GATv2Conv; e_ii is the mean of the
    vectors of the edges to node i.

    Args:
        width: d.

    Raises:
        MissingExtra: PyTorch Geometric is not installed.
    """

    reads_edges = True

    def __init__(self, width: int) -> None:
        super().__init__(width)
        with needing("torch_geometric", "pyg"):
            from torch_geometric.nn import GATv2Conv  # slow to import

        self.convolution = GATv2Conv(width, width, edge_dim=width)

    def forward(self, x: Tensor, edges: Tensor | None, adjacency: CSRAdjacency) -> tuple[Tensor, Tensor | None]:
        return self.convolution(x, torch.stack([adjacency.source, adjacency.target]), edge_attr=edges), edges
