"""Batch normalisation over the real units of a batch."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["BatchNorm"]

_MOMENTUM, _EPSILON = 0.1, 1e-5


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
        if torch.compiler.is_compiling():
            return self._weighted(x, present[..., None])
        if bool(present.all()):
            return self._normed(x.flatten(0, -2), drawn=present.numel() > 1).view_as(x)
        real = x[present]
        return torch.zeros_like(x).index_put((present,), self._normed(real, drawn=len(real) > 1))

    def _normed(self, x: Tensor, drawn: bool) -> Tensor:
        return functional.batch_norm(x, self.mean, self.variance, self.weight, self.bias, drawn, _MOMENTUM, _EPSILON)

    def _weighted(self, x: Tensor, real: Tensor) -> Tensor:
        """The same by sums over all places, as a compiled graph cannot depend on how many units are real."""
        axes, count = tuple(range(x.ndim - 1)), real.sum()
        mean = x.where(real, 0).sum(axes) / count.clamp(min=1)
        variance = (x - mean).square().where(real, 0).sum(axes) / count.clamp(min=1)
        drawn = count > 1
        with torch.no_grad():
            for kept, new in ((self.mean, mean), (self.variance, variance * count / (count - 1).clamp(min=1))):
                kept.add_(torch.where(drawn, _MOMENTUM * (new - kept), 0))
        mean, variance = torch.where(drawn, mean, self.mean), torch.where(drawn, variance, self.variance)
        return ((x - mean) * torch.rsqrt(variance + _EPSILON) * self.weight + self.bias).where(real, 0)
