"""Attention within many small graphs at once: what all nodes project goes to its places and back once, not per bucket.

Among few units a product of matrices takes less time than moving them where they are multiplied: splitting projections
into heads, padding graphs to one size, and all of that again for the gradients. Here one selection of rows brings
queries, keys and values of all heads to where the batched products of each bucket read them, one brings back what is
mixed, and the products write their gradients into one tensor, which a third selection takes apart.
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

from structpe.attention._few import UNITS
from structpe.attention._gather import gather_scalars, total, without_lists
from structpe.terms import Terms

__all__ = ["HeadPlaces", "attend_buckets", "buckets_suit"]


@dataclass(frozen=True, eq=False)
class HeadPlaces:
    """Where the parts of N projected nodes lie, bucket by bucket: (3, b, h, n) parts of each, a part being d / h wide.

    Buckets of b graphs and n places each have P places together, where nodes may leave some out.

    Attributes:
        heads: h.
        shapes: (b, n) of each bucket.
        projected: (3 h P,) number of the part, of N (3 h) in all, at each place; 0 where there is no node.
        projected_back: (3 h N,) the place of each part.
        mixed: (h N,) place of the part of each node and head, of h P in all.
    """

    heads: int
    shapes: tuple[tuple[int, int], ...]
    projected: Int[Tensor, "P3h"]
    projected_back: Int[Tensor, "N3h"]
    mixed: Int[Tensor, "Nh"]

    @classmethod
    def of(cls, heads: int, shapes: Sequence[tuple[int, int]], where: Int[Tensor, "N"] | None) -> HeadPlaces:
        """Those of nodes that lie ``where`` in the P places of buckets of these shapes; None: node i at place i."""
        count = sum(b * n for b, n in shapes)
        apart = (_apart(shapes, parts, heads) for parts in (3, 1))
        three, one = ((each if where is None else each.index_select(0, where)).flatten() for each in apart)
        taken = torch.zeros(3 * heads * count, dtype=torch.long)
        taken[three] = torch.arange(len(three))
        return cls(heads, tuple(shapes), taken, three, one)


def _apart(shapes: Sequence[tuple[int, int]], parts: int, heads: int) -> Int[Tensor, "P ph"]:
    """The number that each part and head of each place, in (b, n) order, has in (p, b, h, n) order."""
    counts = [parts * heads * b * n for b, n in shapes]
    each = torch.arange(sum(counts)).split(counts)
    return torch.cat(
        [
            part.view(parts, b, heads, n).permute(1, 3, 0, 2).reshape(b * n, parts * heads)
            for part, (b, n) in zip(each, shapes, strict=True)
        ]
    )


def buckets_suit(x: Tensor, shapes: Sequence[tuple[int, int]], said: Sequence[Terms]) -> bool:
    """Whether :func:`attend_buckets` computes this, and is the fastest to do so."""
    return (
        x.device.type == "cpu"
        and x.dtype in (torch.float32, torch.float64)
        and not torch.compiler.is_compiling()
        and max(n for _, n in shapes) <= UNITS
        and all(terms.used() <= {"bias", "scale"} for terms in said)
    )


def attend_buckets(
    projected: Float[Tensor, "N e"],
    places: HeadPlaces,
    said: Sequence[Terms],
    padding: Sequence[Tensor | None],
    dropout: float = 0.0,
) -> Float[Tensor, "N d"]:
    """Attention of each node to the nodes of its graph; equal to :func:`structpe.attention.attend` bucket by bucket.

    Args:
        projected: queries, keys and values, one after the other.
        places: where the nodes lie.
        said: of each bucket; bias and scale only.
        padding: of each bucket what is added to scores, (b, 1, 1, n), so low that no key of padding is seen; None where
            there is none.
        dropout: probability with which an attention weight is dropped.
    """
    added: list[Tensor | None] = []
    for terms, mask, (b, n) in zip(said, padding, places.shapes, strict=True):
        parts = [gather_scalars(bias) for bias in without_lists(terms, b, n, n).bias]
        added.append(total([*parts] if mask is None else [*parts, mask]))
    width = projected.shape[1] // (3 * places.heads)
    scales = tuple(terms.scale / math.sqrt(width) for terms in said)
    mixed: Tensor = _Together.apply(projected, places, scales, dropout, *added)  # type: ignore[no-untyped-call]
    return mixed


class _Together(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        projected: Tensor,
        places: HeadPlaces,
        scales: tuple[float, ...],
        dropout: float,
        *added: Tensor | None,
    ) -> Tensor:
        parts = projected.reshape(len(projected) * 3 * places.heads, -1).index_select(0, places.projected)
        mixed = parts.new_empty(len(parts) // 3, parts.shape[1])
        kept: list[Tensor | None] = []
        for (q, k, v), out, bias, scale in zip(
            _split(parts, places, 3), _split(mixed, places, 1), added, scales, strict=True
        ):
            scores = q.new_empty(*q.shape[:2], q.shape[1])
            torch.baddbmm(scores, q, k.transpose(1, 2), beta=0, alpha=scale, out=scores)
            if bias is not None:
                scores.view(-1, places.heads, *scores.shape[1:]).add_(bias)
            weights = scores.softmax(-1)
            noise = torch.empty_like(weights).bernoulli_(1 - dropout).div_(1 - dropout) if dropout else None
            torch.bmm(weights if noise is None else weights * noise, v, out=out[0])
            kept += [weights, noise]
        ctx.places, ctx.scales = places, scales
        ctx.shapes = [None if bias is None else bias.shape for bias in added]
        ctx.save_for_backward(parts, *kept)
        return mixed.index_select(0, places.mixed).view(len(projected), -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        places = ctx.places
        parts, *kept = ctx.saved_tensors
        of_mixed = parts.new_zeros(len(parts) // 3, parts.shape[1])
        of_mixed.index_copy_(0, places.mixed, grad.reshape(-1, parts.shape[1]))
        of_parts = torch.empty_like(parts)
        of_added: list[Tensor | None] = []
        buckets = zip(_split(parts, places, 3), _split(of_parts, places, 3), _split(of_mixed, places, 1), strict=True)
        for number, ((q, k, v), (of_q, of_k, of_v), (of_out,)) in enumerate(buckets):
            weights, noise = kept[2 * number : 2 * number + 2]
            used = weights if noise is None else weights * noise
            torch.bmm(used.transpose(1, 2), of_out, out=of_v)
            of_weights = torch.bmm(of_out, v.transpose(1, 2))
            of_weights = of_weights if noise is None else of_weights.mul_(noise)
            of_scores = torch._softmax_backward_data(of_weights, weights, -1, weights.dtype)
            scale = ctx.scales[number]
            torch.baddbmm(of_q, of_scores, k, beta=0, alpha=scale, out=of_q)
            torch.baddbmm(of_k, of_scores.transpose(1, 2), q, beta=0, alpha=scale, out=of_k)
            shape = ctx.shapes[number]
            wanted = shape is not None and ctx.needs_input_grad[4 + number]
            of_added.append(
                of_scores.view(-1, places.heads, *of_scores.shape[1:]).sum_to_size(shape) if wanted else None
            )
        of_projected = of_parts.index_select(0, places.projected_back).view(len(grad), -1)
        return of_projected, None, None, None, *of_added


def _split(parts: Tensor, places: HeadPlaces, count: int) -> list[tuple[Tensor, ...]]:
    """(count h P, d) to (b h, n, d), ``count`` of them of each bucket."""
    each = parts.split([count * places.heads * b * n for b, n in places.shapes])
    return [
        part.view(count, b * places.heads, n, -1).unbind() for part, (b, n) in zip(each, places.shapes, strict=True)
    ]
