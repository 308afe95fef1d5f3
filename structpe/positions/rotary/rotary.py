"""Rotary positions, pairs of neighbouring channels (Su et al. 2021)."""

from __future__ import annotations

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.positions._rows import of_arity
from structpe.positions.base import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions.rotary._turns import Turns, check_even, turns
from structpe.positions.sinusoidal._sinusoids import frequencies
from structpe.terms import Terms

__all__ = ["Rotary"]


class Rotary(PositionModel, name="rotary"):
    """(q_t, k_s) -> (R_t q_t, R_s k_s): R_t turns the channels (2i, 2i+1) of each head by t base^(-2i/d_h).

    q.k then depends on s - t alone. t is the place of a unit, or any other number per unit, such as its depth in a
    tree. (Su et al. 2021, section 3.2; survey, eq. 26, whose product R_t^T R_s is the rotation by s - t.)

    The pairs are RoFormer's. Llama pairs other channels: ``rotary-half``.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: one number per unit.
        base: the slowest pair turns about this many times slower than the fastest.

    Raises:
        PositionError: the width of a head is odd, or the encoding gives a vector per unit.
    """

    spec = Spec(
        "su2021",
        "sequence",
        Cells("R", "MAM", learnable=False, recurring=True, unbound=True, params="0"),
        table1=Cells("R", "MAM", learnable=False, recurring=True, unbound=True, params="0"),
    )

    def __init__(self, dims: Dims, encoding: Encoding = Order(), base: float = 10000.0) -> None:
        check_even(self.name, dims)
        super().__init__(dims, [of_arity(self.name, encoding, 1)])
        self.base = base

    def prepare(self, positions: Positions) -> Turns:
        """The angles, once for all layers."""
        return turns(self.name, self.encodings[0], positions, frequencies(self.dims.head, base=self.base))

    def terms(self, prepared: Turns, site: Site) -> Terms:
        return Terms(maps=(prepared.neighbours,))
