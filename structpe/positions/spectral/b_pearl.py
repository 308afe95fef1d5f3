"""A graph network over the unit vectors of the nodes, summed over all of them (Kanatsoulis et al. 2025, B-PEARL)."""

from __future__ import annotations

from torch import Tensor

from structpe.positions import Cells, Dims, Positions, Spec
from structpe.positions.spectral._nodes import Nodes
from structpe.positions.spectral._pearl import Pearl
from structpe.terms import Lookup

__all__ = ["BPearl"]

_SELF = 4


class BPearl(Pearl, name="b-pearl"):
    """A graph network over the unit vectors of the nodes, summed over all of them (Kanatsoulis et al. 2025, B-PEARL).

    x_u + U sum_v phi(relu(A [e_v, L e_v, ..., L^(K-1) e_v] + a))_u + c,  e_v (n) the unit vector of node v.

    As ``r-pearl``, with unit vectors in place of random ones: nothing is drawn, and it takes memory n^2 times the width
    of phi. The first layer sees (L^k)_uv of each pair of nodes, as ``stable-expressive-gin`` sees learned functions of
    L, but without eigenvectors. (Kanatsoulis et al. 2025; the authors' code, whose configuration for ZINC has K 7 and
    phi of 8 layers.)

    Args:
        dims: sizes of the Transformer.
        powers: K.
        hidden: w, also the width inside phi.
        width: p.
        layers: of phi.
    """

    spec = Spec(
        "kanatsoulis2025",
        "graph",
        Cells("A", "APE", learnable=True, recurring=False, unbound=True, params=Pearl.params),
    )

    def __init__(self, dims: Dims, powers: int = 7, hidden: int = 32, width: int = 16, layers: int = 2) -> None:
        super().__init__(dims, [], powers, hidden, width, layers)

    def vectors(self, positions: Positions, nodes: Nodes) -> Tensor:
        codes: Lookup = positions[self.adjacency]  # larger ones are of two units of one node
        return codes.map(lambda code: code >= _SELF).dense().to(nodes.shares.dtype) * nodes.present[..., None]

    def pooled(self, x: Tensor, nodes: Nodes) -> tuple[Tensor, Tensor]:
        summed = (x * nodes.shares[:, None, :, None]).sum(2)
        return summed, nodes.shares.sum(-1)[:, None, None]
