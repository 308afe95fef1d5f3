"""Sinusoids of how many units are still to come, given the length (Takase and Okazaki 2019)."""

from __future__ import annotations

from torch import Tensor

from structpe.positions import Spec
from structpe.positions.sinusoidal._added import CELLS, LengthAware, difference

__all__ = ["LengthDifference"]


class LengthDifference(LengthAware, name="length-difference"):
    """Sinusoids of how many units are still to come, given the length (Takase and Okazaki 2019).

    x_t + P_t,  P_t = cat[sin((l + 1 - t) omega_i), cos((l + 1 - t) omega_i)],  omega_i = 10000^(-i/(d/2 - 1)).

    t = 0, 1, ..., and l is the length that the text will have: by default the number of its units, as when training on
    given texts. A decoder needs it as input: give the nodes a feature and use ``length=Feature("length")``. (Takase and
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

    spec = Spec("takase2019", "sequence", CELLS, table1=CELLS)

    def waves(self, places: Tensor, lengths: Tensor) -> Tensor:
        return difference(places, lengths, self.dims.width)
