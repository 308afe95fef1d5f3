"""What both forms of PEARL share: powers of the Laplacian on vectors of the nodes, and a graph network over them."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor, nn
from torch.nn import functional

from structpe.encodings.adjacency import Adjacency
from structpe.encodings.base import Encoding
from structpe.encodings.unit_count import UnitCount
from structpe.positions import Dims, PositionModel, Positions
from structpe.positions._perceptron import GraphIsomorphism, count_perceptron
from structpe.positions.spectral._nodes import Nodes

__all__ = ["Pearl"]


class Pearl(PositionModel):
    """x_u + U pool_m phi(relu(A [w_m, L w_m, ..., L^(K-1) w_m] + a))_u + c; subclasses choose w_m and pool.

    Args:
        dims: sizes of the Transformer.
        encodings: what the vectors w are made of, besides the graph.
        powers: K.
        hidden: width of A's output and inside phi.
        width: p, of phi's output.
        layers: of phi.
    """

    def __init__(
        self, dims: Dims, encodings: list[Encoding], powers: int, hidden: int, width: int, layers: int
    ) -> None:
        self.adjacency, self.unit_count = Adjacency(), UnitCount()
        super().__init__(dims, [self.adjacency, self.unit_count, *encodings], k=powers, w=hidden, p=width, m=layers)
        self.powers = powers
        self.enter = nn.Linear(powers, hidden)
        self.phi = GraphIsomorphism(hidden, hidden, width, layers)
        self.embed = nn.Linear(width, dims.width)

    @property
    def causal(self) -> bool:
        """No: an edge to a later unit changes the Laplacian."""
        return False

    def prepare(self, positions: Positions) -> Tensor:
        """(b, n, p) the pooled output of phi; 0 for padding."""
        nodes = Nodes.of(positions, self.unit_count, self.embed.weight.dtype)
        neighbours = nodes.neighbours(positions, self.adjacency)
        degree = neighbours.sum(-1).clamp(min=1).rsqrt()
        walk = degree[:, :, None] * neighbours * degree[:, None]
        each = [self.vectors(positions, nodes)]
        while len(each) < self.powers:
            each.append(each[-1] - walk @ each[-1])
        entered = torch.relu(self.enter(torch.stack(each, dim=-1)))
        # The last layer of phi is linear and follows the pooling.
        pooled, weight = self.pooled(self.phi.before_last(entered, neighbours), nodes)
        of_units = functional.linear(pooled, self.phi.last.weight) + weight * self.phi.last.bias
        return torch.where(nodes.present[..., None], of_units, 0)

    @abstractmethod
    def vectors(self, positions: Positions, nodes: Nodes) -> Tensor:
        """(b, n, M) w of each unit."""

    @abstractmethod
    def pooled(self, x: Tensor, nodes: Nodes) -> tuple[Tensor, Tensor]:
        """(b, n, c) a weighted sum over m of x (b, n, M, c), and (b or 1, 1, 1) the sum of its weights."""

    def inputs(self, x: Tensor, prepared: Tensor) -> Tensor:
        added: Tensor = self.embed(prepared)
        return x + added.to(x.dtype)

    params = f"(k + 1)*w + {GraphIsomorphism.count('w', 'w', 'p', 'm')} + {count_perceptron('p', 'd')}"
    """Formula of the number of parameters."""
