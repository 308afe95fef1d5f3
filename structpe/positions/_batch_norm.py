"""Batch normalisation over the units that are there."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["BatchNorm"]


class BatchNorm(nn.Module):
    """Each channel to mean 0 and variance 1 over all real units of the batch, then scaled and shifted.

    Padding enters neither the statistics nor the running averages of them, which evaluation uses. So does a training
    step with less than two units, which have no variance.

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
        """(..., c) to (..., c); ``present`` (...) says which are there. What is not comes out as 0."""
        if not self.training:  # each unit for itself, so that nothing needs to know how many there are
            every = self._normed(x.flatten(0, -2), drawn=False).view_as(x)
            return torch.where(present[..., None], every, 0)
        real = x[present]
        return torch.zeros_like(x).index_put((present,), self._normed(real, drawn=len(real) > 1))

    def _normed(self, x: Tensor, drawn: bool) -> Tensor:
        return functional.batch_norm(x, self.mean, self.variance, self.weight, self.bias, drawn)
