"""Make real numbers equal that differ only by rounding errors, so that a vocabulary has each of them once.

Rounding is not enough: of two numbers that are nearly the same, one may be rounded up and the other down. Grids use
powers of 2, because fractions of small numbers are then not in the middle between two points.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["SPLIT", "distinct", "significant", "to_grid"]

Floats = NDArray[np.float64]

_BITS = 36
SPLIT = 1 + 2.0 ** (53 - _BITS)
"""The factor by which a number is split into its first digits and the others (Veltkamp); see :func:`significant`."""

_WIDE = 64  # the largest width of a group of equal numbers, in errors


def significant(values: Floats) -> Floats:
    """Round to 36 binary (11 decimal) digits, for numbers whose relative errors are a few units of the last of 53."""
    high = values * SPLIT  # the sum keeps the first digits
    rounded: Floats = high - (high - values) + 0.0
    return rounded


def to_grid(values: Floats, error: float | Floats) -> Floats:
    """Round to multiples of the power of 2 that is at least 16 times the error of the numbers."""
    grid = 2.0 ** np.ceil(np.log2(16 * error))
    rounded: Floats = np.round(values / grid) * grid + 0.0
    return rounded


def distinct(values: Floats, error: float) -> tuple[Floats, NDArray[np.int64]]:
    """The distinct numbers (r,) among values of any shape, and an index into them, of the shape of the values.

    Neighbours in ascending order are equal if they differ by at most ``error``.

    Args:
        values: finite numbers.
        error: largest difference of equal numbers; above 0.
    """
    flat = values.reshape(-1)
    order = np.argsort(flat)
    ascending = flat[order]
    steps = np.diff(ascending, prepend=ascending[:1]) > error
    first = ascending[steps.nonzero()[0]]
    beginning = np.concatenate([ascending[:1], first])[np.cumsum(steps)]
    steps[1:] |= np.diff(np.floor((ascending - beginning) / (_WIDE * error))) > 0
    group = np.cumsum(steps)
    index = np.empty(len(flat), dtype=np.int64)
    index[order] = group
    found = np.bincount(group, weights=ascending - beginning) / np.bincount(group)
    middle = found + beginning[np.searchsorted(group, np.arange(len(found)))]
    return to_grid(middle, error), index.reshape(values.shape)
