"""Sinusoids of how many units are still to come, given the length (Takase and Okazaki 2019)."""

from __future__ import annotations

from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.encodings.size import Size
from structpe.positions import Cells, Dims, PositionModel, Positions, Spec
from structpe.positions._checks import numbers, of_arity
from structpe.positions.sinusoidal._lengths import difference

__all__ = ["LengthDifference"]


class LengthDifference(PositionModel, name="length-difference"):
    """x_t + P_t,  P_t = cat[sin((l + 1 - t) omega_i), cos((l + 1 - t) omega_i)],  omega_i = 10000^(-i/(d/2 - 1)).

    t = 0, 1, ..., and l is the length that the text shall have: by default the number of its units, as when training
    on given texts. A decoder is told: give the nodes a feature and take ``length=Feature("length")``. (Takase and
    Okazaki 2019, LDPE, and their code; survey, eq. 32, with l - t, interleaved, and exponents -2i/d.) In the code the
    unit after the last, at t = l, has a row for padding: zeros; so it has here. Ordinary sinusoids may be added, as
    there: ``["sinusoidal-concatenated", "length-difference"]``, with ``start=2``.

    Args:
        dims: sizes of the Transformer.
        encoding: t, one number per unit.
        length: l, one number per unit.

    Raises:
        PositionError: an encoding gives a vector per unit.
    """

    spec = Spec(
        "takase2019",
        "sequence",
        Cells("A", "APE", learnable=False, recurring=False, unbound=True, params="0"),
        table1=Cells("A", "APE", learnable=False, recurring=False, unbound=True, params="0"),
    )

    def __init__(self, dims: Dims, encoding: Encoding = Order(), length: Encoding = Size()) -> None:
        super().__init__(dims, [of_arity(self.name, encoding, 1), of_arity(self.name, length, 1)])

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        places, lengths = (numbers(self.name, e, prepared.queries(e)) for e in self.encodings)
        return x + difference(places, lengths, self.dims.width).to(x.dtype)
