"""Sinusoidal absolute positions, interleaved (Vaswani et al. 2017; survey, eq. 21)."""

from __future__ import annotations

from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.positions._rows import of_arity
from structpe.positions._waves import interleaved
from structpe.positions.base import Cells, Dims, PositionModel, Positions, Spec

__all__ = ["Sinusoidal"]


class Sinusoidal(PositionModel, name="sinusoidal"):
    """x_t + P_t with P_tj = sin(t 10000^(-j/d)) for even j, cos(t 10000^(-(j-1)/d)) for odd j.

    t is what the encoding says of a unit: its place in the sequence, its depth in a tree. (Vaswani et al. 2017; survey,
    eq. 21.) The authors' own code concatenates sines and cosines and divides by d/2 - 1: that is another row of the
    registry where the registry has it; this is the survey's and OpenNMT's form.

    Args:
        dims: sizes of the Transformer.
        encoding: integers per unit.
    """

    spec = Spec(
        cite="vaswani2017",
        structure="sequence",
        cells=Cells("A", "APE", learnable=False, recurring=False, unbound=True, params="0"),
        table1=Cells("A", "APE", learnable=False, recurring=False, unbound=True, params="0"),
    )

    def __init__(self, dims: Dims, encoding: Encoding = Order()) -> None:
        super().__init__(dims, [of_arity(self.name, encoding, 1)])

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        places = prepared.queries(self.encodings[0])
        return x + interleaved(places, self.dims.width).to(x.dtype)
