"""Offsets on the axes of a window as rows of a table: what Swin and BEiT share."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.coordinates import OUTSIDE
from structpe.errors import PositionError
from structpe.positions import Dims, Positions
from structpe.positions._pair_tables import PairTable
from structpe.positions._tables import Sharing
from structpe.positions.grids._shapes import check_shape
from structpe.terms import Lookup

__all__ = ["WindowBias", "WindowRows"]


@dataclass(frozen=True)
class WindowRows:
    """A row for each offset within a window of the shape (W_1, ..., W_A); those beyond it share the row at its edge.

    Rows count query minus key, as the authors do, the last axis fastest.

    Args:
        model: name of the position model, for error messages.
        window: its shape.
        codes: whether three more rows are for pairs with a unit that is outside the grid: only the query, only the key,
            both.

    Raises:
        PositionError: the window has no axis, or one below 1.
    """

    model: str
    window: tuple[int, ...]
    codes: bool

    def __post_init__(self) -> None:
        check_shape(self.model, self.window, max(1, len(self.window)))

    @property
    def size(self) -> int:
        """Number of rows, R: the product of 2 W_a - 1, and 3 for codes."""
        # A list: torch.compile does not see through a generator here.
        return math.prod([2 * length - 1 for length in self.window]) + 3 * self.codes

    def of(self, values: Tensor) -> Tensor:
        """(r,) row of each of the offsets (r, axes)."""
        row = torch.zeros_like(values[:, 0])
        for axis, length in enumerate(self.window):
            row = row * (2 * length - 1) + (-values[:, axis]).clamp(1 - length, length - 1) + length - 1
        code = values[:, 0] - OUTSIDE
        return torch.where(code > 0, self.size - 4 + code, row) if self.codes else row


class WindowBias(PairTable):
    """s_ij += B[row of the offset between two patches], one learned scalar per head, layer and offset in a window.

    Args:
        dims: sizes of the Transformer.
        encoding: offsets per pair, key minus query.
        rows: the rule of the rows.
        sharing: which layers and heads have the same numbers.
        std: deviation of the normal distribution that the scalars start from.
    """

    def __init__(self, dims: Dims, encoding: Encoding, rows: WindowRows, sharing: Sharing, std: float = 0.02) -> None:
        super().__init__(dims, encoding, rows, sharing, std=std)
        self.window = rows.window

    def of_pairs(self, positions: Positions) -> Lookup:
        """The offset of each pair on each axis of the window.

        Raises:
            PositionError: the encoding gives something else.
        """
        encoding, axes = self.encodings[0], len(self.window)
        of_pairs: Lookup = positions[encoding]
        if of_pairs.table.ndim != 2 or of_pairs.table.shape[1] != axes:
            given = "one number" if of_pairs.table.ndim == 1 else f"{of_pairs.table.shape[1]} numbers"
            raise PositionError(
                f"position model {self.name!r} needs an offset on each of the {axes} axes of its window; "
                f"{encoding.name!r} gives {given} per pair; choose 'grid-offset' with axes={axes}, or another window"
            )
        return of_pairs
