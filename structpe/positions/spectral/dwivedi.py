"""Laplacian eigenvectors at the input (Dwivedi and Bresson 2020)."""

from __future__ import annotations

from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.laplacian import Laplacian
from structpe.positions import Cells, Dims, PositionModel, Positions, Spec
from structpe.positions._checks import width_of
from structpe.positions.spectral._spectrum import flipped

__all__ = ["Dwivedi"]


class Dwivedi(PositionModel, name="dwivedi"):
    """Laplacian eigenvectors at the input (Dwivedi and Bresson 2020).

    x_u + W (s * V_u) + c: V_u the unit's entries of the k lowest eigenvectors, s a random sign each in training.

    An eigenvector and its negative are equally good; drawing one sign per eigenvector and batch while training, as in
    the authors' code, teaches the model to ignore signs. W is (d, k), c (d). (Dwivedi and Bresson 2020; survey, section
    4.3.2.) Their attention is also restricted to the neighbours of each node: ``dwivedi-neighbours`` has both. Table 1
    counts the eigenvectors as the embedding, without parameters.

    Args:
        dims: sizes of the Transformer.
        encoding: a vector per unit; random signs suit eigenvectors only.

    Raises:
        PositionError: the encoding gives a single number per unit, or is one of pairs.
    """

    spec = Spec(
        "dwivedi2020",
        "graph",
        Cells("A", "APE", learnable=True, recurring=False, unbound=True, params="k*d + d"),
        table1=Cells("A", "APE", learnable=False, recurring=False, unbound=True, params="0"),
        note="the code has a linear layer from k eigenvectors to the width of the model",
    )

    def __init__(self, dims: Dims, encoding: Encoding = Laplacian()) -> None:
        k = width_of(self.name, encoding)
        super().__init__(dims, [encoding], k=k)
        self.embed = nn.Linear(k, dims.width)

    def prepare(self, positions: Positions) -> Tensor:
        """(b, n, k) the eigenvectors at the queries, with the signs of this batch."""
        vectors: Tensor = positions.queries(self.encodings[0])
        return flipped(vectors) if self.training else vectors

    def inputs(self, x: Tensor, prepared: Tensor) -> Tensor:
        added: Tensor = self.embed(prepared.to(x.dtype))
        return x + added
