"""Sinusoids of positions far apart from each other: maximum variances position embeddings (Li et al. 2019)."""

from __future__ import annotations

from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.positions import Dims, Spec
from structpe.positions.sinusoidal._added import CELLS, AddedSinusoids

__all__ = ["MVPE"]


class MVPE(AddedSinusoids, name="mvpe"):
    """Sinusoids of positions far apart from each other: maximum variances position embeddings (Li et al. 2019).

    x_t + P_t with P_tj = sin(k t 10000^(-j/d)) for even j, cos(k t 10000^(-(j-1)/d)) for odd j.

    The sinusoids of ``sinusoidal`` at every k-th position, so that the slow channels vary as much as the fast ones.
    (Li et al. 2019; survey, eq. 25, which reports k > 1000 as suitable. No code is known.) Computed in float64.

    Args:
        dims: sizes of the Transformer.
        encoding: t, one number per unit.
        factor: k.

    Raises:
        PositionError: the encoding gives a vector per unit.
    """

    spec = Spec("li2019", "sequence", CELLS, table1=CELLS)

    def __init__(self, dims: Dims, encoding: Encoding = Order(), factor: float = 1001.0) -> None:
        super().__init__(dims, encoding)
        self.factor = factor

    def waves(self, places: Tensor) -> Tensor:
        return super().waves(places.double() * self.factor)
