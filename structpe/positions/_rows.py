"""From values of positions to rows of a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from structpe.encodings.base import UNREACHABLE, WITHIN, Encoding
from structpe.errors import PositionError
from structpe.positions._checks import check_offsets

__all__ = ["Rows", "Window", "is_plain"]

_HALF = (WITHIN - UNREACHABLE) // 2


def is_plain(values: Tensor) -> Tensor:
    """Where values are offsets, not code points."""
    return values < UNREACHABLE - _HALF // 2


@dataclass(frozen=True)
class Rows:
    """The row of a table for each value: first offsets, by a rule, then one row for "unreachable", then "within".

    Args:
        encoding: where the values come from; code points that it never uses get no row.
        offsets: number of rows for offsets.
        within: units of one node up to this far apart have a row for each distance, on both sides; others share the
            last.

    Raises:
        PositionError: the encoding gives real numbers.
    """

    encoding: Encoding
    offsets: int
    within: int = 8

    def __post_init__(self) -> None:
        check_offsets(self.encoding)

    @property
    def size(self) -> int:
        """Number of rows, R."""
        codes = self.encoding.codes
        return self.offsets + ("unreachable" in codes) + ("within" in codes) * (2 * self.within + 1)

    def of(self, values: Tensor, rule: Callable[[Tensor], Tensor]) -> Tensor:
        """Row of each value; ``rule`` maps offsets to rows 0..offsets-1."""
        rows = rule(torch.where(is_plain(values), values, 0))
        if "unreachable" in self.encoding.codes:
            rows = torch.where(values == UNREACHABLE, self.offsets, rows)
        if "within" in self.encoding.codes:
            first = self.size - 2 * self.within - 1
            inner = (values - WITHIN).clamp(-self.within, self.within) + self.within + first
            rows = torch.where(values > UNREACHABLE, inner, rows)
        return rows


@dataclass(frozen=True)
class Window:
    """A row for each offset from -reach to reach; offsets farther away share the row at their end (Shaw et al. 2018).

    Args:
        encoding: where the values come from.
        reach: the farthest offset that has its own row, 1 or more.
        within: as in :class:`Rows`.
    """

    encoding: Encoding
    reach: int
    within: int = 8

    def __post_init__(self) -> None:
        if self.reach < 1 or self.within < 1:
            raise PositionError(
                f"a table of offsets needs a row on each side: reach {self.reach}, within {self.within}; give 1 or more"
            )

    @property
    def size(self) -> int:
        """Number of rows, R: 2 reach + 1, and those of the code points."""
        return self._rows.size

    def of(self, values: Tensor) -> Tensor:
        """Row of each value."""
        return self._rows.of(values, lambda offsets: offsets.clamp(-self.reach, self.reach) + self.reach)

    @property
    def _rows(self) -> Rows:
        return Rows(self.encoding, 2 * self.reach + 1, self.within)
