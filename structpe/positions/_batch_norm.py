"""Batch normalisation over the real units of a batch."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["BatchNorm"]


class BatchNorm(nn.Module):
    """Each channel to mean 0 and variance 1 over all real units of the batch, then scaled and shifted.

    Padding enters neither the statistics nor their running averages. Evaluation uses the running averages, and so does
    a training step with fewer than two units, which have no variance.

    Args:
        width: number of channels, c.
    """

    mean: Tensor
    variance: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("variance", torch.ones(width))

    def forward(self, x: Tensor, present: Tensor) -> Tensor:
        """(..., c) to (..., c); ``present`` (...) marks the real units; the output is 0 at all others."""
        if not self.training:  # each unit separately: their number must not matter to an exported graph
            every = self._normed(x.flatten(0, -2), drawn=False).view_as(x)
            return torch.where(present[..., None], every, 0)
        real = x[present]
        return torch.zeros_like(x).index_put((present,), self._normed(real, drawn=len(real) > 1))

    def _normed(self, x: Tensor, drawn: bool) -> Tensor:
        return functional.batch_norm(x, self.mean, self.variance, self.weight, self.bias, drawn)
