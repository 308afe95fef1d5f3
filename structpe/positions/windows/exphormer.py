"""Attention along edges and a random expander, scores weighed by the type of the edge (Shirzad et al. 2023)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structpe.encodings.expander import Expander
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions.windows._sparse import clipped
from structpe.terms import SparsePairs, Terms

__all__ = ["Exphormer"]


class Exphormer(PositionModel, name="exphormer"):
    """Attention along edges and a random expander, scores weighed by the type of the edge (Shirzad et al. 2023).

    s_ij = clip(sum_c q_ic k_jc e_ijc / sqrt(d_h), -5, 5) for listed pairs only, e_ij = W E[type of ij] of the layer.

    The pairs are those of edges, of a random expander, and of the virtual node: see :class:`Expander`. E (T, w) embeds
    their types and is shared by the layers; W (d, w) without bias is of each. (Shirzad et al. 2023, section 3; the
    authors' code, its attention.) The expander is drawn once per structure, in training and evaluation, as in the code.

    The code adds 1e-6 to the denominator of the softmax; the features of its edges may be anything, here they are
    labels. It gives virtual nodes a separate state outside the graph; here they are nodes, of
    :func:`structpe.transforms.virtual.with_virtual_node`, with the embedding of their text.

    Args:
        dims: sizes of the Transformer.
        encoding: the listed pairs and their types.
        width: w; None for d, as in the code.
    """

    spec = Spec(
        "shirzad2023",
        "graph",
        Cells("B", "MAM", learnable=True, recurring=True, unbound=False, params="T*w + l*d*w"),
        note="its edges are relative, but its random ones are another graph for another number of nodes",
    )

    def __init__(self, dims: Dims, encoding: Expander = Expander(), width: int | None = None) -> None:
        width = dims.width if width is None else width
        super().__init__(dims, [encoding], T=encoding.size, w=width)
        self.types = nn.Parameter(torch.randn(encoding.size, width))
        self.weigh = nn.ModuleList(nn.Linear(width, dims.width, bias=False) for _ in range(dims.layers))

    def prepare(self, positions: Positions) -> SparsePairs:
        """The pairs with the types that occur."""
        listed: SparsePairs = positions[self.encodings[0]]
        return listed

    def terms(self, prepared: SparsePairs, site: Site) -> Terms:
        def weights(types: Tensor) -> Tensor:
            of_types: Tensor = self.weigh[site.layer](self.types[types])
            return of_types.view(len(types), self.dims.heads, self.dims.head) - 1  # the product is added to q.k

        return Terms(product=(prepared.map(weights),), act=clipped, pairs=(prepared.pairs,))
