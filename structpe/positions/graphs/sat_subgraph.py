"""Queries and keys from a graph network over the subgraph around each node (Chen et al. 2022, the k-subgraph SAT)."""

from __future__ import annotations

import torch
from torch import Tensor

from structpe.encodings.base import WITHIN
from structpe.encodings.distance import UndirectedDistance
from structpe.positions import Cells, Dims, Positions, Spec
from structpe.positions.graphs._extractors import Extracting, Extractor, Surroundings
from structpe.positions.spectral._nodes import Nodes
from structpe.terms import Lookup

__all__ = ["SATSubgraph"]


class SATSubgraph(Extracting, name="sat-subgraph"):
    """Queries and keys from a graph network over the subgraph around each node (Chen et al. 2022, the k-subgraph SAT).

    q and k are projected from e_i = U norm(cat[x_i, sum_u x^k_u]) + u, u over the nodes up to k edges from i.

    ::

        x^l_u = relu(W_l x^(l-1)_u + w_l + V_l sum_j x^(l-1)_j),    j over the neighbours of u up to k edges from i

    The network runs in the subgraph around each i by itself, so that it distinguishes more than that of ``sat``, which
    has everything else in common; U is (d, 2 d). It takes memory b n^2 d, and so is for small graphs. (Chen D. et al.
    2022, section 4, the k-subgraph extractor; the authors' code, "khopgnn".)

    Args:
        dims: sizes of the Transformer.
        hops: k, which is also the number of layers of the network.
    """

    spec = Spec(
        "chen2022",
        "graph",
        Cells("A", "MAM", learnable=True, recurring=True, unbound=True, params="l*(k*(2*d*d + d) + 4*d + 2*d*d + d)"),
        note="what queries and keys are made of changes with the graph around a unit: at the ends of a path, say",
    )

    def __init__(self, dims: Dims, hops: int = 2) -> None:
        self.distance, self.hops = UndirectedDistance(limit=hops + 1), hops
        extractors: list[Extractor] = [_Subgraph(dims.width, hops, 2) for _ in range(dims.layers)]
        super().__init__(dims, [self.distance], extractors, hops)

    def prepare(self, positions: Positions) -> Surroundings:
        """The neighbours of each unit and the members of its subgraph, once for all layers."""
        nodes = Nodes.of(positions, self.unit_count, next(self.parameters()).dtype)
        far: Lookup = positions[self.distance]
        near = far.map(lambda d: (d <= self.hops) | (d > WITHIN // 2))  # units of one node are in it
        members = near.dense() & (nodes.weights > 0)
        neighbours = torch.where(far.map(lambda d: d == 1).dense(), nodes.weights, 0)
        return Surroundings(nodes, neighbours, members)


class _Subgraph(Extractor):
    def gathered(self, x: Tensor, surroundings: Surroundings) -> Tensor:
        assert surroundings.members is not None  # prepared above
        members = surroundings.members[..., None]
        inside, neighbours = torch.where(members, x[:, None], 0), surroundings.neighbours[:, None]
        for convolution in self.convolutions:
            inside = torch.where(members, convolution(inside, neighbours), 0)
        summed = (inside * surroundings.nodes.shares[:, None, :, None]).sum(2)
        return torch.cat([x, summed], dim=-1)
