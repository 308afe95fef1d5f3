"""Queries and keys from a graph network over a few hops (Chen et al. 2022, the k-subtree SAT)."""

from __future__ import annotations

import torch
from torch import Tensor

from structpe.encodings.adjacency import Adjacency
from structpe.positions import Cells, Dims, Positions, Spec
from structpe.positions.graphs._extractors import Extracting, Extractor, Surroundings
from structpe.positions.spectral._nodes import Nodes

__all__ = ["SAT"]


class SAT(Extracting, name="sat"):
    """Queries and keys from a graph network over a few hops (Chen et al. 2022, the k-subtree SAT).

    q and k are projected from e_i = U norm(cat[x_i, x^1_i, ..., x^k_i]) + u in place of x_i; v from x_i as always.

    ::

        x^l_i = relu(W_l x^(l-1)_i + w_l + V_l sum_j x^(l-1)_j),    j over the nodes that an edge joins with i,  x^0 = x

    W_l, V_l (d, d), w_l (d), U (d, (k + 1) d), u (d) are of each layer; norm is batch normalisation over real units.
    (Structure-aware self-attention with the k-subtree extractor, Chen D. et al. 2022, section 4; the authors' code,
    which takes any graph network: this is its type "graph", the default of the model there.) ``sat-subgraph`` has the
    k-subgraph extractor. Other position models can be added, as with any that leaves attention itself alone.

    Unlike the code: an edge counts in both directions, a self-loop and edge labels do not count, units of one node are
    averaged in the sum over neighbours, and the layers of this library normalise x before; the code's factor of
    1/sqrt(degree) after attention, an option there, is not included.

    Args:
        dims: sizes of the Transformer.
        hops: k.
    """

    spec = Spec(
        "chen2022",
        "graph",
        Cells(
            "A",
            "MAM",
            learnable=True,
            recurring=True,
            unbound=True,
            params="l*(k*(2*d*d + d) + 2*(k + 1)*d + (k + 1)*d*d + d)",
        ),
        note="what queries and keys are made of changes with the graph around a unit: at the ends of a path, say",
    )

    def __init__(self, dims: Dims, hops: int = 2) -> None:
        self.adjacency = Adjacency()
        extractors: list[Extractor] = [_Subtree(dims.width, hops, hops + 1) for _ in range(dims.layers)]
        super().__init__(dims, [self.adjacency], extractors, hops)

    def prepare(self, positions: Positions) -> Surroundings:
        """The neighbours of each unit, once for all layers."""
        nodes = Nodes.of(positions, self.unit_count, next(self.parameters()).dtype)
        return Surroundings(nodes, nodes.neighbours(positions, self.adjacency))


class _Subtree(Extractor):
    def gathered(self, x: Tensor, surroundings: Surroundings) -> Tensor:
        each = [x]
        for convolution in self.convolutions:
            each.append(convolution(each[-1], surroundings.neighbours))
        return torch.cat(each, dim=-1)
