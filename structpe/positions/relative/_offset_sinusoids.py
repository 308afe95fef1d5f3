"""Sines and cosines of offsets, as vectors of pairs: what Transformer-XL and TENER share.

A pair without a path has the vector zero, so that only its content counts. Units of one node, k places apart, have the
vector of k.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from structpe.encodings.base import UNREACHABLE
from structpe.positions.relative._spans import steps
from structpe.terms import Lookup

__all__ = ["everywhere", "sinusoids"]

Sinusoids: TypeAlias = Callable[[Tensor, int], Tensor]


def sinusoids(of_pairs: Lookup, make: Sinusoids, width: int, dtype: torch.dtype) -> Lookup:
    """(r, width) the vector of each distinct value; ``make`` gives those of integers, key minus query."""

    def vectors(values: Tensor) -> Tensor:
        made = torch.where((values == UNREACHABLE)[:, None], 0, make(steps(values), width))
        return made.to(dtype)

    return of_pairs.map(vectors)


def everywhere(table: Tensor, like: Lookup) -> Lookup:
    """The one row of a table (1, ...) for every pair that ``like`` has. The index is a view, without memory."""
    none = like.rows.new_zeros(1, 1)
    return Lookup(table, none, none[:, :, None].expand(1, *like.index.shape[1:]))
