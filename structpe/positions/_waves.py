"""Sines and cosines of positions."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["frequencies", "interleaved"]


def frequencies(width: int, device: torch.device | None = None, base: float | Tensor = 10000.0) -> Tensor:
    """(width/2 rounded up,) base^(-2i/width), in float64: float32 is visibly wrong from position 10,000 on.

    A base of shape (..., 1) gives as many rows of them.
    """
    return base ** (-torch.arange(0, width, 2, dtype=torch.float64, device=device) / width)


def interleaved(places: Tensor, width: int, base: float = 10000.0) -> Tensor:
    """(..., width) float64: sin of channel 0, cos of channel 1, ...: survey, eq. 21."""
    angles = places[..., None].to(torch.float64) * frequencies(width, places.device, base)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)[..., :width]
