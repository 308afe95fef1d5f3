"""Rotary positions that learn how pairs turn, or read it from the units."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.positions import Cells, Dims, Positions, Site, Spec
from structpe.positions.places import UnitModel
from structpe.positions.sinusoids import inverse_frequencies
from structpe.precision import wide
from structpe.terms import Terms

__all__ = ["PoPE", "Polar"]


@dataclass(frozen=True, eq=False)
class Polar:
    """Angles of the channels of queries (b, 1, n, d_h), and of keys (b or 1, h, m, d_h)."""

    queries: Tensor
    keys: Tensor

    def turned(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Each channel as two: its length, above 0, times the cosine and the sine of its angle."""
        return _polar(q, self.queries), _polar(k, self.keys)


def _polar(x: Tensor, angles: Tensor) -> Tensor:
    length = functional.softplus(x)
    return torch.cat([length * angles.cos().to(x.dtype), length * angles.sin().to(x.dtype)], dim=-1)


class PoPE(UnitModel, name="pope"):
    """PoPE: a channel of queries and keys has a length by content and an angle by place (Gopalakrishnan et al. 2025).

    s_ts = sum_c softplus(q_c) softplus(k_c) cos((s - t) w_c + delta_c) / sqrt(d_h),  w_c = base^(-c/d_h), c < d_h.

    Polar coordinates: in ``rotary`` the angle of a pair of channels is one of content plus one of place, so that what a
    key contains changes where it is looked for. Here content is a length above 0 of each of the d_h channels, and place
    alone is the angle. delta (d_h), the angle at which a key of a channel is met best, is learned for each head of each
    layer; it is clamped to -2 pi..0 and starts from 0. (Gopalakrishnan et al. 2025: the score is the real part of the
    product of complex queries and keys, with softplus as length and a learned angle per frequency. The clamp is that of
    the public implementations, PoPE-pytorch and x-transformers; these share one delta among layers, here each layer has
    its own. Compared with the formula, and with PoPE-pytorch in float64.)

    Queries and keys get twice as wide. It cannot be summed with other models that change them, such as ``rotary``,
    since softplus and rotations do not commute.

    Args:
        dims: sizes of the Transformer.
        encoding: t, one number per unit.
        base: the slowest channel turns about this many times slower than the fastest.
    """

    spec = Spec(
        "gopalakrishnan2025",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params="l*d"),
    )

    def __init__(self, dims: Dims, encoding: Encoding = Order(), base: float = 10000.0) -> None:
        super().__init__(dims, encoding)
        self.base = base
        self.phases = nn.Parameter(torch.zeros(dims.layers, dims.heads, dims.head))

    def prepare(self, positions: Positions) -> Polar:
        """The angles of place, once for all layers."""
        queries, keys = self.places(positions)
        frequencies = inverse_frequencies(2 * self.dims.head, keys.device, self.base)
        return Polar(*((each[:, None, :, None].double() * frequencies) for each in (queries, keys)))

    def terms(self, prepared: Polar, site: Site) -> Terms:
        own = wide(self.phases[site.layer]).clamp(-2 * math.pi, 0)[:, None]
        # Queries and keys are twice as wide, and scores divided by the root of that.
        return Terms(maps=(Polar(prepared.queries, prepared.keys + own).turned,), scale=math.sqrt(2))
