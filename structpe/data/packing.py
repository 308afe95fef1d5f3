"""Several structures in one row of a batch: less padding where sizes differ much."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from structpe.encodings.base import Encoded, narrow, same_shape
from structpe.errors import EncodingError

__all__ = ["fill", "graphs_of", "pack"]


def fill(sizes: Sequence[int], room: int) -> list[list[int]]:
    """Which structures share a row of ``room`` units: first fit, largest first.

    Raises:
        EncodingError: a structure is larger than a row.
    """
    if sizes and max(sizes) > room:
        raise EncodingError(f"a structure has {max(sizes)} units, a row has room for {room}; give more room")
    rows: list[list[int]] = []
    left: list[int] = []
    for i in sorted(range(len(sizes)), key=lambda i: -sizes[i]):
        row = next((r for r, space in enumerate(left) if space >= sizes[i]), len(rows))
        if row == len(rows):
            rows.append([])
            left.append(room)
        rows[row].append(i)
        left[row] -= sizes[i]
    return rows


def pack(encoded: Sequence[Encoded]) -> Encoded:
    """One encoding of several structures as that of one row. Pairs across structures get any value: mask them.

    Raises:
        EncodingError: there is none, or not all are of one encoding.
    """
    if not encoded:
        raise EncodingError("there is nothing to pack; give what an encoding says of one structure or more")
    if len({(e.index is None, e.listed is None, e.values.ndim) for e in encoded}) > 1:
        raise EncodingError("encodings of units, of pairs and of listed pairs do not share a row; pack each by itself")
    if encoded[0].index is None:
        return Encoded(np.concatenate([e.values for e in encoded]))
    values = same_shape([e.values for e in encoded])
    starts = np.cumsum([0, *(len(v) for v in values)])[:-1]
    ends = np.cumsum([e.count for e in encoded])
    firsts = ends - [e.count for e in encoded]
    indices = [
        e.index.astype(np.int64) + start for e, start in zip(encoded, starts, strict=True) if e.index is not None
    ]
    if encoded[0].listed is not None:
        pairs = [e.listed + first for e, first in zip(encoded, firsts, strict=True) if e.listed is not None]
        return Encoded(np.concatenate(values), narrow(np.concatenate(indices)), np.concatenate(pairs), int(ends[-1]))
    packed = np.zeros((ends[-1], ends[-1]), dtype=np.int64)
    for index, first, end in zip(indices, firsts, ends, strict=True):
        packed[first:end, first:end] = index
    return Encoded(np.concatenate(values), narrow(packed))


def graphs_of(rows: Sequence[Sequence[int]]) -> Int[Tensor, "b n"]:
    """(b, n) number within its row of the structure that a unit belongs to, -1 where padded; from sizes per row.

    Raises:
        EncodingError: there is no row.
    """
    if not rows:
        raise EncodingError("there is no row; give the sizes of the structures in each row")
    most = max(sum(sizes) for sizes in rows)
    numbers = np.full((len(rows), most), -1)
    for mine, sizes in zip(numbers, rows, strict=True):
        mine[: sum(sizes)] = np.repeat(np.arange(len(sizes)), sizes)
    return torch.from_numpy(numbers)
