"""Offsets on the axes of a window as rows of a table: what Swin and BEiT share."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.coordinates import OUTSIDE
from structpe.errors import PositionError
from structpe.positions.grids._grids import check_shape
from structpe.terms import Lookup

__all__ = ["check_window", "codes", "grid_offsets", "window_rows"]


def check_window(model: str, window: Sequence[int]) -> int:
    """The number of offsets in a window of the shape (W_1, ..., W_A): the product of 2 W_a - 1.

    Raises:
        PositionError: no axis, or one below 1.
    """
    check_shape(model, window, max(1, len(window)))
    rows = 1
    for length in window:
        rows *= 2 * length - 1
    return rows


def grid_offsets(model: str, encoding: Encoding, of_pairs: Lookup, axes: int) -> Lookup:
    """What an encoding of arity 2 says of each pair, if it is an offset (key minus query) on each of so many axes.

    Raises:
        PositionError: it is not.
    """
    if of_pairs.table.ndim != 2 or of_pairs.table.shape[1] != axes:
        given = "one number" if of_pairs.table.ndim == 1 else f"{of_pairs.table.shape[1]} numbers"
        raise PositionError(
            f"position model {model!r} needs an offset on each of the {axes} axes of its window; {encoding.name!r} "
            f"gives {given} per pair; choose 'grid-offset' with axes={axes}, or another window"
        )
    return of_pairs


def window_rows(values: Tensor, window: Sequence[int]) -> Tensor:
    """(r,) row of each of the offsets (r, axes), those beyond the window as those at its edge; last axis fastest.

    The rows count query minus key, as the authors do.
    """
    row = torch.zeros_like(values[:, 0])
    for axis, length in enumerate(window):
        row = row * (2 * length - 1) + (-values[:, axis]).clamp(1 - length, length - 1) + length - 1
    return row


def codes(values: Tensor) -> Tensor:
    """(r,) 1 where the query alone has no place in the grid, 2 where the key alone, 3 where both, else 0 or less."""
    return values[:, 0] - OUTSIDE
