"""Gaussian basis functions of a number."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["GaussianNetwork", "bells"]


def bells(x: Tensor, means: Tensor, widths: Tensor, least: float) -> Tensor:
    """(R, K) exp(-((x - m_k) / v_k)^2 / 2) / (sqrt(2 pi) v_k) of x (R,),  v_k = |w_k| + least.

    At least in float32: narrow bells need the digits.
    """
    exact = torch.promote_types(means.dtype, torch.float32)
    means, widths = means.to(exact), widths.to(exact).abs() + least
    heights = (-(((x.to(exact)[:, None] - means) / widths) ** 2) / 2).exp() / (math.sqrt(2 * math.pi) * widths)
    return heights


class GaussianNetwork(nn.Module):
    """(R, h) W_2 gelu(W_1 [g; marks] + c_1) + c_2 of the numbers and marks (R, 1 + r) of distinct values.

    g are K :func:`bells` of the number, their means and widths learned from U(0, 3) on; 0 for a value that a mark says
    is no number. W_1 is (K, K + r).

    Args:
        kernels: K.
        marks: r.
        heads: h.
    """

    least = 1e-2

    def __init__(self, kernels: int, marks: int, heads: int) -> None:
        super().__init__()
        self.means, self.widths = (nn.Parameter(torch.empty(kernels).uniform_(0, 3)) for _ in range(2))
        self.hidden, self.out = nn.Linear(kernels + marks, kernels), nn.Linear(kernels, heads)

    def forward(self, inputs: Tensor) -> Tensor:
        marks = inputs[:, 1:]
        near = bells(inputs[:, 0], self.means, self.widths, self.least).to(inputs.dtype)
        basis = torch.cat([near * (1 - marks.sum(1, keepdim=True)), marks], dim=1)
        out: Tensor = self.out(functional.gelu(self.hidden(basis)))
        return out

    @staticmethod
    def count(kernels: str, marks: str, heads: str) -> str:
        """Formula of its number of parameters."""
        return f"3*{kernels} + ({kernels} + {marks})*{kernels} + ({kernels} + 1)*{heads}"
