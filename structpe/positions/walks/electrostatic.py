"""Statistics of electrostatic potentials, concatenated with the content (Rampasek et al. 2022)."""

from __future__ import annotations

from structpe.encodings.base import Encoding
from structpe.encodings.electrostatic import Electrostatic
from structpe.positions import Dims, Spec
from structpe.positions.walks._statistics import CELLS, StructuralEncoding

__all__ = ["ElectrostaticSE"]


class ElectrostaticSE(StructuralEncoding, name="electrostatic"):
    """Statistics of electrostatic potentials, concatenated with the content (Rampasek et al. 2022).

    cat[x_u, f(norm(s_u))]: ElstaticSE of GraphGPS. All else is as in ``rwse``.

    s_u are ten statistics of the potentials G_ij - G_jj, G being the pseudo-inverse of D - A; one of them is there
    twice, as in the code.

    Args:
        dims: sizes of the Transformer.
        encoding: a vector of k statistics per unit.
        width: p, how many of the d channels are the second part; None for a quarter of them.
        layers: of f; 0 for a linear map without a rectifier.

    Raises:
        PositionError: the encoding gives a single number per unit, or p leaves no channels for content.
    """

    spec = Spec("rampasek2022", "graph", CELLS)

    def __init__(
        self, dims: Dims, encoding: Encoding = Electrostatic(), width: int | None = None, layers: int = 0
    ) -> None:
        super().__init__(dims, encoding, width, layers)
