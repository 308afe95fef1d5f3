"""Sums of several rows of a table, without a tensor of all the rows that are summed."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import embedding_bag

__all__ = [
    "sum_rows",
]


_SHORT = 1 << 15
"""numpy sorts 16-bit integers by their digits, several times as fast as longer ones."""


def sum_rows(table: Float[Tensor, "R w"], index: Int[Tensor, "g l"]) -> Float[Tensor, "g w"]:
    """sum_l table[index_gl].

    Args:
        table: the rows.
        index: which of them each sum contains; it may contain a row twice.

    Raises:
        RuntimeError: on a CPU, the gradient of a gradient is asked for.
    """
    if torch.compiler.is_compiling() or table.device.type != "cpu" or not index.numel():
        return table[index].sum(1)
    summed: Tensor = _SumRows.apply(table, index)  # type: ignore[no-untyped-call]
    return summed


class _SumRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, index: Tensor) -> Tensor:
        ctx.save_for_backward(index)
        ctx.rows = len(table)
        return embedding_bag(index, table, mode="sum")

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        """The sums of each row, which contain its gradient wherever it was summed: no atomic or random order."""
        (index,) = ctx.saved_tensors
        flat = index.flatten()
        keys = flat.to(torch.int16 if ctx.rows < _SHORT else torch.int32)
        order = torch.from_numpy(np.argsort(keys.numpy(), kind="stable"))
        counts = torch.bincount(flat, minlength=ctx.rows)
        starts = counts.cumsum(0) - counts
        return embedding_bag(order // index.shape[1], grad, starts, mode="sum"), None
