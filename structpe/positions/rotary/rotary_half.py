"""Rotary positions, each channel of the first half of a head paired with one of the second (Llama, GPT-NeoX)."""

from __future__ import annotations

from structpe.positions import Spec
from structpe.positions.rotary._turns import CELLS, RotaryModel

__all__ = ["RotaryHalf"]


class RotaryHalf(RotaryModel, name="rotary-half"):
    """Rotary positions, each channel of the first half of a head paired with one of the second (Llama, GPT-NeoX).

    (q_t, k_s) -> (R_t q_t, R_s k_s): R_t turns the channels (i, i + d_h/2) of each head by t base^(-2i/d_h).

    ``rotary`` with the channels of a head in another order: the two differ by a fixed permutation of the rows of the
    query and key projections, which matters for weights that were trained with one of them.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: one number per unit.
        base: the slowest pair turns about this many times slower than the fastest.
        fraction: share of the channels of a head that is turned, the first ones; d_h above is then their number.
            (Partial rotary positions of GPT-J and GPT-NeoX; "partial_rotary_factor" of Hugging Face.)

    Raises:
        PositionError: the width of a head is odd, no pair is left, or the encoding gives a vector per unit.
    """

    spec = Spec("su2021", "sequence", CELLS, table1=CELLS)
