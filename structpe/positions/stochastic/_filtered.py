"""Filtered noise as codes of places: shared by the models of stochastic position encoding by filters."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.errors import PositionError
from structpe.positions import Dims, PositionModel, Positions
from structpe.positions._checks import numbers, of_arity
from structpe.positions.absolute._places import Places
from structpe.positions.stochastic._noise import Normals

__all__ = ["Filtered", "FilteredModel", "correlated"]


@dataclass(frozen=True, eq=False)
class Units:
    """The units of a batch, place by place.

    Attributes:
        order: (b n,) the units, those at place 0 first.
        back: (b n,) where each unit is in that order.
        counts: number of units at each place.
    """

    order: Int[Tensor, " units"]
    back: Int[Tensor, " units"]
    counts: list[int]

    @classmethod
    def of(cls, places: Int[Tensor, "b n"], count: int) -> Units:
        """Those at these places, which are below ``count``."""
        order = places.flatten().argsort(stable=True)
        return cls(order, order.argsort(), places.flatten().bincount(minlength=count).tolist())


@dataclass(frozen=True, eq=False)
class Filtered:
    """Codes of the P places of a batch; all units at a place are coded by one product.

    Attributes:
        of_queries: (P, h, d_h, R).
        of_keys: (P, h, d_h, R).
        queries: the units that are queries, or which places they have if that is the same for all structures.
        keys: likewise.
    """

    of_queries: Tensor
    of_keys: Tensor
    queries: Units | slice
    keys: Units | slice

    def map(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """From width d_h to width R."""
        return _coded(q, self.of_queries, self.queries), _coded(k, self.of_keys, self.keys)

    def gated(self, gate: Tensor, dry: Tensor) -> Filtered:
        """sqrt(1 - g) of these codes and sqrt(g) / (R d_h)^(1/4) of a noise that is the same at all places.

        Args:
            gate: (h, d_h) g, from 0 to 1.
            dry: (h, d_h, R) normal.
        """
        _, width, realisations = dry.shape
        constant = gate.sqrt()[..., None] * dry / (realisations * width) ** 0.25
        wet = (1 - gate).sqrt()[..., None]
        return replace(self, of_queries=self.of_queries * wet + constant, of_keys=self.of_keys * wet + constant)


class FilteredModel(PositionModel):
    """Codes of places that are filtered noise, multiplied with queries and keys."""

    def __init__(self, dims: Dims, encoding: Encoding = Order(), realisations: int = 256, width: int = 200) -> None:
        super().__init__(dims, [of_arity(self.name, encoding, 1)], K=width)
        # From U(0, sqrt(2 / K)), as in the authors' code.
        self.of_keys = nn.Parameter(torch.rand(dims.width, width) * math.sqrt(2 / width))
        self.of_queries = nn.Parameter(torch.rand(dims.width, width) * math.sqrt(2 / width))
        self.realisations, self.fixed = realisations, Normals(realisations, dims.width)

    def prepare(self, positions: Positions) -> Filtered:
        """The codes of the batch, for all layers.

        Raises:
            PositionError: places are not whole numbers from 0 on.
        """
        (encoding,) = self.encodings
        places = numbers(self.name, encoding, positions[encoding])
        if places.is_floating_point() or int(places.min()) < 0:
            raise PositionError(
                f"position model {self.name!r} needs whole numbers from 0 on (order, depth, ...); {encoding.name!r} "
                f"gives others"
            )
        return self.filtered(positions, self._draw(int(places.max()) + self.of_keys.shape[1]))

    def filtered(self, positions: Positions, noise: Tensor) -> Filtered:
        """The same with a given noise (R, d, P + K - 1) for P places.

        Filters are cross-correlated with it, and the result is divided by (R d_h)^(1/4).
        """
        dims, scale = self.dims, (noise.shape[0] * self.dims.head) ** 0.25
        count = noise.shape[2] - self.of_keys.shape[1] + 1
        places = Places.of(self.name, self.encodings[0], positions, count)

        codes = [correlated(noise, filters / scale) for filters in (self.of_queries, self.of_keys)]
        each = [made.transpose(0, 1).view(count, dims.heads, dims.head, -1) for made in codes]
        who = [p if isinstance(p, slice) else Units.of(p, count) for p in (places.queries, places.keys)]
        return Filtered(each[0], each[1], who[0], who[1])

    def _draw(self, count: int) -> Tensor:
        like = self.of_keys
        if self.training:
            return torch.randn(self.realisations, self.dims.width, count, dtype=like.dtype, device=like.device)
        return self.fixed.first(count).to(like).permute(1, 2, 0)


def _coded(x: Tensor, codes: Tensor, units: Units | slice) -> Tensor:
    """(b, h, n, R) from (b, h, n, d_h)."""
    codes = codes.to(x.dtype)
    if isinstance(units, slice):
        # One batch of vectors times a matrix per head and place: (h, n, b, d_h) @ (h, n, d_h, R).
        made = x.permute(1, 2, 0, 3) @ codes[units].transpose(0, 1)
        return made.permute(2, 0, 1, 3)
    b, h, n, _ = x.shape
    by_place = torch.split(x.permute(1, 0, 2, 3).flatten(1, 2).index_select(1, units.order), units.counts, dim=1)
    coded = [mine @ code for mine, code in zip(by_place, codes.unbind(), strict=True) if mine.shape[1]]
    return torch.cat(coded, dim=1).index_select(1, units.back).view(h, b, n, -1).transpose(0, 1)


def correlated(noise: Float[Tensor, "R d L"], filters: Float[Tensor, "d K"]) -> Float[Tensor, "d P R"]:
    """sum_u a_du z_r,d,t+u for the P = L - K + 1 places t.

    A filter is written out as a matrix of K + B - 1 by B, for blocks of B = min(P, K) places: products of matrices,
    with at most twice the multiplications of a ``conv1d`` that has a group, and so only one channel, per filter.
    """
    width, count = filters.shape[1], noise.shape[2] - filters.shape[1] + 1
    block = min(count, width)
    shifted = functional.pad(filters, (block - 1, block - 1)).unfold(1, block, 1).flip(-1).transpose(1, 2)
    made = []
    for first in range(0, count, block):
        places = min(block, count - first)
        window = noise[:, :, first : first + places + width - 1].permute(1, 2, 0)
        made.append(shifted[:, :places, : places + width - 1] @ window)
    return torch.cat(made, dim=1)
