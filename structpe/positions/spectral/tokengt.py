"""Nodes and edges as tokens, whose ends are identified by Laplacian eigenvectors (Kim et al. 2022)."""

from __future__ import annotations

import torch
from torch import Tensor

from structpe.encodings.endpoints import Endpoints
from structpe.encodings.token_laplacian import TokenLaplacian
from structpe.positions import Cells, Dims, PositionModel, Positions, Spec
from structpe.positions.spectral._identifiers import Identify

__all__ = ["TokenGT"]


class TokenGT(PositionModel, name="tokengt"):
    """Nodes and edges as tokens, whose ends are identified by Laplacian eigenvectors (Kim et al. 2022).

    x_t + W [s * P_u, s * P_v] + E[u = v]: token t is the node u = v, or the edge from u to v.

    P_u has the node's entries of the k lowest eigenvectors of the Laplacian, the trivial one among them; s is a random
    sign for each eigenvector and structure in training, 1 in evaluation. W (d, 2k) without bias; E (2, d) tells nodes
    from edges, a self-loop looking like a node. The tokens are made by
    :func:`structpe.transforms.edge_tokens.edge_tokens`; in any other structure every unit is a node. (Kim et al. 2022,
    section 2.2; the authors' code, where random signs and a dropout of eigenvectors, not here, are options.) The tokens
    [graph] and [null] that the code adds are not positions: they would be units.

    Args:
        dims: sizes of the Transformer.
        encoding: eigenvectors at both ends.
    """

    spec = Spec(
        "kim2022", "graph", Cells("A", "APE", learnable=True, recurring=False, unbound=True, params="2*k*d + 2*d")
    )

    def __init__(self, dims: Dims, encoding: TokenLaplacian = TokenLaplacian()) -> None:
        super().__init__(dims, [encoding, Endpoints()], k=encoding.k)
        self.identify = Identify(encoding.k, dims.width)

    def prepare(self, positions: Positions) -> Tensor:
        """(b, n, d) the term to add."""
        vectors, ends = (positions.queries(encoding) for encoding in self.encodings)
        if self.training:
            signs = torch.randint(0, 2, (len(vectors), 1, vectors.shape[-1] // 2), device=vectors.device) * 2 - 1
            vectors = vectors * torch.cat([signs, signs], dim=-1)
        added: Tensor = self.identify(vectors.to(self.identify.types.dtype), ends)
        return added

    def inputs(self, x: Tensor, prepared: Tensor) -> Tensor:
        return x + prepared.to(x.dtype)
