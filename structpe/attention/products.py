"""Attention with vectors of pairs at products, sum_c q_ic k_jc r_ijc, channel by channel.

No vector of a pair is made: for each channel the numbers r_ijc of a block of queries are a matrix, which multiplies
that of q_ic k_jc. What comes out is a bias, and the other terms are computed by the kernel that is best with it.

Shapes: d width of a head; b' and h' structures and heads of the table, or 1; c queries of a block.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from structpe.attention.attend import Call, cheapest, kernel
from structpe.attention.gather import without_lists
from structpe.terms import Lookup, Terms, Toeplitz

__all__ = ["products"]

CELLS = 1 << 17
"""Scores of a block, about."""


def _rest(call: Call) -> Call:
    """The call without vectors at products, with a bias."""
    return replace(call, used=call.used - {"product", "maps"} | {"bias"}, ready=False)


def _limits(call: Call) -> str | None:
    if "product" not in call.used:
        return "is for vectors at products, which these terms lack"
    return "is not traced by torch.compile" if call.traced else None


def _cost(call: Call) -> float:
    return cheapest(_rest(call)).cost(_rest(call)) + 1_000_000 + 2.5 * call.shape[4] * call.cells


@kernel(
    "products",
    supports="maps factors bias mask key query product value scale causal",
    cost=_cost,
    limits=_limits,
    devices="cpu",
)
def products(q: Tensor, k: Tensor, v: Tensor, terms: Terms, dropout: float = 0.0) -> Tensor:
    """O(b h n m) memory, and the time of a few passes over the scores for each channel. Computes in float32 at least.

    Raises:
        RuntimeError: the gradient of a gradient is asked for.
    """
    for change in terms.maps:
        q, k = change(q, k)
    (b, h, n, d), m = q.shape, k.shape[2]
    terms = without_lists(terms, b, n, m)
    exact, scale = torch.promote_types(q.dtype, torch.float32), terms.scale / math.sqrt(d)
    lookups = [x for x in terms.product if isinstance(x, Lookup)]
    wide_q, wide_k = q.to(exact) * scale, k.to(exact)
    each: list[Tensor] = [
        _Products.apply(wide_q, wide_k, x.local().to(exact), x.index)  # type: ignore[no-untyped-call]
        for x in lookups
    ]
    whole = replace(terms, maps=(), product=(), bias=(*terms.bias, *each))
    return cheapest(Call.of(whole, q, (b, h, n, m, d), dropout, False)).compute(q, k, v, whole, dropout)


class _Products(torch.autograd.Function):
    """(b, h, n, m) sum_c q_ic k_jc r_ijc from q (b, h, n, d), k (b, h, m, d), and rows (b', r, h', d) with an index."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, rows: Tensor, index: Tensor | Toeplitz) -> Tensor:
        ctx.save_for_backward(q, k, rows)
        ctx.index = index
        out = q.new_zeros(*q.shape[:3], k.shape[2])
        keys = k.movedim(3, 0).contiguous()[..., None, :]  # (d, b, h, 1, m)
        for at, places in _blocks(q, k, index):
            of_pairs, queries, into = _picked(rows, places), q[:, :, at].movedim(3, 0)[..., None], out[:, :, at]
            for r, of_query, of_key in zip(of_pairs, queries, keys, strict=True):
                into.addcmul_(of_query * r, of_key)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        q, k, rows = ctx.saved_tensors
        to_q, to_k = torch.zeros_like(q), k.new_zeros(k.shape[3], *k.shape[:3])
        sums = rows.new_zeros(rows.shape[3], len(rows), rows.shape[2], rows.shape[1])  # (d, b', h', r)
        keys = k.movedim(3, 0).contiguous()[..., None, :]
        for at, places in _blocks(q, k, ctx.index):
            of_pairs, queries, ds = _picked(rows, places), q[:, :, at].movedim(3, 0)[..., None], grad[:, :, at]
            shape = max(len(rows), len(places)), *of_pairs.shape[2:]
            flat = places.flatten(1)[:, None].expand(shape[0], shape[1], -1)
            for channel, (r, of_query, of_key) in enumerate(zip(of_pairs, queries, keys, strict=True)):
                met = ds * r
                to_q[:, :, at, channel] = (met @ of_key.mT)[..., 0]
                to_k[channel] += (of_query.mT @ met)[..., 0, :]
                of_row = ((ds * of_query) * of_key).sum_to_size(shape).flatten(2)
                more = sums.new_zeros(shape[0], *sums.shape[2:]).scatter_add_(-1, flat, of_row)
                sums[channel] += more.sum_to_size(sums.shape[1:])
        return to_q, to_k.movedim(0, 3), sums.permute(1, 3, 2, 0), None


def _blocks(q: Tensor, k: Tensor, index: Tensor | Toeplitz) -> Iterator[tuple[slice, Tensor]]:
    """Ranges of queries, and the index of their pairs (b', c, m) in int64."""
    (b, h, n, _), m = q.shape, k.shape[2]
    step = max(1, CELLS // max(1, b * h * m))
    for first in range(0, n, step):
        at = slice(first, min(first + step, n))
        part = index.block(at.start, at.stop, m).dense() if isinstance(index, Toeplitz) else index[:, at]
        yield at, part.long()


def _picked(rows: Tensor, places: Tensor) -> Tensor:
    """(d, b', h', c, m) the numbers of all pairs, for each channel."""
    structures, (_, r, h, d) = max(len(rows), len(places)), rows.shape
    flat = places.flatten(1)[None, :, None].expand(d, structures, h, -1)
    values = rows.permute(3, 0, 2, 1).expand(d, structures, h, r)
    return values.gather(-1, flat).view(d, structures, h, *places.shape[1:])
