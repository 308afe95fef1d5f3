"""Noise that filters fall on, as codes of places: what the models of stochastic position encoding by filters share."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from structpe.encodings.base import Encoding
from structpe.errors import PositionError
from structpe.positions import PositionModel, Positions
from structpe.positions._checks import numbers
from structpe.positions.absolute._places import Places

__all__ = ["Filtered", "filtered", "new_filters", "places_of"]


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


def filtered(
    model: PositionModel, positions: Positions, of_queries: Tensor, of_keys: Tensor, noise: Tensor
) -> Filtered:
    """Filters (d, K) over a noise (R, d, P + K - 1) for P places, cross-correlated, divided by (R d_h)^(1/4)."""
    dims, scale = model.dims, (noise.shape[0] * model.dims.head) ** 0.25
    count = noise.shape[2] - of_keys.shape[1] + 1
    places = Places.of(model.name, model.encodings[0], positions, count)

    def codes(filters: Tensor, where: Tensor | slice) -> Tensor:
        made = functional.conv1d(noise, filters[:, None], groups=dims.width) / scale  # (R, d, P)
        chosen: Tensor = made.permute(2, 1, 0).reshape(count, dims.heads, dims.head, -1)[where]
        return chosen[None] if isinstance(where, slice) else chosen

    return Filtered(codes(of_queries, places.queries), codes(of_keys, places.keys))


def new_filters(width: int, size: int) -> Tensor:
    """(width, size) from U(0, sqrt(2 / size)), as in the authors' code."""
    return torch.rand(width, size) * math.sqrt(2 / size)


def places_of(model: str, encoding: Encoding, positions: Positions) -> int:
    """How many places a batch has.

    Raises:
        PositionError: they are no whole numbers from 0 on.
    """
    places = numbers(model, encoding, positions[encoding])
    if places.is_floating_point() or int(places.min()) < 0:
        raise PositionError(
            f"position model {model!r} needs whole numbers from 0 on (order, depth, ...); {encoding.name!r} gives "
            f"others"
        )
    return int(places.max()) + 1
