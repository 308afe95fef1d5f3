"""xPos: rotary positions that also decay with distance (Sun et al. 2023)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.positions import Dims, Positions, Spec
from structpe.positions._checks import numbers
from structpe.positions.rotary._turns import CELLS, RotaryModel, Turns, check_above_zero

__all__ = ["XPos"]


@dataclass(frozen=True, eq=False)
class _Fading:
    """Rotated channels whose products decay, in the number of windows that a dtype needs.

    A window has a middle c: queries in it are multiplied by z^((t-c)/B), keys by z^((c-s)/B), and c cancels. The range
    of a dtype covers only some distance from the middle. A pair of channels of a long text is therefore repeated, once
    per window; a query has entries in its own window only, 0 in the others, and a key in all of them.

    Attributes:
        turned: the angles.
        queries: (b, n) places from the first key on, float64.
        keys: (b, m) the same of the keys.
        units: m.
        rates: (d_h/2,) -log(z_i) / B.
    """

    turned: Turns
    queries: Tensor
    keys: Tensor
    units: int
    rates: tuple[float, ...]

    def neighbours(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Channels 2i and 2i + 1 are a pair, and stay next to each other."""
        q, k = self.turned.neighbours(q, k)
        m = self.units
        counts = [_windows(m * rate, q.dtype) for rate in self.rates]
        pairs = [i for i, count in enumerate(counts) for _ in range(count)]
        number = self.keys.new_tensor([number for count in counts for number in range(count)])
        count = self.keys.new_tensor([counts[i] for i in pairs])
        rate = self.keys.new_tensor([self.rates[i] for i in pairs])
        # torchscale's centre where there is one window.
        middle = torch.where(count == 1, -(-m // 2), (number + 0.5) * m / count)
        most = _reach(q.dtype)

        def powers(places: Tensor, sign: int) -> Tensor:
            return (sign * rate * (places[..., None] - middle)).clamp(max=most).exp()

        here = (self.queries[..., None] * count / m).floor().clamp(min=0).minimum(count - 1) == number
        return _widened(q, pairs, powers(self.queries, -1) * here), _widened(k, pairs, powers(self.keys, 1))


def _reach(dtype: torch.dtype) -> float:
    """The largest power of e whose product with usual entries, and its inverse, are finite in the dtype."""
    return math.log(torch.finfo(dtype).max) * 0.9


def _windows(whole: float, dtype: torch.dtype) -> int:
    """How many windows there are for powers of e that differ by ``whole`` between the first and the last unit.

    In more than one, half the reach is for keys ahead of the queries of a window.
    """
    reach = _reach(dtype)
    return 1 if whole <= 2 * reach else math.ceil(whole / reach)


def _widened(x: Tensor, pairs: list[int], factors: Tensor) -> Tensor:
    """(b, h, n, 2p) of (b, h, n, d_h) x: chosen pairs of its channels times (b, n, p) factors."""
    chosen = x.view(*x.shape[:-1], x.shape[-1] // 2, 2)[..., pairs, :]
    widened: Tensor = chosen * factors[:, None, ..., None].to(x.dtype)
    return widened.flatten(-2)


class XPos(RotaryModel, name="xpos"):
    """xPos: rotary positions that also decay with distance (Sun et al. 2023).

    (q_t, k_s) -> (z^((t+c)/B) R_t q_t, z^(-(s+c)/B) R_s k_s): the product of a pair i of channels has z_i^((t-s)/B).

    R is that of ``rotary``: the channels (2i, 2i+1) turn by t base^(-2i/d_h). z_i = (2i + 0.4 d_h) / (1.4 d_h) < 1, so
    that pairs, fast ones most, count less the farther a key is behind, and more the farther it is ahead: made for
    decoders. c = floor(-m/2), m the number of keys, keeps powers small and cancels in every product. (Sun et al. 2023,
    section 3.2; torchscale, whose centring this is.) B = 512, and powers are computed in float64.

    Texts so long that powers from one centre overflow in the dtype, of more than 65,000 units in float32 and 8,000 in
    float16, have several centres, and each pair of channels the number of copies that it needs: queries and keys get
    wider, products are the same. Keys more than 16,000 units ahead (2,000 in float16), which a decoder does not attend
    to, then count less than by the formula, which would overflow soon after.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: one number per unit.
        base: the slowest pair turns about this many times slower than the fastest.
        fading: B, the number of units after which a pair counts z_i times as much.

    Raises:
        PositionError: the width of a head is odd, or the encoding gives a vector per unit.
    """

    spec = Spec("sun2023", "sequence", CELLS)

    interleaved = True

    def __init__(self, dims: Dims, encoding: Encoding = Order(), base: float = 10000.0, fading: float = 512.0) -> None:
        super().__init__(dims, encoding, base)
        check_above_zero(self.name, fading=fading)
        self.fading = fading

    def prepare(self, positions: Positions) -> _Fading:
        """The angles and places, once for all layers."""
        (encoding,) = self.encodings
        width, keys = self.dims.head, numbers(self.name, encoding, positions[encoding])
        first = keys.amin(dim=1, keepdim=True)
        rates = tuple(-math.log((2 * i + 0.4 * width) / (1.4 * width)) / self.fading for i in range(width // 2))
        places = (positions.queries(encoding) - first).double(), (keys - first).double()
        return _Fading(super().prepare(positions), *places, keys.shape[1], rates)
