"""Flat arrays: parts of all structures, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.structure import Ids

__all__ = ["blocks", "interleave", "joined", "ranges", "scatter", "starts_of"]

Array = NDArray[Any]

_SHORT = 128  # parts up to this length are written by an index of their places, longer ones as slices


def starts_of(lengths: Any) -> Ids:
    """(parts + 1,) where each of consecutive parts of these lengths begins, and the end."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def joined(parts: Sequence[Ids]) -> Ids:
    """Numbers of all parts, one after the other; faster than ``np.concatenate`` for many small ones, without gaps."""
    memory: Any = parts
    return np.frombuffer(bytearray().join(memory), dtype=np.int64)


def ranges(first: Ids, lengths: Ids) -> Ids:
    """The numbers first[i] .. first[i] + lengths[i] - 1 of each i, one range after the other."""
    ends = np.cumsum(lengths)
    result: Ids = np.repeat(first - ends + lengths, lengths)
    result += np.arange(len(result))
    return result


def blocks(widths: Ids, cells: int) -> Iterator[slice]:
    """Consecutive rows of these widths that together have so many cells; one row at the least."""
    ends, first = np.cumsum(widths), 0
    while first < len(widths):
        before = int(ends[first] - widths[first])
        last = max(first + 1, int(np.searchsorted(ends, before + cells, side="right")))
        yield slice(first, last)
        first = last


def scatter(result: Array, starts: Ids, parts: Array) -> None:
    """Write parts of one length, the rows of a matrix, to where each begins."""
    width = parts.shape[1]
    if width <= _SHORT:
        result[starts[:, None] + np.arange(width)] = parts
        return
    for start, part in zip(starts.tolist(), parts, strict=True):
        result[start : start + width] = part


def interleave(result: Array, starts: Ids, other: NDArray[np.bool_], flat: Array) -> None:
    """Write the parts of structures into a flat array, except for the places of others.

    Args:
        result: where; parts of all structures.
        starts: (g + 1,) where each part begins, and the end.
        other: (g,) the structures whose places are left alone.
        flat: the parts of those that are not ``other``.
    """
    done = used = 0
    runs = np.flatnonzero(np.diff(other, prepend=False, append=False))  # of consecutive others, the first and the end
    for begin, end in starts[runs].reshape(-1, 2).tolist():
        result[done:begin] = flat[used : used + begin - done]
        used, done = used + begin - done, end
    result[done:] = flat[used:]
