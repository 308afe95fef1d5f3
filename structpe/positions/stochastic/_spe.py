"""Stochastic position encoding: queries and keys become sums of noise whose product is a function of their offset."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from structpe.encodings.base import Encoding
from structpe.positions import Dims, PositionModel, Positions
from structpe.positions._checks import numbers, of_arity
from structpe.precision import wide

__all__ = ["SineModel", "Sines", "Waves"]


@dataclass(frozen=True, eq=False)
class Waves:
    """q'_r = sum_dk q_d a_dk z_dkr / (R d_h)^(1/4), and k' in the same way: codes without a tensor of (n, d_h, R).

    Attributes:
        queries: (b, h, n, d_h, f) the a of each query.
        keys: (b, h, m, d_h, f) of each key.
        noise: (h, d_h, f, R) z, normal.
    """

    queries: Tensor
    keys: Tensor
    noise: Tensor

    def map(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """From width d_h to width R."""
        noise = self.noise.flatten(1, 2) / (self.noise.shape[1] * self.noise.shape[3]) ** 0.25

        def coded(x: Tensor, waves: Tensor) -> Tensor:
            result: Tensor = (x[..., None] * waves.to(x.dtype)).flatten(-2) @ noise.to(x.dtype)
            return result

        return coded(q, self.queries), coded(k, self.keys)

    def gated(self, gate: Tensor, dry: Tensor) -> Waves:
        """sqrt(1 - g) of these waves and sqrt(g) of a noise that is the same at all places: one more wave.

        Args:
            gate: (h, d_h) g, from 0 to 1.
            dry: (h, d_h, R) normal.
        """

        def mixed(waves: Tensor) -> Tensor:
            constant = gate.sqrt()[:, None, :, None].expand(*waves.shape[:-1], 1)
            return torch.cat([waves * (1 - gate).sqrt()[:, None, :, None], constant], dim=-1)

        return Waves(mixed(self.queries), mixed(self.keys), torch.cat([self.noise, dry[:, :, None]], dim=2))


class Sines(nn.Module):
    """a_dk of each place t: gain_dk cos(2 pi f_dk t + phase_dk) / sqrt(2K), then the same with sin.

    Keys have no phase. f = sigmoid(frequency) / 2 and gain = softplus, of each head, channel and sine. They start as in
    the authors' code: frequencies from N(-4, 1), so that waves are long; phases from N(0, 1); gains from N(0, 1), then
    2 / sqrt(their norm) times that.

    Args:
        dims: sizes of the Transformer.
        sines: K.
    """

    def __init__(self, dims: Dims, sines: int) -> None:
        super().__init__()
        shape = dims.heads, dims.head, sines
        self.frequencies = nn.Parameter(torch.randn(shape) - 4)
        self.phases = nn.Parameter(torch.randn(shape))
        gains = torch.randn(shape)
        self.gains = nn.Parameter(2 * gains / gains.norm(dim=-1, keepdim=True).sqrt())

    def forward(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """(b, h, n, d_h, 2K) of the places (b, n) of queries, and the same of keys."""
        turns, starts = 2 * math.pi * torch.sigmoid(wide(self.frequencies)) / 2, wide(self.phases)
        gains = functional.softplus(wide(self.gains))[..., None] / math.sqrt(2 * self.gains.shape[-1])

        def waves(places: Tensor, phases: Tensor | float) -> Tensor:
            angles = turns[:, None] * places[:, None, :, None, None].to(turns.dtype) + phases
            return (torch.stack([angles.cos(), angles.sin()], dim=-1) * gains[:, None]).flatten(-2)

        return waves(queries, starts[:, None]), waves(keys, 0.0)


class SineModel(PositionModel):
    """Codes of places that are sums of sines with random weights, multiplied with queries and keys."""

    def __init__(self, dims: Dims, encoding: Encoding, sines: int) -> None:
        super().__init__(dims, [of_arity(self.name, encoding, 1)], K=sines)
        self.codes = Sines(dims, sines)

    def waves(self, positions: Positions, noise: Tensor) -> Waves:
        """The waves of queries and keys, with a given noise (h, d_h, 2K, R)."""
        (encoding,) = self.encodings
        keys = numbers(self.name, encoding, positions[encoding])
        of_queries, of_keys = self.codes(positions.queries(encoding), keys)
        return Waves(of_queries, of_keys, noise)

    def drawn(self, fixed: Tensor) -> Tensor:
        """The fixed noise; in training another draw of its shape."""
        fixed = fixed.to(self.codes.gains)
        return torch.randn_like(fixed) if self.training else fixed
