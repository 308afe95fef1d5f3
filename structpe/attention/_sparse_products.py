"""Products and sums along listed pairs, each the gradient of the other. Vectors of pairs are computed block by block.

Shapes: e pairs, h heads, d width. A factor (x, i) is a table x (R, h, d) and, for each pair, its row i (e,) in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.autograd import Function

__all__ = ["Along", "collect", "meet"]

Along: TypeAlias = tuple[Tensor, Tensor]

_BLOCK = 1 << 18
"""Number of elements of a block of an (e, h, d) tensor."""


def meet(*factors: Along) -> Tensor:
    """(e, h) sum_c of the product of x[i_e, c] over the factors, in float32 at least."""
    met: Tensor = _Meet.apply(*_flat(factors))  # type: ignore[no-untyped-call]
    return met


def collect(weights: Tensor, to: Tensor, rows: int, *factors: Along) -> Tensor:
    """(rows, h, d) sum over the pairs with to_e = row of weights_e times the product of x[i_e] over the factors.

    Args:
        weights: (e, h).
        to: (e,) row of each pair in the result.
        rows: number of rows of the result.
        factors: what is multiplied.
    """
    collected: Tensor = _Collect.apply(rows, weights, to, *_flat(factors))  # type: ignore[no-untyped-call]
    return collected


class _Meet(Function):
    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> Tensor:
        ctx.save_for_backward(*tensors)
        factors = _factors(tensors)
        x, i = factors[0]
        result = x.new_empty(len(i), x.shape[1], dtype=_wide(x))
        for block in _blocks(factors):
            result[block] = _product(factors, block).sum(-1)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        factors = _factors(ctx.saved_tensors)
        needed = ctx.needs_input_grad
        return tuple(_of_factor(grad, factors, k) if needed[k] else None for k in range(len(needed)))


class _Collect(Function):
    @staticmethod
    def forward(ctx: Any, rows: int, weights: Tensor, to: Tensor, *tensors: Tensor) -> Tensor:
        ctx.save_for_backward(weights, to, *tensors)
        factors = _factors(tensors)
        x = factors[0][0]
        result = x.new_zeros(rows, *x.shape[1:], dtype=_wide(x))
        for block in _blocks(factors):
            result.index_add_(0, to[block], weights[block, :, None].to(result.dtype) * _product(factors, block))
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        weights, to, *tensors = ctx.saved_tensors
        factors, needed = _factors(tensors), ctx.needs_input_grad
        of_weights = meet((grad, to), *factors).to(weights.dtype) if needed[1] else None
        others = [(grad, to), *factors]
        of_factors = (_of_factor(weights, others, k - 2) if needed[k] else None for k in range(3, len(needed)))
        return None, of_weights, None, *of_factors


def _of_factor(weights: Tensor, factors: Sequence[Along], which: int) -> Tensor:
    """The gradient of one factor: the product of the others, summed to its rows."""
    x, i = factors[which]
    return collect(weights, i, len(x), *factors[:which], *factors[which + 1 :]).to(x.dtype)


def _flat(factors: Sequence[Along]) -> Iterator[Tensor]:
    """First all tables, then all rows."""
    return (part for parts in zip(*factors, strict=True) for part in parts)


def _factors(tensors: Sequence[Tensor]) -> list[Along]:
    half = len(tensors) // 2
    return list(zip(tensors[:half], tensors[half:], strict=True))


def _product(factors: Sequence[Along], block: slice) -> Tensor:
    return reduce(torch.mul, [x.index_select(0, i[block]).to(_wide(x)) for x, i in factors])


def _wide(x: Tensor) -> torch.dtype:
    return torch.promote_types(x.dtype, torch.float32)


def _blocks(factors: Sequence[Along]) -> Iterator[slice]:
    x, i = factors[0]
    step = max(1, _BLOCK // (x.shape[1] * x.shape[2]))
    return (slice(first, first + step) for first in range(0, len(i), step))
