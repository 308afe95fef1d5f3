"""Turning pairs of channels by an angle: what the layouts of rotary positions share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.errors import PositionError
from structpe.positions._rows import numbers
from structpe.positions._waves import frequencies
from structpe.positions.base import Dims, Positions

__all__ = ["Turns", "check_even", "turns"]

Split: TypeAlias = Callable[[Tensor], tuple[Tensor, Tensor]]
Join: TypeAlias = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Turns:
    """Angles of the queries (b, 1, n, d_h/2) and of the keys (b, 1, m, d_h/2), float64.

    A decoding step has one query but all keys, so that they are two tensors and not one.
    """

    queries: Tensor
    keys: Tensor

    def turn(self, q: Tensor, k: Tensor, split: Split, join: Join) -> tuple[Tensor, Tensor]:
        """Queries and keys with each pair of channels turned by its angle."""
        return _turned(q, self.queries, split, join), _turned(k, self.keys, split, join)


def turns(model: str, encoding: Encoding, positions: Positions, width: int, base: float) -> Turns:
    """Angle t base^(-2i/width) of each unit, t being what the encoding says of it, for the pair i of channels."""
    keys = numbers(model, encoding, positions[encoding])

    def angles(places: Tensor) -> Tensor:
        return (places[..., None].double() * frequencies(width, places.device, base))[:, None]

    return Turns(angles(positions.queries(encoding)), angles(keys))


def check_even(model: str, dims: Dims) -> None:
    """Raise a :class:`PositionError` if the channels of a head cannot be paired."""
    if dims.head % 2:
        raise PositionError(
            f"position model {model!r} turns pairs of channels, so the width of a head must be even; "
            f"it is {dims.width} / {dims.heads} = {dims.head}"
        )


def _turned(x: Tensor, angles: Tensor, split: Split, join: Join) -> Tensor:
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = split(x)
    return join(a * cos - b * sin, a * sin + b * cos)
