"""Graph attention (Veličković et al. 2018)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from structpe.data.adjacency import CSRAdjacency
from structpe.nn.convolutions.base import Convolution
from structpe.nn.propagation import gather, gather_target, propagate_weighted, scatter

__all__ = ["GAT"]


class GAT(Convolution, name="gat"):
    """x_i' = sum_j a_ji W x_j,  a_ji = softmax_j(leaky(u . W x_i + v . W x_j)),  each node its own neighbour too.

    Veličković et al. 2018, equations 1 to 4; one head, leaky(z) = max(z, 0.2 z), without dropout of weights. A
    self-loop of the graph is one more message. Edge features are not read. Weights are computed in float32 at least.

    Args:
        width: d.
    """

    glorot = True

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.linear = nn.Linear(width, width, bias=False)
        self.scores = nn.Linear(width, 2, bias=False)  # u and v
        for linear in (self.linear, self.scores):
            nn.init.xavier_uniform_(linear.weight)

    def forward(self, x: Tensor, edges: Tensor | None, adjacency: CSRAdjacency) -> tuple[Tensor, Tensor | None]:
        x = self.linear(x)
        of_target, of_source = self.scores(x).to(torch.promote_types(x.dtype, torch.float32)).split(1, dim=-1)
        score = functional.leaky_relu(gather_target(of_target, adjacency) + gather(of_source, adjacency), 0.2)
        own = functional.leaky_relu(of_target + of_source, 0.2)
        largest = _largest(score.detach(), own.detach(), adjacency)
        weight, own = (score - largest.index_select(0, adjacency.target)).exp(), (own - largest).exp()
        total = scatter(weight, adjacency) + own
        weight = weight / gather_target(total, adjacency)
        return propagate_weighted(x, weight[:, 0].to(x.dtype), adjacency) + (own / total).to(x.dtype) * x, edges


def _largest(score: Tensor, own: Tensor, adjacency: CSRAdjacency) -> Tensor:
    """The largest score of each node, (N, 1), which is subtracted so that no exponential overflows."""
    return own.scatter_reduce(0, adjacency.target[:, None], score, "amax")
