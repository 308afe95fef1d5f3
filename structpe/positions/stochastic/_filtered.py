"""Filtered noise as codes of places: shared by the models of stochastic position encoding by filters."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.errors import PositionError
from structpe.positions import Dims, PositionModel, Positions
from structpe.positions._checks import numbers, of_arity
from structpe.positions.absolute._places import Places
from structpe.positions.stochastic._noise import Normals

__all__ = ["Filtered", "FilteredModel"]


@dataclass(frozen=True, eq=False)
class Filtered:
    """Codes of each place.

    Attributes:
        queries: (b or 1, n, h, d_h, R).
        keys: (b or 1, m, h, d_h, R).
    """

    queries: Tensor
    keys: Tensor

    def map(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """From width d_h to width R."""

        def coded(x: Tensor, codes: Tensor) -> Tensor:
            # One batch of vectors times a matrix per head and place: (h, n, b, d_h) @ (h, n, d_h, R).
            if len(codes) == 1:
                made = x.permute(1, 2, 0, 3) @ codes[0].transpose(0, 1).to(x.dtype)
                return made.permute(2, 0, 1, 3)
            return torch.einsum("bhnd,bnhdr->bhnr", x, codes.to(x.dtype))

        return coded(q, self.queries), coded(k, self.keys)

    def gated(self, gate: Tensor, dry: Tensor) -> Filtered:
        """sqrt(1 - g) of these codes and sqrt(g) / (R d_h)^(1/4) of a noise that is the same at all places.

        Args:
            gate: (h, d_h) g, from 0 to 1.
            dry: (h, d_h, R) normal.
        """
        _, width, realisations = dry.shape
        constant = gate.sqrt()[..., None] * dry / (realisations * width) ** 0.25
        wet = (1 - gate).sqrt()[..., None]
        return Filtered(self.queries * wet + constant, self.keys * wet + constant)


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

        def codes(filters: Tensor, where: Tensor | slice) -> Tensor:
            made = functional.conv1d(noise, filters[:, None], groups=dims.width) / scale  # (R, d, P)
            chosen: Tensor = made.permute(2, 1, 0).reshape(count, dims.heads, dims.head, -1)[where]
            return chosen[None] if isinstance(where, slice) else chosen

        return Filtered(codes(self.of_queries, places.queries), codes(self.of_keys, places.keys))

    def _draw(self, count: int) -> Tensor:
        like = self.of_keys
        if self.training:
            return torch.randn(self.realisations, self.dims.width, count, dtype=like.dtype, device=like.device)
        return self.fixed.first(count).to(like).permute(1, 2, 0)
