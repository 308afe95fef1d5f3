"""Interpolation between the scalings of fast and slow pairs of channels."""

from __future__ import annotations

import math

import torch
from torch import Tensor

__all__ = ["ramp"]


def ramp(width: int, base: float, trained: int, many: float, few: float, truncate: bool = True) -> Tensor:
    """(width/2,) float64: 1 for pairs that turn more than ``many`` times within a text of training, 0 below ``few``.

    The pair that turns r times there is i(r) = width ln(trained / 2 pi r) / (2 ln base), in general not a whole number;
    the values fall in a straight line from floor(i(many)) to ceil(i(few)), clamped to 0..width-1. (Only width/2 pairs
    exist; the authors' code clamps it to the number of channels.) Without ``truncate`` it goes from i(many) to i(few)
    themselves.
    """

    def pair(times: float) -> float:
        return width * math.log(trained / (times * 2 * math.pi)) / (2 * math.log(base))

    ends = (math.floor(pair(many)), math.ceil(pair(few))) if truncate else (pair(many), pair(few))
    first, last = max(ends[0], 0), min(ends[1], width - 1)
    span = last - first or 0.001  # the authors', against division by zero
    return 1 - ((torch.arange(width // 2, dtype=torch.float64) - first) / span).clamp(0, 1)
