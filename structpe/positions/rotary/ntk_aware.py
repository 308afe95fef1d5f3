"""Rotary positions with a larger base, so that slow pairs become slower and fast ones do not (NTK-aware scaling)."""

from __future__ import annotations

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.positions import Dims, Spec
from structpe.positions.rotary._turns import CELLS, RotaryModel, check_longer, newer_base

__all__ = ["NTKAware"]


class NTKAware(RotaryModel, name="ntk-aware"):
    """Rotary positions with a larger base, so that slow pairs become slower and fast ones do not (NTK-aware scaling).

    ``rotary-half`` with the base b a^(d_h/(d_h-2)): the slowest pair turns a times slower, the fastest as before.

    Pairs in between are slowed down by the power 2i/(d_h-2) of a. (bloc97 2023; Peng et al. 2024, section 3.1,
    definition 1, where d_h is |D|. As in the code of YaRN.)

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: one number per unit.
        base: b.
        scale: a, 1 or more.

    Raises:
        PositionError: the width of a head is odd, a scale is below 1, or the encoding gives a vector per unit.
    """

    spec = Spec("peng2024", "sequence", CELLS)

    def __init__(self, dims: Dims, encoding: Encoding = Order(), base: float = 10000.0, scale: float = 4.0) -> None:
        check_longer(self.name, scale=scale)
        super().__init__(dims, encoding, float(newer_base(dims.head, base, scale)))
