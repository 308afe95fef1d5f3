"""Fixed random numbers, used in evaluation so that results are reproducible."""

from __future__ import annotations

import math

import torch
from torch import Tensor

__all__ = ["Normals", "orthogonal"]

_LONG = 64


def orthogonal(heads: int, rows: int, columns: int) -> Tensor:
    """(heads, rows, columns) float64, each row of length sqrt(columns), as normal ones are on average.

    Rows of a head are orthogonal if there are at most as many as columns; otherwise, those of each block of that size.
    """
    draw = torch.Generator().manual_seed(0)
    blocks = [
        torch.linalg.qr(torch.randn(heads, columns, min(columns, rows - first), generator=draw, dtype=torch.float64)).Q
        for first in range(0, rows, columns)
    ]
    return torch.cat(blocks, dim=2).transpose(1, 2).contiguous() * math.sqrt(columns)


class Normals:
    """An endless sequence of normal numbers, whose first n do not depend on n.

    Args:
        shape: of the numbers at each place.
    """

    def __init__(self, *shape: int) -> None:
        self.shape = shape
        self.known = torch.zeros(0, *shape)

    def first(self, count: int) -> Tensor:
        """(count, *shape) float32; drawn block by block, because a longer draw need not begin like a shorter one."""
        known = self.known  # one that another thread cannot lengthen meanwhile
        while len(known) < count:
            draw = torch.Generator().manual_seed(len(known))
            known = torch.cat([known, torch.randn(_LONG, *self.shape, generator=draw)])
        self.known = known
        return known[:count]
