"""Fourier position embedding: rotary positions whose channels have a series of frequencies (Hua et al. 2024)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, Positions, Site, Spec
from structpe.positions._checks import numbers
from structpe.positions.rotary._turns import RotaryModel
from structpe.terms import Terms

__all__ = ["FoPE"]


@dataclass(frozen=True, eq=False)
class Waves:
    """cos(w t) and sin(w t) (b, 1, n, D) of the places of queries and of keys, float64."""

    queries: tuple[Tensor, Tensor]
    keys: tuple[Tensor, Tensor]

    def mixed(self, coefficients: Tensor) -> Mixed:
        """The series with these coefficients (2, h, D, p): of cosines, and of sines."""
        return Mixed(*(tuple(self._series(waves, coefficients)) for waves in (self.queries, self.keys)))

    @staticmethod
    def _series(waves: tuple[Tensor, Tensor], coefficients: Tensor) -> list[Tensor]:
        return [wave.to(of.dtype) @ of for wave, of in zip(waves, coefficients, strict=True)]


@dataclass(frozen=True, eq=False)
class Mixed:
    """Series (b, h, n, p) in the place of cosine and sine, for the first p pairs of queries and keys; 1 for others."""

    queries: tuple[Tensor, ...]
    keys: tuple[Tensor, ...]

    def halves(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Channels i and i + d_h/2 are a pair."""
        return _turned(q, *self.queries), _turned(k, *self.keys)


def _turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    rest = x.shape[-1] // 2 - cos.shape[-1]
    cos, sin = (nn.functional.pad(each, (0, rest), value=1.0).to(x.dtype) for each in (cos, sin))
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


class FoPE(RotaryModel, name="fope"):
    """Fourier position embedding: rotary positions whose channels have a series of frequencies (Hua et al. 2024).

    ``rotary-half`` with sums of waves C_i(t), S_i(t) in the place of cosine and sine for the pair i of head h.

    ::

        C_i(t) = sum_c A_hci cos(w_c t),    S_i(t) = sum_c B_hci sin(w_c t),    i < p

    w_c are the D of the inverse frequencies base^(-2c/d_h) that turn at least once within a text of training, w_c >=
    2 pi / T; slower ones would never be seen whole, and are left out. p = min(D, d_h/4) pairs are turned; C = S = 1 for
    the others, whose products then have no position. A and B are fixed, not learned: random, from Xavier's normal
    distribution of gain ``gain``, and 1 is added where c = i D/p, so that each pair has one main frequency. (Hua et al.
    2024, section 4, and the code: "eye_xavier_norm", separate sine, cosine and heads, zero frequencies ignored; each
    layer draws its own.)

    As in the code, where the paper differs: a quarter of the channels' width, not all pairs, and S = 1, not 0, for the
    pairs without a frequency: both double, or keep, a product that has no position. Compared with the code in float64.
    Products of different frequencies do not cancel, so that scores depend on both places.

    Args:
        dims: sizes of the Transformer; the width of a head must be even, and 4 or more.
        encoding: t, one number per unit.
        base: of the inverse frequencies.
        trained: T, number of units of the longest text in training, 7 or more.
        gain: of the coefficients other than the main ones; 0.3 to 0.6 in the paper's models, larger in larger ones.

    Raises:
        PositionError: the width of a head is odd or below 4, no frequency is left, or the encoding gives a vector per
            unit.
    """

    spec = Spec(
        "hua2024",
        "sequence",
        Cells("B", "MAM", learnable=False, recurring=True, unbound=True, params="0"),
        note="products of different frequencies depend on both places, not only on the offset",
    )

    coefficients: Tensor

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        base: float = 10000.0,
        trained: int = 512,
        gain: float = 0.3,
    ) -> None:
        super().__init__(dims, encoding, base)
        self.trained = trained
        waves = len(self.inverse_frequencies())
        pairs = min(waves, dims.head // 4)
        if not pairs:
            raise PositionError(
                f"position model {self.name!r} has no frequency left that turns once within {trained} units, or no "
                f"pair of channels in a head of width {dims.head}; give a trained length of 7 or more, and heads of "
                f"width 4 or more"
            )
        drawn = torch.zeros(dims.layers, 2, dims.heads, waves, pairs)
        for each in drawn.flatten(0, 1):
            nn.init.xavier_normal_(each, gain=gain)
        step = math.ceil(waves / pairs)
        for pair in range(min(pairs, math.ceil(waves / step))):
            drawn[..., pair * step, pair] += 1
        self.register_buffer("coefficients", drawn)

    def prepare(self, positions: Positions) -> Waves:
        """The waves, once for all layers."""
        (encoding,) = self.encodings
        keys = numbers(self.name, encoding, positions[encoding])
        frequencies = self.inverse_frequencies().to(keys.device)
        angles = [(each[:, None, :, None] * frequencies) for each in (positions.queries(encoding), keys)]
        return Waves(*((each.cos(), each.sin()) for each in angles))

    def terms(self, prepared: Waves, site: Site) -> Terms:
        return Terms(maps=(prepared.mixed(self.coefficients[site.layer]).halves,))

    def inverse_frequencies(self) -> Tensor:
        """(D,) float64 the w_c."""
        with torch.device("cpu"):  # how many there are must be known for a model on meta too
            every = super().inverse_frequencies()
            return every[every >= 2 * math.pi / self.trained]
