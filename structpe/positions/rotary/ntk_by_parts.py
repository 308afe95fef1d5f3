"""Rotary positions whose fast, middle and slow pairs are scaled in three ways (NTK by parts)."""

from __future__ import annotations

from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.positions import Dims, Spec
from structpe.positions.rotary._ramps import ramp
from structpe.positions.rotary._turns import CELLS, RotaryModel, check_longer, newer_base
from structpe.positions.sinusoidal._sinusoids import inverse_frequencies

__all__ = ["NTKByParts"]

_NTK = (1.25, 0.75)
_AS_THEY_ARE = (16, 2)
"""Turns within a text of training, from which on and up to which a pair goes from one way to the next: the authors'."""


class NTKByParts(RotaryModel, name="ntk-by-parts"):
    """Rotary positions whose fast, middle and slow pairs are scaled in three ways (NTK by parts).

    ``rotary-half`` with the inverse frequencies w_i = f_i (1 - u_i) + u_i [ (1 - v_i) f_i / a + v_i g_i ].

    f_i = b^(-2i/d_h) are the inverse frequencies of training, f_i / a those of ``position-interpolation``, g_i those of
    ``ntk-aware``. u is 0 for pairs that turn more than 16 times within a text of training and 1 below 2 times; v is 1
    above 1.25 times and 0 below 0.75; both fall in straight lines over pairs (:func:`ramp` is 1 - u, and v). So fast
    pairs are unchanged, slow ones are interpolated, and some in between are as with another base.

    This is the code of YaRN. Its paper (Peng et al. 2024, section 3.2, definition 2) goes from f_i / a to f_i only,
    between 1 and 32 turns: that is ``yarn`` without its factor of queries and keys.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: one number per unit.
        base: b.
        scale: a, 1 or more.
        trained: number of units of the longest text in training.

    Raises:
        PositionError: the width of a head is odd, a scale or length below 1, or the encoding gives a vector per unit.
    """

    spec = Spec("peng2024", "sequence", CELLS)

    def __init__(
        self, dims: Dims, encoding: Encoding = Order(), base: float = 10000.0, scale: float = 4.0, trained: int = 2048
    ) -> None:
        check_longer(self.name, scale=scale, trained=trained)
        super().__init__(dims, encoding, base)
        self.scale, self.trained = scale, trained

    def inverse_frequencies(self) -> Tensor:
        width, trained = self.dims.head, super().inverse_frequencies()
        other = inverse_frequencies(width, base=newer_base(width, self.base, self.scale))
        ntk = ramp(width, self.base, self.trained, *_NTK)
        stays = ramp(width, self.base, self.trained, *_AS_THEY_ARE)
        scaled = trained / self.scale * (1 - ntk) + other * ntk
        return scaled * (1 - stays) + trained * stays
