"""Offsets read backwards, code points as offsets, and tables that cut no offset off."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from structpe.encodings.base import UNREACHABLE, WITHIN, Encoding
from structpe.errors import PositionError
from structpe.positions import Positions
from structpe.positions._checks import holds, of_arity, offsets
from structpe.positions._rows import Rows, is_plain
from structpe.terms import Lookup

__all__ = ["Span", "backwards", "steps"]


@dataclass(frozen=True)
class Span:
    """A row for each offset from -(t_max - 1) to t_max - 1, or for each distance below t_max; none is clipped.

    Rows of offsets count query minus key, as Huang et al. 2020 and Chen et al. 2021 do: the first is that of the key
    t_max - 1 places ahead. Rows of code points come behind them.

    Args:
        model: who asks, for errors.
        encoding: signed integers per pair.
        length: t_max.
        signed: whether the two directions are told apart.

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

    def prepare(self, positions: Positions) -> Lookup:
        """The row of each distinct value.

        Raises:
            PositionError: some pair is ``length`` or more apart, or the encoding does not give one integer per pair.
        """
        of_pairs = offsets(self.model, self.encoding, positions[self.encoding])
        self._check(of_pairs)
        return of_pairs.map(lambda values: self._rows.of(values, self._row))

    def _row(self, values: Tensor) -> Tensor:
        kept = values.clamp(1 - self.length, self.length - 1)
        return self.length - 1 - kept if self.signed else kept.abs()

    def _check(self, of_pairs: Lookup) -> None:
        far = torch.where(is_plain(of_pairs.table), of_pairs.table, 0).abs()
        if not holds((far >= self.length).any()):
            return
        # A step of decoding comes with the values of a longer text than it uses, so that the pairs themselves decide.
        if (most := int(of_pairs.map(lambda _: far).dense().max())) >= self.length:
            raise PositionError(
                f"position model {self.model!r} knows offsets below {self.length} and clips none; this batch has an "
                f"offset of {most}; build it with a larger 'length', or choose an unbound model"
            )

    @property
    def _rows(self) -> Rows:
        return Rows(self.encoding, 2 * self.length - 1 if self.signed else self.length)


def backwards(values: Tensor) -> Tensor:
    """The values of the pairs with query and key exchanged, on a path: -r for r, and k places after for k before."""
    turned = torch.where(is_plain(values), -values, 2 * WITHIN - values)
    return torch.where(values == UNREACHABLE, values, turned)


def steps(values: Tensor) -> Tensor:
    """Signed integers: k for units of one node, k places apart, and 0 for pairs without a path."""
    inner = torch.where(values == UNREACHABLE, 0, values - WITHIN)
    return torch.where(is_plain(values), values, inner)
