"""Residual gated graph convolution (Bresson & Laurent 2017), with vectors of edges (Dwivedi et al. 2023)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structpe.data.adjacency import CSRAdjacency
from structpe.nn.convolutions.base import Convolution
from structpe.nn.propagation import gather, gather_target, scatter

__all__ = ["GatedGCN"]


class GatedGCN(Convolution, name="gatedgcn"):
    """x_i' = A x_i + sum_j g_ji B x_j / (sum_j g_ji + 1e-6),  g_ji = sigmoid(e'_ji),  e'_ji = C e_ji + D x_i + E x_j.

    Dwivedi et al. 2023, "Benchmarking Graph Neural Networks", whose edge gates are divided by their sum. Normalisation,
    rectifier and residual connection, of nodes and of edges, are the layer's.

    Args:
        width: d.
    """

    reads_edges = True
    updates_edges = True

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.own, self.edge, self.of_target = (nn.Linear(width, width) for _ in range(3))
        self.of_source = nn.Linear(width, 2 * width)  # B and E

    def forward(self, x: Tensor, edges: Tensor | None, adjacency: CSRAdjacency) -> tuple[Tensor, Tensor | None]:
        assert edges is not None
        passed, of_source = gather(self.of_source(x), adjacency).chunk(2, dim=-1)
        edges = self.edge(edges) + gather_target(self.of_target(x), adjacency) + of_source
        gates = edges.sigmoid()
        # One sum for both: gated vectors and gates side by side.
        summed, whole = scatter(torch.cat([gates * passed, gates], dim=-1), adjacency).chunk(2, dim=-1)
        return self.own(x) + summed / (whole + 1e-6), edges
