"""Real numbers that are equal but for rounding errors made equal, so that a vocabulary holds each once.

Rounding alone does not do it: of two numbers that are nearly the same, one may be rounded up and the other down. Grids
are of powers of 2, and fractions of small numbers do not lie in the middle between two of their points.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["distinct", "significant"]

Floats = NDArray[np.float64]

_BITS = 36
_WIDE = 64  # errors: no group of numbers is wider, however close they lie


def significant(values: Floats) -> Floats:
    """To 36 binary digits, 11 decimal ones: for numbers whose relative errors are a few units of the last of 53."""
    mantissa, exponent = np.frexp(values)
    rounded: Floats = np.ldexp(np.round(np.ldexp(mantissa, _BITS)), exponent - _BITS) + 0.0
    return rounded


def distinct(values: Floats, error: float) -> tuple[Floats, NDArray[np.int64]]:
    """The distinct numbers (r,) among values of any shape, and which of them each is, of the shape of the values.

    Numbers next to one another, in ascending order, are the same if they differ by ``error`` at most.

    Args:
        values: finite numbers.
        error: the most that two numbers differ by which are the same; above 0.
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
    grid = 2.0 ** np.ceil(np.log2(16 * error))
    return np.round(middle / grid) * grid + 0.0, index.reshape(values.shape)
