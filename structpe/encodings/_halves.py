"""Symmetric pairs as a lower triangle, row by row, which takes half of the bytes of a square.

Which form the index of u units has follows from its length: u^2 is a square, 2u - 1 a plain sequence (Toeplitz), and
u (u + 1) / 2 with u > 2 a triangle.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.encodings._fast import compiled, fast
from structpe.encodings._flat import starts_of
from structpe.structure import Ids

__all__ = ["halves", "is_half", "whole"]

Array = NDArray[Any]


def halves(index: Array, starts: Ids, sizes: Ids) -> tuple[Array, Ids]:
    """The flat index of several structures with a triangle in place of each symmetric square, and where each begins."""
    lengths, symmetric = np.diff(starts), np.zeros(len(sizes), dtype=np.bool_)
    symmetric[:] = (lengths == sizes * sizes) & (sizes > 2)
    if fast():
        _check(index, starts, sizes, symmetric)
    else:
        for number in np.flatnonzero(symmetric).tolist():
            square = index[starts[number] : starts[number + 1]].reshape(sizes[number], -1)
            symmetric[number] = np.array_equal(square, square.T)
    if not symmetric.any():
        return index, starts
    ends = starts_of(np.where(symmetric, sizes * (sizes + 1) // 2, lengths))
    result = np.empty(int(ends[-1]), dtype=index.dtype)
    if fast():
        _halve(index, starts, sizes, symmetric, result)
        return result, ends
    for number, n in enumerate(sizes.tolist()):
        mine = index[starts[number] : starts[number + 1]]
        half = mine.reshape(n, n)[np.tri(n, dtype=np.bool_)] if symmetric[number] else mine
        result[ends[number] : ends[number + 1]] = half
    return result, ends


def is_half(length: int, units: int) -> bool:
    """Whether the index of so many units is a triangle, by its length."""
    return units > 2 and length == units * (units + 1) // 2


def whole(half: Array, units: int) -> Array:
    """(u, u) the square of a triangle."""
    square = np.empty((units, units), dtype=half.dtype)
    if fast():
        _write(half, square)
    else:
        lower = np.tri(units, dtype=np.bool_)
        square[lower] = half
        square.T[lower] = half
    return square


@compiled
def _check(index: Array, starts: Ids, sizes: Ids, symmetric: NDArray[np.bool_]) -> None:
    for g in range(len(sizes)):
        if symmetric[g]:
            n, first = sizes[g], starts[g]
            for i in range(n):
                for j in range(i):
                    if index[first + i * n + j] != index[first + j * n + i]:
                        symmetric[g] = False
                        break
                if not symmetric[g]:
                    break


@compiled
def _halve(index: Array, starts: Ids, sizes: Ids, symmetric: NDArray[np.bool_], result: Array) -> None:
    k = 0
    for g in range(len(sizes)):
        n, first, last = sizes[g], starts[g], starts[g + 1]
        if not symmetric[g]:
            for q in range(first, last):
                result[k] = index[q]
                k += 1
            continue
        for i in range(n):
            for j in range(i + 1):
                result[k] = index[first + i * n + j]
                k += 1


@compiled
def _write(half: Array, square: Array) -> None:
    k = 0
    for i in range(len(square)):
        for j in range(i + 1):
            square[i, j] = half[k]
            square[j, i] = half[k]
            k += 1
