"""Signed offsets of pairs: distances, reversed offsets, and sinusoids of them.

A pair without a path has the vector zero, so that only its content counts. Units of one node, k places apart, have the
vector of k.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import torch
from torch import Tensor, nn

from structpe.encodings.base import UNREACHABLE, WITHIN, Encoding
from structpe.encodings.order import Offset
from structpe.errors import PositionError
from structpe.positions import Dims, PositionModel, Positions
from structpe.positions.checks import holds, of_arity, offsets
from structpe.positions.tables import PairTable, Rows, Sharing, Table, is_plain
from structpe.terms import Lookup

__all__ = [
    "DistanceModel",
    "SpanTable",
    "backwards",
    "distances",
    "everywhere",
    "sinusoids",
    "slopes",
    "steps",
]


@dataclass(frozen=True)
class Span:
    """A row for each offset from -(t_max - 1) to t_max - 1, or for each distance below t_max, without clipping.

    Rows of offsets count query minus key, as Huang et al. 2020 and Chen et al. 2021 do: the first is that of the key
    t_max - 1 places ahead. Rows of code points follow.

    Args:
        model: name of the position model, for error messages.
        encoding: signed integers per pair.
        max_length: t_max.
        signed: whether the two directions are distinguished.

    Raises:
        PositionError: a ``max_length`` below 1, or an encoding of single units.
    """

    model: str
    encoding: Encoding
    max_length: int
    signed: bool = True

    def __post_init__(self) -> None:
        of_arity(self.model, self.encoding, 2)
        if self.max_length < 1:
            raise PositionError(
                f"position model {self.model!r} needs a max_length of 1 or more; given {self.max_length}"
            )

    @property
    def size(self) -> int:
        """Number of rows, R."""
        return self._rows.size

    def of(self, values: Tensor) -> Tensor:
        """Row of each value."""
        return self._rows.of(values, self._row)

    def _row(self, values: Tensor) -> Tensor:
        kept = values.clamp(1 - self.max_length, self.max_length - 1)
        return self.max_length - 1 - kept if self.signed else kept.abs()

    @property
    def _rows(self) -> Rows:
        return Rows(self.encoding, 2 * self.max_length - 1 if self.signed else self.max_length)


class SpanTable(PairTable):
    """A table with a row for each offset or distance, without clipping."""

    signed: ClassVar[bool] = True
    """Whether rows are of offsets, not of distances."""
    vectors: ClassVar[bool] = False
    """Whether entries are vectors (d_h), not scalars."""
    start: ClassVar[float | None] = None
    """Where all entries start; None for a normal distribution."""

    def __init__(
        self, dims: Dims, encoding: Encoding = Offset(), max_length: int = 512, sharing: Sharing = "head-wise"
    ) -> None:
        span = Span(self.name, encoding, max_length, self.signed)
        super().__init__(dims, encoding, span, sharing, width=dims.head if self.vectors else None)
        self.max_length = max_length
        if self.start is not None:
            nn.init.constant_(self.table.weight, self.start)

    def of_pairs(self, positions: Positions) -> Lookup:
        """The value of each pair.

        Raises:
            PositionError: some pair is ``max_length`` or more apart, or the encoding does not give one integer per
                pair.
        """
        of_pairs = super().of_pairs(positions)
        far = torch.where(is_plain(of_pairs.table), of_pairs.table, 0).abs()
        # A decoding step has the values of a longer text than it uses: only then check the pairs.
        if (
            holds((far >= self.max_length).any())
            and (most := int(of_pairs.map(lambda _: far).dense().max())) >= self.max_length
        ):
            raise PositionError(
                f"position model {self.name!r} has rows for offsets below {self.max_length} and does not clip; "
                f"this batch has an offset of {most}; build it with a larger 'max_length', or choose an unbound model"
            )
        return of_pairs


def backwards(values: Tensor) -> Tensor:
    """The values of the pairs with query and key exchanged, on a path: -r for r, and k places after for k before."""
    turned = torch.where(is_plain(values), -values, 2 * WITHIN - values)
    return torch.where(values == UNREACHABLE, values, turned)


def steps(values: Tensor) -> Tensor:
    """Signed integers: k for units of one node, k places apart, and 0 for pairs without a path."""
    inner = torch.where(values == UNREACHABLE, 0, values - WITHIN)
    return torch.where(is_plain(values), values, inner)


Sinusoids: TypeAlias = Callable[[Tensor, int], Tensor]


def sinusoids(of_pairs: Lookup, make: Sinusoids, width: int, dtype: torch.dtype) -> Lookup:
    """(r, width) the vector of each distinct value; ``make`` gives those of integers, key minus query."""

    def vectors(values: Tensor) -> Tensor:
        made = torch.where((values == UNREACHABLE)[:, None], 0, make(steps(values), width))
        return made.to(dtype)

    return of_pairs.map(vectors)


def everywhere(table: Tensor, like: Lookup) -> Lookup:
    """The one row of a table (1, ...) for every pair that ``like`` has. The index is a view, without memory."""
    none = like.rows.new_zeros(1, 1)
    return Lookup(table, none, none[:, :, None].expand(1, *like.index.shape[1:]))


class DistanceModel(PositionModel):
    """A model of the distance |r_ij| of two units.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        sharing: which layers and heads have the same numbers, for the formula of parameters.
    """

    def __init__(self, dims: Dims, encoding: Encoding, sharing: Sharing) -> None:
        super().__init__(dims, [of_arity(self.name, encoding, 2)], copies=Table.copies(sharing, dims))

    def prepare(self, positions: Positions) -> Lookup:
        """The distance of each distinct value."""
        (encoding,) = self.encodings
        of_pairs = offsets(self.name, encoding, positions[encoding])
        return of_pairs.map(lambda values: distances(self.name, encoding, values))


def distances(model: str, encoding: Encoding, values: Tensor) -> Tensor:
    """|r| for each offset; k for two units of one node k places apart; the encoding's ``max_distance`` without a path.

    Raises:
        PositionError: there is a pair without a path, and the encoding has no ``max_distance``.
    """
    far = torch.where(is_plain(values), values, values - WITHIN).abs()
    if not encoding.codes:
        return far
    max_distance: int | None = encoding.options().get("max_distance")
    if max_distance is None and holds((values == UNREACHABLE).any()):
        raise PositionError(
            f"position model {model!r} got a pair of units without a path, which has no distance; give the encoding "
            f"a max_distance, to count such pairs as that far: {encoding.name!r} with max_distance=..."
        )
    return torch.where(values == UNREACHABLE, max_distance or 0, far)


def slopes(heads: int) -> Tensor:
    """(h,) float64: 2^(-8/H), 2^(-16/H), ...; between powers of 2 the lower one's, then every other of the double's."""
    power = 1 << (heads.bit_length() - 1)
    first = 2.0 ** (-8 / power * torch.arange(1, power + 1, dtype=torch.float64))
    rest = 2.0 ** (-4 / power * torch.arange(1, 2 * power + 1, 2, dtype=torch.float64))
    return torch.cat([first, rest[: heads - power]])
