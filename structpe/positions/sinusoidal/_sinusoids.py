"""Sines and cosines of places, in the orders and with the frequencies that authors give them."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["halves", "interleaved", "inverse_frequencies", "timing"]


def inverse_frequencies(width: int, device: torch.device | None = None, base: float | Tensor = 10000.0) -> Tensor:
    """(width/2 rounded up,) base^(-2i/width), in float64: float32 is visibly wrong from position 10,000 on.

    A base of shape (..., 1) gives as many rows of them.
    """
    return base ** (-torch.arange(0, width, 2, dtype=torch.float64, device=device) / width)


def interleaved(places: Tensor, width: int, base: float = 10000.0) -> Tensor:
    """(..., width) float64: sin of channel 0, cos of channel 1, ...: survey, eq. 21."""
    angles = places[..., None].to(torch.float64) * inverse_frequencies(width, places.device, base)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)[..., :width]


def halves(places: Tensor, width: int) -> Tensor:
    """(..., width) float64: cat[sin(t omega_i), cos(t omega_i)], omega_i = 10000^(-2i/width), as Transformer-XL's.

    omega is rounded to float32, as the authors' is, so that both are identical. The rounding does not matter: sines and
    cosines of a slightly different frequency are as good.
    """
    rounded = inverse_frequencies(width, places.device).to(torch.float32).to(torch.float64)
    angles = places[..., None].to(torch.float64) * rounded
    return torch.cat([angles.sin(), angles.cos()], dim=-1)[..., :width]


def timing(places: Tensor, width: int, base: float | Tensor = 10000.0) -> Tensor:
    """(..., width) float64: cat[sin(t omega_i), cos(t omega_i)], omega_i = base^(-i/(w/2 - 1)), i < w/2 rounded down.

    This is the form of the authors' code (tensor2tensor, fairseq). If the width is odd, the last channel is zero.

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
