"""Sinusoids whose frequencies fall with the length of the text to write (Takase and Okazaki 2019)."""

from __future__ import annotations

from torch import Tensor

from structpe.positions import Spec
from structpe.positions.sinusoidal._added import CELLS, LengthAware
from structpe.positions.sinusoidal._sinusoids import timing

__all__ = ["LengthRatio"]


class LengthRatio(LengthAware, name="length-ratio"):
    """Sinusoids whose frequencies fall with the length of the text to write (Takase and Okazaki 2019).

    x_t + P_t,  P_t = cat[sin((t + 2) omega_i), cos((t + 2) omega_i)],  omega_i = l^(-i/(d/2 - 1)).

    t = 0, 1, ..., and l is the length that the text will have: by default the number of its units, as when training on
    given texts. A decoder needs it as input: give the nodes a feature and use ``length=Feature("length")``. A length
    below 1 counts as 1. (Takase and Okazaki 2019, LRPE, and their code, whose tables begin with row 2; survey, eq. 33,
    with t, interleaved, and exponents -2i/d.) The code takes the places of the first text of a batch for all texts,
    which is the same where no text is padded on the left. Ordinary sinusoids may be added, as there:
    ``["sinusoidal-concatenated", "length-ratio"]``, with ``start=2``.

    Args:
        dims: sizes of the Transformer.
        encoding: t, one number per unit.
        length: l, one number per unit.

    Raises:
        PositionError: an encoding gives a vector per unit.
    """

    spec = Spec("takase2019", "sequence", CELLS, table1=CELLS)

    def waves(self, places: Tensor, lengths: Tensor) -> Tensor:
        return timing(places + 2, self.dims.width, lengths.clamp(min=1))
