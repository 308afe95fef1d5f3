"""xPos: rotary positions that also fade with distance (Sun et al. 2023)."""

from __future__ import annotations

import torch
from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.positions._rows import numbers, of_arity
from structpe.positions._sinusoids import frequencies
from structpe.positions._turns import Turns, check_above_zero, check_even, turns
from structpe.positions.base import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.terms import Terms

__all__ = ["XPos"]


class XPos(PositionModel, name="xpos"):
    """(q_t, k_s) -> (z^((t+c)/B) R_t q_t, z^(-(s+c)/B) R_s k_s): the product of a pair i of channels has z_i^((t-s)/B).

    R is that of ``rotary``: the channels (2i, 2i+1) turn by t base^(-2i/d_h). z_i = (2i + 0.4 d_h) / (1.4 d_h) < 1, so
    that pairs, fast ones most, count less the farther a key lies behind, and more the farther it lies ahead: made
    for decoders. c = floor(-m/2), m the number of keys, keeps powers small and cancels in every product. (Sun et al.
    2023, section 3.2; torchscale, whose centring this is.) B = 512, and powers are computed in float64.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: one number per unit.
        base: the slowest pair turns about this many times slower than the fastest.
        fading: B, after so many units a pair counts z_i times as much.

    Raises:
        PositionError: the width of a head is odd, or the encoding gives a vector per unit.
    """

    spec = Spec(
        cite="sun2023",
        structure="sequence",
        cells=Cells("R", "MAM", learnable=False, recurring=True, unbound=True, params="0"),
    )

    def __init__(self, dims: Dims, encoding: Encoding = Order(), base: float = 10000.0, fading: float = 512.0) -> None:
        check_even(self.name, dims)
        super().__init__(dims, [of_arity(self.name, encoding, 1)])
        check_above_zero(self.name, fading=fading)
        self.base, self.fading = base, fading

    def prepare(self, positions: Positions) -> Turns:
        """The angles and powers, once for all layers."""
        (encoding,) = self.encodings
        width, keys = self.dims.head, numbers(self.name, encoding, positions[encoding])
        plain = turns(self.name, encoding, positions, frequencies(width, base=self.base))
        z = (torch.arange(0, width, 2, dtype=torch.float64, device=keys.device) + 0.4 * width) / (1.4 * width)
        centre = -keys.shape[1] // 2

        def powers(places: Tensor) -> Tensor:
            return (z ** ((places[..., None] + centre).double() / self.fading))[:, None]

        return Turns(plain.queries, plain.keys, powers(positions.queries(encoding)), 1 / powers(keys))

    def terms(self, prepared: Turns, site: Site) -> Terms:
        del site
        return Terms(maps=(prepared.neighbours,))
