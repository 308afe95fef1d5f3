"""Heat that stays at its node, concatenated with the content (Rampasek et al. 2022)."""

from __future__ import annotations

from structpe.encodings.base import Encoding
from structpe.encodings.heat_kernel import HeatKernel
from structpe.positions import Dims, Spec
from structpe.positions.walks._statistics import CELLS, StructuralEncoding

__all__ = ["HeatKernelSE"]


class HeatKernelSE(StructuralEncoding, name="heat-kernel"):
    """Heat that stays at its node, concatenated with the content (Rampasek et al. 2022).

    cat[x_u, f(norm([h_u(t) for each time t]))]: HKdiagSE of GraphGPS. All else is as in ``rwse``.

    h_u(t) sums exp(-t lambda) v_u^2 over the eigenpairs of D - A, the eigenvalue 0 left out as in the code.

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
        self, dims: Dims, encoding: Encoding = HeatKernel(), width: int | None = None, layers: int = 0
    ) -> None:
        super().__init__(dims, encoding, width, layers)
