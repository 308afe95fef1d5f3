"""Rotation of pairs of channels, shared by all rotary models."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import torch
from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.encodings.size import Size
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Site
from structpe.positions._checks import numbers, of_arity
from structpe.positions.sinusoidal._sinusoids import inverse_frequencies
from structpe.terms import Terms

__all__ = [
    "CELLS",
    "DynamicRotaryModel",
    "RotaryModel",
    "Turns",
    "check_above_zero",
    "check_even",
    "check_longer",
    "length_of",
    "newer_base",
]

CELLS = Cells("R", "MAM", learnable=False, recurring=True, unbound=True, params="0")
"""What turns queries and keys at every layer, at any place and without parameters."""

Both: TypeAlias = tuple[Tensor, Tensor]
"""Queries and keys."""


@dataclass(frozen=True, eq=False)
class Turns:
    """Angles of the queries (b, 1, n, p) and of the keys (b, 1, m, p), float64; and the factors of both.

    p is the number of pairs that are turned: d_h/2, or fewer; the channels after the first 2p then stay as they are.

    A decoding step has one query but all keys, so that these are two tensors. ``neighbours`` and ``halves`` are the two
    layouts, for ``Terms.maps``.

    Attributes:
        queries: angles.
        keys: angles.
        query_lengths: factors of the turned queries: one for all, or (b, 1, n, p).
        key_lengths: the same of the keys.
    """

    queries: Tensor
    keys: Tensor
    query_lengths: Tensor | float = 1.0
    key_lengths: Tensor | float = 1.0

    @property
    def alike(self) -> bool:
        """Whether queries and keys are turned alike."""
        pairs = ((self.queries, self.keys), (self.query_lengths, self.key_lengths))
        return all(torch.equal(torch.as_tensor(q), torch.as_tensor(k)) for q, k in pairs)

    def neighbours(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Channels 2i and 2i + 1 are a pair (RoFormer)."""

        def turned(x: Tensor, angles: Tensor, lengths: Tensor | float) -> Tensor:
            a, b = _turned(x[..., ::2], x[..., 1::2], angles, lengths)
            return torch.stack([a, b], dim=-1).flatten(-2)

        return self._part(turned, q, k)

    def halves(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Channels i and i + d_h/2 are a pair (Llama, GPT-NeoX)."""

        def turned(x: Tensor, angles: Tensor, lengths: Tensor | float) -> Tensor:
            first, second = x.chunk(2, dim=-1)
            return torch.cat(_turned(first, second, angles, lengths), dim=-1)

        return self._part(turned, q, k)

    def _part(self, turned: Callable[[Tensor, Tensor, Tensor | float], Tensor], q: Tensor, k: Tensor) -> Both:
        width = 2 * self.queries.shape[-1]

        def of(x: Tensor, angles: Tensor, lengths: Tensor | float) -> Tensor:
            if width == x.shape[-1]:
                return turned(x, angles, lengths)
            return torch.cat([turned(x[..., :width], angles, lengths), x[..., width:]], dim=-1)

        return of(q, self.queries, self.query_lengths), of(k, self.keys, self.key_lengths)


class RotaryModel(PositionModel):
    """Rotates the pair i of the channels of a head by the angle t w_i; a variant defines the w_i.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: t, one number per unit.
        base: of the inverse frequencies.
        fraction: share of the channels of a head that is turned, the first ones.

    Raises:
        PositionError: the width of a head is odd, the fraction is not above 0 and at most 1, or the encoding gives a
            vector per unit.
    """

    interleaved: ClassVar[bool] = False
    """Whether the channels 2i and 2i + 1 are a pair; otherwise i and i + d_h/2 are."""
    longer = 1.0
    """Factor of the turned queries and keys."""
    fraction = 1.0
    """Share of the channels of a head that is turned."""

    def __init__(self, dims: Dims, encoding: Encoding = Order(), base: float = 10000.0, fraction: float = 1.0) -> None:
        self._begin(dims, [encoding])
        if not 0 < fraction <= 1 or dims.head * fraction < 2:
            raise PositionError(
                f"position model {self.name!r} turns a fraction {fraction} of the {dims.head} channels of a head; give "
                f"a number up to 1 with which a pair is left"
            )
        self.base, self.fraction = base, fraction

    def prepare(self, positions: Positions) -> Any:
        """The angles, once for all layers."""
        (encoding,) = self.encodings
        keys = numbers(self.name, encoding, positions[encoding])
        frequencies = self.inverse_frequencies().to(keys.device)
        queries, keys = (_angles(places, frequencies) for places in (positions.queries(encoding), keys))
        return Turns(queries, keys, self.longer, self.longer)

    def terms(self, prepared: Any, site: Site) -> Terms:
        return Terms(maps=(prepared.neighbours if self.interleaved else prepared.halves,))

    def inverse_frequencies(self) -> Tensor:
        """(d_h/2,) float64 the w_i."""
        return inverse_frequencies(2 * int(self.dims.head * self.fraction / 2), base=self.base)

    def cos_sin(self, positions: Positions) -> tuple[Tensor, Tensor]:
        """(b, n, d_h/2) cosine and sine of the angle of each unit and pair of channels, times the factor of lengths.

        The pairs are (2i, 2i+1) or (i, i + d_h/2), as the model says. ``torch.cat([x, x], -1)`` of the latter is what
        Llama of Hugging Face calls ``position_embeddings``.

        Raises:
            PositionError: queries and keys have other angles or factors, as in a decoding step or with ``xpos``.
        """
        turns = self.prepare(positions)
        if not isinstance(turns, Turns) or not turns.alike:
            raise PositionError(
                f"position model {self.name!r} turns queries and keys differently, so that one cosine and sine cannot "
                f"say how; apply the maps of its terms"
            )
        return (turns.keys.cos() * turns.key_lengths)[:, 0], (turns.keys.sin() * turns.key_lengths)[:, 0]

    def _begin(self, dims: Dims, encodings: Sequence[Encoding]) -> None:
        check_even(self.name, dims)
        super().__init__(dims, [of_arity(self.name, each, 1) for each in encodings])


class DynamicRotaryModel(RotaryModel):
    """Rotary positions whose inverse frequencies depend on the length of each text.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: t, one number per unit.
        length: L, one number per unit; 0 where a row is padded.
        base: of the inverse frequencies.
        trained: number of units of the longest text in training, 1 or more.
    """

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        length: Encoding = Size(),
        base: float = 10000.0,
        trained: int = 2048,
    ) -> None:
        check_longer(self.name, trained=trained)
        self._begin(dims, [encoding, length])
        self.base, self.trained = base, trained

    def prepare(self, positions: Positions) -> Turns:
        """The angles, once for all layers."""
        encoding, length = self.encodings

        def angles(places: Tensor, lengths: Tensor) -> Tensor:
            return _angles(places, self.of_lengths(numbers(self.name, length, lengths)[..., None].double()))

        keys = angles(numbers(self.name, encoding, positions[encoding]), positions[length])
        return Turns(angles(positions.queries(encoding), positions.queries(length)), keys, self.longer, self.longer)

    @abstractmethod
    def of_lengths(self, lengths: Tensor) -> Tensor:
        """(..., d_h/2) inverse frequencies for texts of the lengths (..., 1), both float64."""


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
    """The factor of rotated queries and keys: the given one, or the usual one.

    Raises:
        PositionError: 0 times or less.
    """
    if given is not None and given <= 0:
        raise PositionError(
            f"position model {model!r} multiplies queries and keys by a factor above 0; given is longer={given}"
        )
    return usual if given is None else given


def _angles(places: Tensor, frequencies: Tensor) -> Tensor:
    return (places[..., None].double() * frequencies)[:, None]


def _turned(a: Tensor, b: Tensor, angles: Tensor, lengths: Tensor | float) -> tuple[Tensor, Tensor]:
    cos, sin = (angles.cos() * lengths).to(a.dtype), (angles.sin() * lengths).to(a.dtype)
    return a * cos - b * sin, a * sin + b * cos
