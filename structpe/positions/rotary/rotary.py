"""Rotary positions, pairs of neighbouring channels (Su et al. 2021)."""

from __future__ import annotations

from structpe.positions import Spec
from structpe.positions.rotary._turns import CELLS, RotaryModel

__all__ = ["Rotary"]


class Rotary(RotaryModel, name="rotary"):
    """Rotary positions, pairs of neighbouring channels (Su et al. 2021).

    (q_t, k_s) -> (R_t q_t, R_s k_s): R_t turns the channels (2i, 2i+1) of each head by t base^(-2i/d_h).

    q.k then depends on s - t only. t is the place of a unit, or any other number per unit, such as its depth in a tree.
    (Su et al. 2021, section 3.2; survey, eq. 26, whose product R_t^T R_s is the rotation by s - t.)

    The pairs are RoFormer's. Llama pairs other channels: ``rotary-half``.

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

    interleaved = True
