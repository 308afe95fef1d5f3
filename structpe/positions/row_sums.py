"""Sums of several rows of a table, without a tensor of all the rows that are summed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import embedding_bag

__all__ = ["WeightedSums", "sum_rows"]


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


@dataclass(frozen=True, eq=False)
class WeightedSums:
    """y_t = sum of w x_o over a list of t, o and w, without a tensor of all the rows that are summed.

    Attributes:
        to, of: (Q,) t and o.
        weights: (Q, 1) w.
        sums: how many t there are.
        forth, back: o and w of each t, and t and w of each o: (Q,) rows, (Q,) weights, (sums or terms,) starts.
    """

    to: Tensor
    of: Tensor
    weights: Tensor
    sums: int
    forth: tuple[Tensor, Tensor, Tensor]
    back: tuple[Tensor, Tensor, Tensor]

    @classmethod
    def listed(cls, to: Tensor, of: Tensor, weights: Tensor, sums: int, terms: int) -> WeightedSums:
        """Of (Q,) integers twice, and (Q,) weights; t is below ``sums``, and o below ``terms``."""
        forth, back = _bags(to, of, weights, sums), _bags(of, to, weights, terms)
        return cls(to, of, weights[:, None], sums, forth, back)

    def __call__(self, x: Tensor) -> Tensor:
        """(sums, w) from x (terms, w). Gradients reach x, not weights."""
        plain = torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()
        if plain or x.device.type != "cpu" or x.dtype != self.weights.dtype or not len(self.to):
            rows = x.index_select(0, self.of) * self.weights
            return rows.new_zeros(self.sums, x.shape[1]).index_add(0, self.to, rows)
        made: Tensor = _Weighted.apply(x, self.forth, self.back)  # type: ignore[no-untyped-call]
        return made


def _bags(to: Tensor, of: Tensor, weights: Tensor, sums: int) -> tuple[Tensor, Tensor, Tensor]:
    order, counts = to.argsort(stable=True), torch.bincount(to, minlength=sums)
    return of[order], weights[order], counts.cumsum(0) - counts


class _Weighted(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, forth: tuple[Tensor, ...], back: tuple[Tensor, ...]) -> Tensor:
        ctx.turned = back, forth
        rows, weights, starts = forth
        return embedding_bag(rows, x.contiguous(), starts, mode="sum", per_sample_weights=weights)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _Weighted.apply(grad, *ctx.turned), None, None  # type: ignore[no-untyped-call]
