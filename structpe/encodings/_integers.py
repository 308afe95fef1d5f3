"""Whole numbers of pairs, of which those that may occur are known beforehand: no search for distinct ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.encodings._encoded import Column
from structpe.encodings._graphs import Graphs
from structpe.encodings.base import UNREACHABLE, WITHIN
from structpe.structure import Ids

__all__ = ["below_top", "clipped", "column_of_integers", "finite", "index_of_integers", "known"]

Array = NDArray[Any]

_BLOCK = 1 << 20


def finite(numbers: Array) -> tuple[int, int, bool]:
    """The least and the largest number, except for the largest that the dtype has, and whether that one is there.

    It stands for pairs without a number, so that no array beside it says which pairs have none.
    """
    if not numbers.size:
        return 0, 0, False
    top = np.iinfo(numbers.dtype).max
    high = int(numbers.max())
    if high == top:
        high = below_top(numbers)
        return min(int(numbers.min()), high), high, True
    return int(numbers.min()), high, False


def below_top(numbers: Array) -> int:
    """The largest number, except for the largest that the dtype has, block by block: no copy of all is made."""
    flat, one = numbers.reshape(-1), numbers.dtype.type(1)  # one more than the largest is the least number of the dtype
    return max(int((flat[first : first + _BLOCK] + one).max()) for first in range(0, flat.size, _BLOCK)) - 1


def clipped(numbers: Array, limit: int | None) -> Array:
    """The numbers between -limit and limit, in place; those of pairs without a number stay."""
    low, high, lacking = finite(numbers)
    if limit is None or limit >= max(high, -low):
        return numbers
    there: Any = numbers != np.iinfo(numbers.dtype).max if lacking else True
    np.minimum(numbers, limit, out=numbers, where=there)
    return numbers if low >= -limit else np.maximum(numbers, -limit, out=numbers)


def index_of_integers(numbers: Array, low: int, high: int) -> Array:
    """The index of numbers in [low, ..., high, the value of pairs without a number], in place if it is as wide."""
    top, missing, unsigned = np.iinfo(numbers.dtype).max, high - low + 1, np.dtype(f"u{numbers.itemsize}")
    if high < top and missing <= np.iinfo(unsigned).max:  # differences fit, and so does the larger one of the top
        index: Array = numbers.view(unsigned)
        np.subtract(index, unsigned.type(low % (1 << 8 * numbers.itemsize)), out=index)
        np.minimum(index, unsigned.type(missing), out=index)
        return index
    wide = numbers.astype(np.int64) - low
    wide[numbers == top] = missing
    found: Array = wide.astype(np.min_scalar_type(missing))
    return found


def known(numbers: Array, most: int) -> tuple[Ids, Array]:
    """The values and the index of numbers from 0 to ``most`` - 1: all of them, or those that occur if they are many."""
    if most <= 1 << 8:
        return np.arange(most), numbers
    seen = np.zeros(most, dtype=np.bool_)
    seen[numbers] = True
    values = np.flatnonzero(seen)
    place = np.empty(most, dtype=np.min_scalar_type(len(values)))
    place[values] = np.arange(len(values))
    return values, place[numbers]


def column_of_integers(graphs: Graphs, numbers: Array, within: bool = True, also: Array | None = None) -> Column:
    """From flat numbers (P,) of pairs of nodes to the column of pairs of units.

    Args:
        graphs: the structures.
        numbers: in a signed or unsigned dtype, whose largest number stands for ``UNREACHABLE``.
        within: whether two units of one node have ``WITHIN + k``, or the number of their node.
        also: other numbers that are to be among the values, which begin with consecutive ones.
    """
    low, high, lacking = finite(numbers)
    if also is not None:
        low, high = min(low, int(also.min())), max(high, int(also.max()))
    values = np.arange(low, high + 1)
    if lacking:
        values = np.append(values, UNREACHABLE)
    index = graphs.pairs_of_units(index_of_integers(numbers, low, high))
    places, offsets = graphs.inside() if within else (np.zeros(0, dtype=np.int64),) * 2
    if len(places):
        first, most = len(values), int(offsets.max())
        values = np.append(values, WITHIN + np.delete(np.arange(-most, most + 1), most))  # 0 is no other unit
        index = index.astype(_narrowest(values), copy=False)
        index[places] = offsets + first + most - (offsets > 0)
    return Column(graphs.units, values, index.astype(_narrowest(values), copy=False), graphs.squares)


def _narrowest(values: Array) -> np.dtype[Any]:
    return np.min_scalar_type(max(len(values) - 1, 0))
