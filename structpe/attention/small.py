"""Attention over few units by batched matrix products, which are faster than the fused kernel on a CPU.

PyTorch's fused kernel computes structures one by one. For 128 graphs of 24 nodes and 4 heads of width 16, this kernel
takes two thirds of its time, forward and backward; from 50 nodes on the fused kernel is faster. With dropout of weights
PyTorch has no fused kernel on a CPU, and the products are faster up to some hundred units.

For few units, moving the data takes more time than the products: padding structures, splitting projections into heads,
and the same for the gradients. So several buckets are computed in one call. One selection of rows gathers queries, keys
and values of all heads in the order in which the products read them, and one returns the result. The products write
their gradients into one tensor, which one more selection reorders.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from structpe.attention.attend import Call, kernel
from structpe.attention.gather import (
    disallow,
    folded,
    gather_scalars,
    masks,
    may_forbid,
    multiplied,
    opened,
    total,
    without_lists,
)
from structpe.attention.layout import Layout
from structpe.dropout import dropout as dropped
from structpe.dropout import noise as drawn
from structpe.precision import wide
from structpe.terms import Lookup, Terms

__all__ = ["UNITS", "HeadPlaces", "small"]

UNITS = 40
"""The largest number of units for which it is faster than ``sdpa``, without dropout."""

WITH_BIAS = 64
"""The same if terms are gathered from tables, for which ``sdpa`` needs more time."""

WITH_DROPOUT = 384
"""The largest number of units for which it is faster than ``tiled`` with dropout of weights. ``sdpa`` is slower than
either, and keeps all weights, as this kernel does."""

CELLS = 1 << 22
"""The largest number of scores of one bucket of several that have biases from tables, whose weights are kept. There it
takes half the time of ``tiled`` at 64 units, and two thirds at 512."""


def _limits(call: Call) -> str | None:
    _, _, n, m, _ = call.shape
    if call.traced:
        return "is not traced by torch.compile"
    if call.device != "cpu":
        return f"is for the CPU, and this is {call.device}"
    if call.gathers and _at_once(call) and call.cells <= CELLS:
        return None
    most = WITH_DROPOUT if call.dropout else WITH_BIAS if call.gathers else UNITS
    if max(n, m) > most or (n == 1 and not call.ragged and not call.dropout):
        return f"is for 2 to {most} units, and these are {n} queries and {m} keys"
    alone = "causal" in call.used and not call.used & {"bias", "mask", "key", "query"} and not call.dropout
    return "leaves causal attention without any bias or mask to sdpa, which computes half of it" if alone else None


def _at_once(call: Call) -> bool:
    plain = call.used <= {"bias", "scale"} and call.dtype in (torch.float32, torch.float64)
    return plain and call.ragged and call.device == "cpu" and not call.traced


def _cost(call: Call) -> float:
    return call.time(0 if _at_once(call) else 160_000, 4.0, 0.2, gathered=(150_000, 2.5))


def _ragged(qkv: Tensor, layout: Layout, terms: list[Terms], dropout: float) -> Tensor:
    """(N, 3, h, d) to (N, h, d), all buckets at once.

    Raises:
        RuntimeError: the gradient of a gradient is asked for.
    """
    _, _, heads, width = qkv.shape
    if ("places", heads) not in layout.cache:
        whole = layout.where is None
        layout.cache["places", heads] = (
            _unpadded(heads, layout.shapes) if whole else HeadPlaces.of(heads, layout.shapes, layout.where)
        )
    places: HeadPlaces = layout.cache["places", heads]
    added = [_added(each, low, *shape) for each, low, shape in zip(terms, _padding(layout), places.shapes, strict=True)]
    how = _How(places, [each.scale / math.sqrt(width) for each in terms], dropout, [forbids for _, forbids in added])
    mixed: Tensor = _Together.apply(qkv.flatten(1), how, *(plus for plus, _ in added))  # type: ignore[no-untyped-call]
    return mixed.view(len(qkv), heads, width)


def _added(terms: Terms, low: Tensor | None, b: int, n: int) -> tuple[Tensor | None, bool]:
    """Bias and padding of a bucket, (b or 1, h or 1, n or 1, n), and whether a number may be -inf.

    Cached for all layers if they share the only bias.
    """
    if not terms.bias:
        return low, False

    def made() -> tuple[Tensor | None, bool]:
        parts = [gather_scalars(bias) for bias in without_lists(terms, b, n, n).bias]
        plus = total(parts if low is None else [*parts, low])
        return plus, plus is not None and may_forbid(plus)

    first, *others = terms.bias
    return made() if others or not isinstance(first, Lookup) else first.cached("small", made)


def _padding(layout: Layout) -> list[Tensor | None]:
    """Per bucket (b, 1, 1, n): a large negative number at padding, added to scores; None without padding."""
    if "padding" not in layout.cache:
        low = torch.finfo(torch.float32).min / 2  # low enough for float64 too
        layout.cache["padding"] = [None if p is None else (~p[:, None, None, :]).float() * low for p in layout.present]
    found: list[Tensor | None] = layout.cache["padding"]
    return found


@kernel(
    "small",
    supports="maps factors bias mask key query scale causal projection",
    cost=_cost,
    limits=_limits,
    ragged=_ragged,
    at_once=_at_once,
)
def small(q: Tensor, k: Tensor, v: Tensor, terms: Terms, dropout: float = 0.0) -> Tensor:
    """softmax(scale q k^T + bias) v by two batched products; 0 for a query that attends to nothing."""
    # For few units a bias of low rank is cheaper than longer heads, which copy queries and keys.
    made = tuple(multiplied(factor) for factor in terms.factors)
    given = folded(q, k, v, replace(terms, factors=(), bias=(*terms.bias, *made)))
    (b, h, n, _), d = given.q.shape, given.v.shape[-1]
    forbidding = masks(terms, q, k) if given.alone else given.masks
    added, nowhere = opened(given.added, disallow(None, forbidding), wide(given.q))
    rows = added.expand(b, h, *added.shape[-2:]).flatten(0, 1) if added.ndim else added
    q, k, v = (wide(x.flatten(0, 1)) for x in (given.q, given.k, given.v))
    weights = torch.baddbmm(rows, q, k.transpose(1, 2), alpha=given.scale, beta=float(added.ndim > 0)).softmax(-1)
    out = torch.bmm(dropped(weights, dropout), v).view(b, h, n, d)
    return (out if nowhere is None else out.masked_fill(nowhere, 0.0)).to(given.v.dtype)


@dataclass(frozen=True, eq=False)
class HeadPlaces:
    """The places of the parts of N projected units; a part is the vector of one head.

    A bucket of b structures, padded to n units each, reads its queries, keys and values as (3, b, h, n) parts, one
    bucket after the other, and writes its output as (b, h, n). All buckets together have P places for units.

    Attributes:
        heads: h.
        shapes: (b, n) of each bucket.
        taken: (3 h P,) index of the part at each place, of 3 h N; 0 for padding.
        given_back: (3 h N,) the place of each part, to reorder gradients.
        mixed: (h N,) place of the output of each unit and head, of h P.
    """

    heads: int
    shapes: tuple[tuple[int, int], ...]
    taken: Int[Tensor, " taken"]
    given_back: Int[Tensor, " parts"]
    mixed: Int[Tensor, " mixed"]

    @classmethod
    def of(cls, heads: int, shapes: Sequence[tuple[int, int]], where: Int[Tensor, " N"] | None) -> HeadPlaces:
        """From the place of each unit in buckets of these shapes; None if unit i is at place i."""
        by_kind = (_by_kind(kinds, heads, shapes) for kinds in (3, 1))
        given_back, mixed = ((each if where is None else each.index_select(0, where)).flatten() for each in by_kind)
        taken = torch.zeros(sum(3 * heads * b * n for b, n in shapes), dtype=torch.long)
        taken[given_back] = torch.arange(len(given_back))
        return cls(heads, tuple(shapes), taken, given_back, mixed)


@lru_cache(maxsize=16)
def _unpadded(heads: int, shapes: tuple[tuple[int, int], ...]) -> HeadPlaces:
    """The places in buckets without padding, which layouts made anew for each step share."""
    return HeadPlaces.of(heads, shapes, None)


def _by_kind(kinds: int, heads: int, shapes: Sequence[tuple[int, int]]) -> Int[Tensor, "P parts"]:
    """Per bucket, the places of its (b, n, kinds, h) parts in the order (kinds, b, h, n)."""
    each, start = [], 0
    for b, n in shapes:
        numbers = torch.arange(start, start := start + kinds * b * heads * n).view(kinds, b, heads, n)
        each.append(numbers.permute(1, 3, 0, 2).reshape(b * n, kinds * heads))
    return torch.cat(each)


@dataclass(frozen=True)
class _How:
    """The settings of a call.

    Attributes:
        places: of the parts of units.
        scales: of the products of each bucket.
        dropout: probability of dropping a weight.
        forbids: of each bucket, whether an added number may be -inf.
    """

    places: HeadPlaces
    scales: Sequence[float]
    dropout: float
    forbids: Sequence[bool]


class _Together(torch.autograd.Function):
    """W = softmax(scale Q K^T + added), O = W V, for each bucket and head. ``noise`` drops weights."""

    @staticmethod
    def forward(ctx: Any, projected: Tensor, how: _How, *added: Tensor | None) -> Tensor:
        places, dropout = how.places, how.dropout
        parts = projected.reshape(3 * places.heads * len(projected), -1).index_select(0, places.taken)
        mixed = parts.new_empty(len(parts) // 3, parts.shape[1])
        kept: list[Tensor | None] = []
        buckets = zip(_each(parts, places, 3), _each(mixed, places, 1), how.scales, added, how.forbids, strict=True)
        for (q, k, v), (out,), scale, plus, forbids in buckets:
            scores = q.new_empty(len(q), q.shape[1], q.shape[1])
            torch.baddbmm(scores, q, k.transpose(1, 2), beta=0, alpha=scale, out=scores)
            weights = _weights(scores, places.heads, plus, forbids)
            noise = drawn(weights, dropout) if dropout else None
            torch.bmm(weights if noise is None else weights * noise, v, out=out)
            kept += [weights, noise]
        ctx.how = how
        ctx.shapes = [None if plus is None else plus.shape for plus in added]
        ctx.save_for_backward(parts, *kept)
        return mixed.index_select(0, places.mixed).view(len(projected), -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        places: HeadPlaces = ctx.how.places
        parts, *kept = ctx.saved_tensors
        of_mixed = parts.new_zeros(len(parts) // 3, parts.shape[1])
        of_mixed.index_copy_(0, places.mixed, grad.reshape(-1, parts.shape[1]))
        of_parts = torch.empty_like(parts)
        of_added: list[Tensor | None] = []
        buckets = zip(
            *(_each(parts, places, 3), _each(of_parts, places, 3), _each(of_mixed, places, 1)),
            *(kept[::2], kept[1::2], ctx.how.scales, ctx.shapes, ctx.needs_input_grad[2:]),
            strict=True,
        )
        for (q, k, v), (of_q, of_k, of_v), (of_out,), weights, noise, scale, shape, wanted in buckets:
            torch.bmm((weights if noise is None else weights * noise).transpose(1, 2), of_out, out=of_v)
            of_scores = torch.bmm(of_out, v.transpose(1, 2), out=torch.empty_like(weights))
            if noise is not None:
                of_scores.mul_(noise)
            torch.ops.aten._softmax_backward_data.out(of_scores, weights, -1, weights.dtype, grad_input=of_scores)
            torch.baddbmm(of_q, of_scores, k, beta=0, alpha=scale, out=of_q)
            torch.baddbmm(of_k, of_scores.transpose(1, 2), q, beta=0, alpha=scale, out=of_k)
            of_added.append(_by_head(of_scores, places.heads).sum_to_size(shape) if wanted else None)
        of_projected = of_parts.index_select(0, places.given_back).view(len(grad), -1)
        return of_projected, None, *of_added


def _weights(scores: Tensor, heads: int, plus: Tensor | None, forbids: bool) -> Tensor:
    """softmax(scores + plus), in place; zeros for a query whose keys are all masked or padding.

    Args:
        scores: (b h, n, n).
        heads: h.
        plus: bias and padding, (b or 1, h or 1, n or 1, n).
        forbids: whether a number of it may be -inf.
    """
    if plus is not None:
        _by_head(scores, heads).add_(plus)
    torch.softmax(scores, -1, out=scores)
    if plus is not None and forbids:
        nowhere = plus.amax(-1, keepdim=True) < torch.finfo(torch.float32).min / 4  # below any score
        _by_head(scores, heads).masked_fill_(nowhere, 0.0)
    return scores


def _each(parts: Tensor, places: HeadPlaces, kinds: int) -> list[tuple[Tensor, ...]]:
    """Per bucket, its (b h, n, d) parts of each kind."""
    d, first, found = parts.shape[1], 0, []
    for b, n in places.shapes:  # a view each: splitting and unbinding would take three steps
        rows = b * places.heads
        starts = range(first, first := first + kinds * rows * n * d, rows * n * d)
        found.append(tuple(parts.as_strided((rows, n, d), (n * d, d, 1), start) for start in starts))
    return found


def _by_head(scores: Tensor, heads: int) -> Tensor:
    """(b h, n, n) as (b, h, n, n)."""
    return scores.view(-1, heads, *scores.shape[1:])
