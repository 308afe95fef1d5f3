"""Complex vectors as pairs of real ones: rotation at the input, and attention (Wang B. et al. 2020)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from structpe.positions.blocks._attention import softmax

__all__ = ["Parts", "attended", "turned", "weights"]

Parts = tuple[Tensor, Tensor]
"""Real and imaginary parts, of one shape."""


def turned(amplitude: Parts, angle: Tensor) -> Parts:
    """The product a e^(i angle)."""
    (real, imaginary), cos, sin = amplitude, angle.cos(), angle.sin()
    return real * cos - imaginary * sin, real * sin + imaginary * cos


def attended(q: Parts, k: Parts, v: Parts, mask: Tensor, dropped: float = 0.0) -> Parts:
    """(b, h, n, c/h) twice: the weighted sums of both parts of v."""
    p = weights(q, k, mask, dropped)
    return p @ v[0], p @ v[1]


def weights(q: Parts, k: Parts, mask: Tensor, dropped: float = 0.0) -> Tensor:
    """(b, h, n, m) softmax_j(|sum_c q_ic k_jc| / sqrt(d_h)) over the keys that ``mask`` allows; zeros for none.

    The product is not conjugated. The modulus has no gradient at zero; there it is 0, not NaN.
    """
    real = q[0] @ k[0].mT - q[1] @ k[1].mT
    imaginary = q[0] @ k[1].mT + q[1] @ k[0].mT
    square = real * real + imaginary * imaginary
    modulus = torch.where(square > 0, torch.where(square > 0, square, 1).sqrt(), 0)
    return softmax(modulus / math.sqrt(q[0].shape[-1]), mask, dropped)
