"""Rotary positions of videos: separate channels for time, row and column (Yang et al. 2025, CogVideoX)."""

from __future__ import annotations

from structpe.encodings.base import Encoding
from structpe.encodings.coordinates import Coordinates
from structpe.positions import Cells, Dims, Spec
from structpe.positions.rotary._axial import AxialRotaryModel

__all__ = ["AxialRotary3D"]


class AxialRotary3D(AxialRotaryModel, name="axial-rotary-3d"):
    """Rotary positions of videos: separate channels for time, row and column (Yang et al. 2025, CogVideoX).

    Of the channels (2i, 2i+1) of each head, 2/8 turn with the time, 3/8 with the row and 3/8 with the column.

    The pair i of p that turn with a coordinate c turns by c base^(-i/p); q.k then depends on the offsets on the three
    axes only. (Yang et al. 2025, section 2.2, "3D-RoPE", and their code, which has time first, then row, then column.)
    Where 16 does not divide d_h, the fractions are rounded: time down, but not to zero if there is a pair for each
    axis, and of the rest the column has one pair more. Units without a place in the grid are not rotated.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: (time, y, x) per unit.
        base: the slowest pair turns about this many times slower than the fastest.

    Raises:
        PositionError: the width of a head is odd, another number of coordinates, or heads of 2 or 4 channels and units
            that differ on an axis that is left without.
    """

    spec = Spec("yang2025", "grid", Cells("R", "MAM", learnable=False, recurring=True, unbound=True, params="0"))

    def __init__(self, dims: Dims, encoding: Encoding = Coordinates(axes=3), base: float = 10000.0) -> None:
        pairs = dims.head // 2
        time = max(pairs // 4, int(pairs > 2))
        row = (pairs - time) // 2
        super().__init__(dims, encoding, base, [(0, time), (1, row), (2, pairs - time - row)])
