"""Products and sums along listed pairs, each the gradient of the other; vectors of pairs are made block by block.

Shapes: e pairs (i_e, j_e), h heads, d width.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

__all__ = ["collect", "meet"]

_BLOCK = 1 << 20
"""Numbers in a block: what is held of the (e, h, d) at a time."""


def meet(a: Tensor, b: Tensor, i: Tensor, j: Tensor) -> Tensor:
    """(e, h) a[i_e] . b[j_e] of a (n, h, d) and b (m, h, d), in float32 at least."""
    met: Tensor = _Meet.apply(a, b, i, j)  # type: ignore[no-untyped-call]
    return met


def collect(weights: Tensor, b: Tensor, i: Tensor, j: Tensor, rows: int) -> Tensor:
    """(rows, h, d) the sum of weights_e b[j_e] over the pairs with i_e = row, in float32 at least."""
    collected: Tensor = _Collect.apply(weights, b, i, j, rows)  # type: ignore[no-untyped-call]
    return collected


class _Meet(Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, i: Tensor, j: Tensor) -> Tensor:
        ctx.save_for_backward(a, b, i, j)
        wide = _wide(a)
        result = a.new_empty(len(i), a.shape[1], dtype=wide)
        for block in _blocks(i, a):
            result[block] = (a[i[block]].to(wide) * b[j[block]].to(wide)).sum(-1)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        a, b, i, j = ctx.saved_tensors
        of_a = collect(grad, b, i, j, len(a)).to(a.dtype) if ctx.needs_input_grad[0] else None
        of_b = collect(grad, a, j, i, len(b)).to(b.dtype) if ctx.needs_input_grad[1] else None
        return of_a, of_b, None, None


class _Collect(Function):
    @staticmethod
    def forward(ctx: Any, weights: Tensor, b: Tensor, i: Tensor, j: Tensor, rows: int) -> Tensor:
        ctx.save_for_backward(weights, b, i, j)
        wide = _wide(b)
        result = b.new_zeros(rows, *b.shape[1:], dtype=wide)
        for block in _blocks(i, b):
            result.index_add_(0, i[block], weights[block, :, None].to(wide) * b[j[block]].to(wide))
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        weights, b, i, j = ctx.saved_tensors
        of_weights = meet(grad, b, i, j).to(weights.dtype) if ctx.needs_input_grad[0] else None
        of_b = collect(weights, grad, j, i, len(b)).to(b.dtype) if ctx.needs_input_grad[1] else None
        return of_weights, of_b, None, None, None


def _wide(x: Tensor) -> torch.dtype:
    return torch.promote_types(x.dtype, torch.float32)


def _blocks(pairs: Tensor, x: Tensor) -> Iterator[slice]:
    step = max(1, _BLOCK // max(1, x[0].numel() if len(x) else 1))
    return (slice(first, first + step) for first in range(0, len(pairs), step))
