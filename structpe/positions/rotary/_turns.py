"""Turning pairs of channels by an angle: what rotary positions share, whatever their speeds and layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.errors import PositionError
from structpe.positions._rows import numbers
from structpe.positions.base import Dims, Positions

__all__ = ["Turns", "by_length", "check_even", "check_longer", "length_of", "newer_base", "turns"]


@dataclass(frozen=True, eq=False)
class Turns:
    """Angles of the queries (b, 1, n, d_h/2) and of the keys (b, 1, m, d_h/2), float64; and what both are made longer.

    A decoding step has one query but all keys, so that they are two tensors and not one. ``neighbours`` and ``halves``
    are the two layouts, and can stand in ``Terms.maps``.

    Attributes:
        queries: angles.
        keys: angles.
        query_lengths: factors of the turned queries: one for all, or (b, 1, n, d_h/2).
        key_lengths: likewise of the keys.
    """

    queries: Tensor
    keys: Tensor
    query_lengths: Tensor | float = 1.0
    key_lengths: Tensor | float = 1.0

    def neighbours(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Channels 2i and 2i + 1 are a pair (RoFormer)."""

        def turned(x: Tensor, angles: Tensor, lengths: Tensor | float) -> Tensor:
            a, b = _turned(x[..., ::2], x[..., 1::2], angles, lengths)
            return torch.stack([a, b], dim=-1).flatten(-2)

        return turned(q, self.queries, self.query_lengths), turned(k, self.keys, self.key_lengths)

    def halves(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Channels i and i + d_h/2 are a pair (Llama, GPT-NeoX)."""

        def turned(x: Tensor, angles: Tensor, lengths: Tensor | float) -> Tensor:
            first, second = x.chunk(2, dim=-1)
            return torch.cat(_turned(first, second, angles, lengths), dim=-1)

        return turned(q, self.queries, self.query_lengths), turned(k, self.keys, self.key_lengths)


def turns(model: str, encoding: Encoding, positions: Positions, speeds: Tensor, longer: float = 1.0) -> Turns:
    """Angle t speeds_i of each unit, t being what the encoding says of it, for the pair i of channels.

    Args:
        model: its name, for errors.
        encoding: one number per unit.
        positions: of the batch.
        speeds: (d_h/2,) float64.
        longer: factor of the turned queries and keys.
    """
    keys = numbers(model, encoding, positions[encoding])
    speeds = speeds.to(keys.device)
    return Turns(_angles(positions.queries(encoding), speeds), _angles(keys, speeds), longer, longer)


def by_length(
    model: str,
    encodings: Sequence[Encoding],
    positions: Positions,
    speeds: Callable[[Tensor], Tensor],
    longer: float = 1.0,
) -> Turns:
    """The same where speeds (..., d_h/2) follow from the lengths (..., 1) of texts, both float64.

    The encodings are two, of places and of lengths. Where a row is padded the length is 0.
    """
    encoding, length = encodings

    def angles(places: Tensor, lengths: Tensor) -> Tensor:
        return _angles(places, speeds(numbers(model, length, lengths)[..., None].double()))

    keys = angles(numbers(model, encoding, positions[encoding]), positions[length])
    return Turns(angles(positions.queries(encoding), positions.queries(length)), keys, longer, longer)


def newer_base(width: int, base: float | Tensor, longer: float | Tensor) -> float | Tensor:
    """The base with which the slowest pair of a head turns ``longer`` times slower and the fastest as before."""
    return base * longer ** (width / (width - 2)) if width > 2 else base


def check_even(model: str, dims: Dims) -> None:
    """Raise a :class:`PositionError` if the channels of a head cannot be paired."""
    if dims.head % 2:
        raise PositionError(
            f"position model {model!r} turns pairs of channels, so the width of a head must be even; "
            f"it is {dims.width} / {dims.heads} = {dims.head}"
        )


def check_longer(model: str, **factors: float) -> None:
    """Raise a :class:`PositionError` if one of the factors, or lengths, is below 1."""
    for name, factor in factors.items():
        if factor < 1:
            raise PositionError(f"position model {model!r} takes a {name} of 1 or more; given is {factor}")


def check_above_zero(model: str, **numbers: float) -> None:
    """Raise a :class:`PositionError` if one of the numbers, by which something is divided, is 0 or less."""
    for name, number in numbers.items():
        if number <= 0:
            raise PositionError(f"position model {model!r} takes a {name} above 0; given is {number}")


def length_of(model: str, given: float | None, usual: float) -> float:
    """How many times longer turned queries and keys become: what is given, or what is usual.

    Raises:
        PositionError: 0 times or less.
    """
    if given is not None and given <= 0:
        raise PositionError(
            f"position model {model!r} makes queries and keys some times longer, above 0; given is longer={given}"
        )
    return usual if given is None else given


def _angles(places: Tensor, speeds: Tensor) -> Tensor:
    return (places[..., None].double() * speeds)[:, None]


def _turned(a: Tensor, b: Tensor, angles: Tensor, lengths: Tensor | float) -> tuple[Tensor, Tensor]:
    cos, sin = (angles.cos() * lengths).to(a.dtype), (angles.sin() * lengths).to(a.dtype)
    return a * cos - b * sin, a * sin + b * cos
