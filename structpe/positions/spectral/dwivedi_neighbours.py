"""Laplacian eigenvectors at the input, attention along edges only (Dwivedi and Bresson 2020)."""

from __future__ import annotations

from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.laplacian import Laplacian
from structpe.encodings.neighbours import Neighbours
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions._checks import width_of
from structpe.positions.spectral._spectrum import flipped
from structpe.positions.windows._sparse import clipped, of_listed_pairs
from structpe.terms import Pairs, SparsePairs, Terms

__all__ = ["DwivediNeighbours"]


class DwivediNeighbours(PositionModel, name="dwivedi-neighbours"):
    """Laplacian eigenvectors at the input, attention along edges only (Dwivedi and Bresson 2020).

    s_ij = clip(q_i.k_j / sqrt(d_h), -5, 5) where an edge joins i and j, and no other pair;  x_u + W (s * V_u) + c.

    V_u are the unit's entries of the k lowest eigenvectors, s a random sign each in training, one for the whole batch;
    W is (d, k), c (d). (Dwivedi and Bresson 2020, section 2.3, and the authors' code, which clips the scores.)
    ``dwivedi`` is the same with all pairs and no clipping.

    A unit attends to itself only if its node has a self-loop: the same holds in the code unless loops are added to the
    data; ``Neighbours(itself=True)`` adds them. Units of one node are neighbours. A unit without neighbours gets zeros,
    where the code divides by zero. The authors' second form, which multiplies scores by features of edges and updates
    these, is not included: ``exphormer`` multiplies them by types of edges.

    Args:
        dims: sizes of the Transformer.
        encoding: a vector per unit; random signs suit eigenvectors only.
        neighbours: which pairs attend.

    Raises:
        PositionError: the encoding gives a single number per unit, or the neighbours are not listed pairs.
    """

    spec = Spec(
        "dwivedi2020", "graph", Cells("B", "both", learnable=True, recurring=True, unbound=True, params="k*d + d")
    )

    def __init__(self, dims: Dims, encoding: Encoding = Laplacian(), neighbours: Encoding = Neighbours()) -> None:
        k = width_of(self.name, encoding)
        super().__init__(dims, [encoding, of_listed_pairs(self.name, neighbours)], k=k)
        self.embed = nn.Linear(k, dims.width)

    def prepare(self, positions: Positions) -> tuple[Tensor, Pairs]:
        """(b, n, k) the eigenvectors at the queries, with the signs of this batch; and the pairs that attend."""
        vectors: Tensor = positions.queries(self.encodings[0])
        listed: SparsePairs = positions[self.encodings[1]]
        return flipped(vectors) if self.training else vectors, listed.pairs

    def inputs(self, x: Tensor, prepared: tuple[Tensor, Pairs]) -> Tensor:
        added: Tensor = self.embed(prepared[0].to(x.dtype))
        return x + added

    def terms(self, prepared: tuple[Tensor, Pairs], site: Site) -> Terms:
        return Terms(act=clipped, pairs=(prepared[1],))
