"""Rotary positions, interpolated into the length of training (Chen et al. 2023)."""

from __future__ import annotations

from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.positions import Dims, Spec
from structpe.positions.rotary._turns import CELLS, RotaryModel, check_longer

__all__ = ["PositionInterpolation"]


class PositionInterpolation(RotaryModel, name="position-interpolation"):
    """Rotary positions, interpolated into the length of training (Chen et al. 2023).

    (q_t, k_s) -> (R_(t/a) q_t, R_(s/a) k_s): R_t turns the channels (i, i + d_h/2) of a head by t base^(-2i/d_h).

    A model trained on texts of some length then sees, in texts a times as long, only angles from training. (Chen et al.
    2023, eq. 3; Llama's layout of channels, as in the code of YaRN.) With a = 1 this is ``rotary-half``.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: one number per unit.
        base: the slowest pair turns about this many times slower than the fastest.
        scale: a, 1 or more.

    Raises:
        PositionError: the width of a head is odd, a scale is below 1, or the encoding gives a vector per unit.
    """

    spec = Spec("chen2023", "sequence", CELLS)

    def __init__(self, dims: Dims, encoding: Encoding = Order(), base: float = 10000.0, scale: float = 4.0) -> None:
        check_longer(self.name, scale=scale)
        super().__init__(dims, encoding, base)
        self.scale = scale

    def inverse_frequencies(self) -> Tensor:
        return super().inverse_frequencies() / self.scale
