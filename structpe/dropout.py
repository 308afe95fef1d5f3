"""Dropout whose random numbers are drawn four at a time on a CPU.

PyTorch draws a number for each element there, and decides by a branch that a processor cannot foresee. Here a draw of
64 bits decides about four elements, without a branch (figures: ``docs/speed.md``).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["Dropout", "dropout", "noise"]

STEPS = 1 << 16
"""A probability is rounded to a multiple of 1 / STEPS; means stay exact, as what is kept is scaled by the same."""

FEW = 1 << 13
"""Elements below which starting the operations takes longer than PyTorch's draws."""


def dropout(x: Tensor, p: float) -> Tensor:
    """x_i n_i, with n_i = 0 with probability p, and 1 / (1 - p) otherwise (Srivastava et al. 2014).

    ``torch.nn.functional.dropout`` in training, and on other devices than a CPU and in compiled models just that.

    Args:
        x: any shape, of a floating dtype.
        p: 0 or more and below 1; 0 returns ``x``. On a CPU it is rounded to a multiple of 2^-16.

    Raises:
        RuntimeError: inside ``torch.func.vmap``, for many elements on a CPU; call PyTorch's function there.
    """
    if not p:
        return x
    return x * noise(x, p) if not torch.compiler.is_compiling() and _by_fours(x, p) else functional.dropout(x, p)


def noise(like: Tensor, p: float, generator: torch.Generator | None = None) -> Tensor:
    """What :func:`dropout` multiplies by.

    Args:
        like: its shape, dtype and device are those of the result.
        p: as for :func:`dropout`.
        generator: of the random numbers; None for PyTorch's own.
    """
    if not _by_fours(like, p):
        return torch.empty_like(like).bernoulli_(1 - p, generator=generator).div_(1 - p)
    dropped = round(p * STEPS)
    drawn = torch.empty(-(-like.numel() // 4), dtype=torch.int64, device="cpu")
    drawn.random_(-(1 << 63), None, generator=generator)
    kept = torch.empty(like.shape, dtype=like.dtype, device="cpu")
    torch.ge(drawn.view(torch.int16)[: like.numel()], dropped - STEPS // 2, out=kept.view(-1))
    return kept.mul_(STEPS / (STEPS - dropped))


def _by_fours(like: Tensor, p: float) -> bool:
    return like.device.type == "cpu" and like.numel() >= FEW and 0 < round(p * STEPS) < STEPS


class Dropout(nn.Dropout):
    """``torch.nn.Dropout``, by :func:`dropout` where it is not in place."""

    def forward(self, input: Tensor) -> Tensor:
        """The input, in training with :func:`dropout`."""
        if not self.training or not self.p:
            return input
        return super().forward(input) if self.inplace else dropout(input, self.p)
