"""Inputs of golden files that are a formula, so that the files hold outputs only."""

from __future__ import annotations

import math

import torch
from torch import Tensor

__all__ = ["wave"]


def wave(*shape: int, shift: float = 0.0) -> Tensor:
    """cos(0.7 i + shift) at the i-th place, float64."""
    return torch.cos(0.7 * torch.arange(math.prod(shape), dtype=torch.float64) + shift).reshape(shape)
