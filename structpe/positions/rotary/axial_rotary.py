"""Rotary positions of images: half of the channels turn with the column, half with the row (Heo et al. 2024)."""

from __future__ import annotations

from structpe.encodings.base import Encoding
from structpe.encodings.coordinates import Coordinates
from structpe.positions import Cells, Dims, Spec
from structpe.positions.rotary._axial import AxialRotaryModel

__all__ = ["AxialRotary"]


class AxialRotary(AxialRotaryModel, name="axial-rotary"):
    """Rotary positions of images: half of the channels turn with the column, half with the row (Heo et al. 2024).

    Of the channels (2i, 2i+1) of each head, half is turned by x base^(-i/p), the other half by y base^(-i/p).

    x comes first, and i < p = d_h/4 in each half; q.k then depends only on the offsets on both axes. (Heo et al. 2024,
    section 3.2, "axial frequency", and their code; base 100, as an image has shorter sides than a text.) Where 4 does
    not divide d_h, the columns have one pair more. A class token, which has no place in the grid, is not rotated.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: (y, x) per unit.
        base: the slowest pair turns about this many times slower than the fastest.

    Raises:
        PositionError: the width of a head is odd, another number of coordinates, or heads of 2 channels and an image of
            several rows.
    """

    spec = Spec("heo2024", "grid", Cells("R", "MAM", learnable=False, recurring=True, unbound=True, params="0"))

    def __init__(self, dims: Dims, encoding: Encoding = Coordinates(), base: float = 100.0) -> None:
        pairs = dims.head // 2
        super().__init__(dims, encoding, base, [(1, pairs - pairs // 2), (0, pairs // 2)])
