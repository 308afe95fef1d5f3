"""Sines before cosines, as the authors of the Transformer wrote them (tensor2tensor, fairseq)."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["timing"]


def timing(places: Tensor, width: int, base: float | Tensor = 10000.0) -> Tensor:
    """(..., width) float64: cat[sin(t omega_i), cos(t omega_i)], omega_i = base^(-i/(w/2 - 1)), i < w/2 rounded down.

    An odd width leaves one channel, the last: it is zero. float32 is visibly wrong from position 10,000 on.

    Args:
        places: t, any shape.
        width: w.
        base: one, or one per place (any shape that ``places`` broadcasts with).
    """
    half = width // 2
    powers = -torch.arange(half, dtype=torch.float64, device=places.device) / max(half - 1, 1)
    bases = torch.as_tensor(base, dtype=torch.float64, device=places.device)
    angles = places.to(torch.float64)[..., None] * bases[..., None] ** powers
    rest = angles.new_zeros(*angles.shape[:-1], width - 2 * half)
    return torch.cat([angles.sin(), angles.cos(), rest], dim=-1)
