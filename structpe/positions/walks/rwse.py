"""Return probabilities of random walks, concatenated with the content (Rampasek et al. 2022; Dwivedi et al. 2022)."""

from __future__ import annotations

from structpe.encodings.base import Encoding
from structpe.encodings.random_walk import RandomWalk
from structpe.positions import Dims, Spec
from structpe.positions.walks._statistics import CELLS, StructuralEncoding

__all__ = ["RWSE"]


class RWSE(StructuralEncoding, name="rwse"):
    """Return probabilities of random walks, concatenated with the content (Rampasek et al. 2022; Dwivedi et al. 2022).

    cat[x_u, f(norm([(P)_uu, ..., (P^k)_uu]))],  P = D^-1 A, p of the d channels of the input being the second part.

    f is linear, or has ``layers`` layers with rectifiers (inner width 2p); norm is batch normalisation, over the real
    units, kept between -5 and 5, which the code does not do: a rare ring is else tens of deviations away. (GraphGPS,
    its encoder of node statistics; after RWPE of Dwivedi et al. 2022, section 3.) Authors choose k and p per data set,
    20 and 28 of 64 for ZINC. x is the content in the other d - p channels: the last p channels of the input of the
    layers are overwritten.

    Walks ignore the direction of edges by default; the code follows it, and its data sets have each edge in both
    directions. With directions, a directed acyclic graph has only zeros.

    Args:
        dims: sizes of the Transformer.
        encoding: a vector of k statistics per unit.
        width: p; None for a quarter of the model's width.
        layers: of f; 0 for a linear map without a rectifier.

    Raises:
        PositionError: the encoding gives a single number per unit, or p leaves no channels for content.
    """

    spec = Spec("rampasek2022", "graph", CELLS)

    def __init__(
        self, dims: Dims, encoding: Encoding = RandomWalk(undirected=True), width: int | None = None, layers: int = 0
    ) -> None:
        super().__init__(dims, encoding, width, layers)
