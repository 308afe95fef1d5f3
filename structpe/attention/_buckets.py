"""Attention within many small graphs at once: what nodes project goes to its places, and back, once for all buckets.

Among few units the products take less time than moving what is multiplied: padding graphs to one size, splitting
projections into heads, and all of that again for the gradients. Here one selection of rows brings queries, keys and
values of all heads to where the batched products of each bucket read them, and one brings back what is mixed. The
products write their gradients into one tensor, which one more selection takes apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from structpe.attention._gather import gather_scalars, may_forbid, total, without_lists
from structpe.terms import Terms

__all__ = ["HeadPlaces", "attend_buckets", "buckets_suit"]


@dataclass(frozen=True, eq=False)
class HeadPlaces:
    """Where the parts of N projected nodes lie, a part being what belongs to one head.

    A bucket of b graphs, padded to n nodes each, takes its queries, keys and values as (3, b, h, n) parts, one bucket
    after the other; what is mixed it gives as (b, h, n). All buckets have P places for nodes together.

    Attributes:
        heads: h.
        shapes: (b, n) of each bucket.
        taken: (3 h P,) number of the part at each place, of 3 h N; 0 where there is no node.
        given_back: (3 h N,) the place of each part; so gradients come back.
        mixed: (h N,) place of what is mixed for each node and head, of h P.
    """

    heads: int
    shapes: tuple[tuple[int, int], ...]
    taken: Int[Tensor, " taken"]
    given_back: Int[Tensor, " parts"]
    mixed: Int[Tensor, " mixed"]

    @classmethod
    def of(cls, heads: int, shapes: Sequence[tuple[int, int]], where: Int[Tensor, "N"] | None) -> HeadPlaces:
        """Those of nodes that lie ``where`` in the P places of buckets of these shapes; None: node i at place i."""
        apart = (_apart(kinds, heads, shapes) for kinds in (3, 1))
        given_back, mixed = ((each if where is None else each.index_select(0, where)).flatten() for each in apart)
        taken = torch.zeros(sum(3 * heads * b * n for b, n in shapes), dtype=torch.long)
        taken[given_back] = torch.arange(len(given_back))
        return cls(heads, tuple(shapes), taken, given_back, mixed)


def _apart(kinds: int, heads: int, shapes: Sequence[tuple[int, int]]) -> Int[Tensor, "P parts"]:
    """Of each bucket, where its (b, n, kinds, h) parts lie when they are ordered as (kinds, b, h, n)."""
    each, start = [], 0
    for b, n in shapes:
        numbers = torch.arange(start, start := start + kinds * b * heads * n).view(kinds, b, heads, n)
        each.append(numbers.permute(1, 3, 0, 2).reshape(b * n, kinds * heads))
    return torch.cat(each)


def buckets_suit(x: Tensor, said: Sequence[Terms]) -> bool:
    """Whether :func:`attend_buckets` computes this; with at most ``FEW_UNITS`` nodes per graph it is the fastest.

    Args:
        x: of the device and dtype in question.
        said: what the position model says of each bucket.
    """
    return (
        len(said) > 0
        and x.device.type == "cpu"
        and x.dtype in (torch.float32, torch.float64)
        and not torch.compiler.is_compiling()
        and all(terms.used() <= {"bias", "scale"} for terms in said)
    )


def attend_buckets(
    projected: Float[Tensor, "N e"],
    places: HeadPlaces,
    said: Sequence[Terms],
    padding: Sequence[Tensor | None],
    dropout: float = 0.0,
) -> Float[Tensor, "N d"]:
    """Attention of each node to the nodes of its graph: what ``attend`` says of each bucket, for all of them.

    Args:
        projected: queries, keys and values, one after the other; e = 3 d.
        places: where the nodes lie.
        said: of each bucket; bias and scale only.
        padding: of each bucket what is added to scores, (b, 1, 1, n), so low that no place without a node is seen;
            None where all have one.
        dropout: probability with which an attention weight is dropped.

    Raises:
        RuntimeError: somebody asks for the gradient of a gradient.
    """
    added = []
    for terms, low, (b, n) in zip(said, padding, places.shapes, strict=True):
        parts = [gather_scalars(bias) for bias in without_lists(terms, b, n, n).bias]
        added.append(total(parts if low is None else [*parts, low]))
    root = math.sqrt(projected.shape[1] // (3 * places.heads))
    scales = [terms.scale / root for terms in said]
    mixed: Tensor = _Together.apply(projected, places, scales, dropout, *added)  # type: ignore[no-untyped-call]
    return mixed


class _Together(torch.autograd.Function):
    """W = softmax(scale Q K^T + added), O = W V, of each bucket and head; dropped weights are those of ``noise``."""

    @staticmethod
    def forward(
        ctx: Any,
        projected: Tensor,
        places: HeadPlaces,
        scales: Sequence[float],
        dropout: float,
        *added: Tensor | None,
    ) -> Tensor:
        parts = projected.reshape(3 * places.heads * len(projected), -1).index_select(0, places.taken)
        mixed = parts.new_empty(len(parts) // 3, parts.shape[1])
        kept: list[Tensor | None] = []
        buckets = zip(_each(parts, places, 3), _each(mixed, places, 1), scales, added, strict=True)
        for (q, k, v), (out,), scale, plus in buckets:
            scores = q.new_empty(len(q), q.shape[1], q.shape[1])
            torch.baddbmm(scores, q, k.transpose(1, 2), beta=0, alpha=scale, out=scores)
            weights = _weights(scores, _by_head(scores, places), plus)
            noise = torch.empty_like(weights).bernoulli_(1 - dropout).div_(1 - dropout) if dropout else None
            torch.bmm(weights if noise is None else weights * noise, v, out=out)
            kept += [weights, noise]
        ctx.places, ctx.scales = places, scales
        ctx.shapes = [None if plus is None else plus.shape for plus in added]
        ctx.save_for_backward(parts, *kept)
        return mixed.index_select(0, places.mixed).view(len(projected), -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        places: HeadPlaces = ctx.places
        parts, *kept = ctx.saved_tensors
        of_mixed = parts.new_zeros(len(parts) // 3, parts.shape[1])
        of_mixed.index_copy_(0, places.mixed, grad.reshape(-1, parts.shape[1]))
        of_parts = torch.empty_like(parts)
        of_added: list[Tensor | None] = []
        buckets = zip(
            *(_each(parts, places, 3), _each(of_parts, places, 3), _each(of_mixed, places, 1)),
            *(kept[::2], kept[1::2], ctx.scales, ctx.shapes, ctx.needs_input_grad[4:]),
            strict=True,
        )
        for (q, k, v), (of_q, of_k, of_v), (of_out,), weights, noise, scale, shape, wanted in buckets:
            torch.bmm((weights if noise is None else weights * noise).transpose(1, 2), of_out, out=of_v)
            of_weights = torch.bmm(of_out, v.transpose(1, 2))
            if noise is not None:
                of_weights.mul_(noise)
            of_scores = torch._softmax_backward_data(of_weights, weights, -1, weights.dtype)
            torch.baddbmm(of_q, of_scores, k, beta=0, alpha=scale, out=of_q)
            torch.baddbmm(of_k, of_scores.transpose(1, 2), q, beta=0, alpha=scale, out=of_k)
            of_added.append(_by_head(of_scores, places).sum_to_size(shape) if wanted else None)
        of_projected = of_parts.index_select(0, places.given_back).view(len(grad), -1)
        return of_projected, None, None, None, *of_added


def _weights(scores: Tensor, by_head: Tensor, plus: Tensor | None) -> Tensor:
    """The softmax of scores with what is added to them; zeros for a query whose nodes are all at -inf, or padding.

    Args:
        scores: (b h, n, n).
        by_head: the same as (b, h, n, n).
        plus: what is added, (b or 1, h or 1, n or 1, n).
    """
    if plus is None:
        return scores.softmax(-1)
    by_head.add_(plus)
    if not may_forbid(plus):
        return scores.softmax(-1)
    nowhere = plus.amax(-1, keepdim=True) < torch.finfo(torch.float32).min / 4  # padding is lower, no score is
    weights = scores.softmax(-1)
    weights.view_as(by_head).masked_fill_(nowhere, 0.0)
    return weights


def _each(parts: Tensor, places: HeadPlaces, kinds: int) -> list[tuple[Tensor, ...]]:
    """Of each bucket, its (b h, n, d) parts of each kind."""
    sizes = [kinds * b * places.heads * n for b, n in places.shapes]
    of_buckets = zip(torch.split(parts, sizes), places.shapes, strict=True)
    return [part.view(kinds, b * places.heads, n, -1).unbind() for part, (b, n) in of_buckets]


def _by_head(scores: Tensor, places: HeadPlaces) -> Tensor:
    """(b h, n, n) as (b, h, n, n)."""
    return scores.view(-1, places.heads, *scores.shape[1:])
