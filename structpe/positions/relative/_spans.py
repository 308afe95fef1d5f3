"""Reversed offsets, code points as offsets, and tables without clipping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from structpe.encodings.base import UNREACHABLE, WITHIN, Encoding
from structpe.encodings.order import Offset
from structpe.errors import PositionError
from structpe.positions import Dims, Positions
from structpe.positions._checks import holds, of_arity
from structpe.positions._pair_tables import PairTable
from structpe.positions._rows import Rows, is_plain
from structpe.positions._tables import Sharing
from structpe.terms import Lookup

__all__ = ["SpanTable", "backwards", "steps"]


@dataclass(frozen=True)
class Span:
    """A row for each offset from -(t_max - 1) to t_max - 1, or for each distance below t_max, without clipping.

    Rows of offsets count query minus key, as Huang et al. 2020 and Chen et al. 2021 do: the first is that of the key
    t_max - 1 places ahead. Rows of code points follow.

    Args:
        model: name of the position model, for error messages.
        encoding: signed integers per pair.
        length: t_max.
        signed: whether the two directions are distinguished.

    Raises:
        PositionError: a length below 1, or an encoding of single units.
    """

    model: str
    encoding: Encoding
    length: int
    signed: bool = True

    def __post_init__(self) -> None:
        of_arity(self.model, self.encoding, 2)
        if self.length < 1:
            raise PositionError(f"position model {self.model!r} needs a length of 1 or more; given {self.length}")

    @property
    def size(self) -> int:
        """Number of rows, R."""
        return self._rows.size

    def of(self, values: Tensor) -> Tensor:
        """Row of each value."""
        return self._rows.of(values, self._row)

    def _row(self, values: Tensor) -> Tensor:
        kept = values.clamp(1 - self.length, self.length - 1)
        return self.length - 1 - kept if self.signed else kept.abs()

    @property
    def _rows(self) -> Rows:
        return Rows(self.encoding, 2 * self.length - 1 if self.signed else self.length)


class SpanTable(PairTable):
    """A table with a row for each offset or distance, without clipping."""

    signed: ClassVar[bool] = True
    """Whether rows are of offsets, not of distances."""
    vectors: ClassVar[bool] = False
    """Whether entries are vectors (d_h), not scalars."""
    start: ClassVar[float | None] = None
    """Where all entries start; None for a normal distribution."""

    def __init__(
        self, dims: Dims, encoding: Encoding = Offset(), length: int = 512, sharing: Sharing = "head-wise"
    ) -> None:
        span = Span(self.name, encoding, length, self.signed)
        super().__init__(dims, encoding, span, sharing, width=dims.head if self.vectors else None)
        self.length = length
        if self.start is not None:
            nn.init.constant_(self.table.weight, self.start)

    def of_pairs(self, positions: Positions) -> Lookup:
        """The value of each pair.

        Raises:
            PositionError: some pair is ``length`` or more apart, or the encoding does not give one integer per pair.
        """
        of_pairs = super().of_pairs(positions)
        far = torch.where(is_plain(of_pairs.table), of_pairs.table, 0).abs()
        # A decoding step has the values of a longer text than it uses: only then check the pairs.
        if (
            holds((far >= self.length).any())
            and (most := int(of_pairs.map(lambda _: far).dense().max())) >= self.length
        ):
            raise PositionError(
                f"position model {self.name!r} has rows for offsets below {self.length} and does not clip; "
                f"this batch has an offset of {most}; build it with a larger 'length', or choose an unbound model"
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
