"""Fold terms into queries, keys and one additive mask, for kernels that support only these."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from structpe.attention._gather import added, masks, total, without_lists
from structpe.attention._mixtures import mixed
from structpe.precision import wide
from structpe.terms import Factor, Terms

__all__ = ["GATHERED", "Folded", "folded", "multiplied", "with_shared_factors"]

GATHERED = 1 << 23
"""The largest number of scalars that are computed at once for all structures or layers that share them."""


class Folded(NamedTuple):
    """softmax(scale q k^T + added) v over the pairs that the masks allow.

    Attributes:
        q, k, v: (b, h, n, c), (b, h, m, c) and (b, h, m, d); c may exceed d, by factors.
        added: (b or 1, h or 1, n or 1, m or 1), of the dtype of q and float32 at least; None if nothing is added.
        masks: bool, broadcast likewise; they include the causal mask.
        scale: of the products.
        alone: whether attention is causal, with as many queries as keys, and without other masks or biases.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    added: Tensor | None
    masks: tuple[Tensor, ...]
    scale: float
    alone: bool


def folded(q: Tensor, k: Tensor, v: Tensor, terms: Terms) -> Folded:
    """Fold maps, factors, biases, vectors at keys and queries, and projections."""
    for change in terms.maps:
        q, k = change(q, k)
    k, v, terms = mixed(k, v, terms)
    terms = without_lists(terms, q.shape[0], q.shape[2], k.shape[2])
    scale = terms.scale / math.sqrt(q.shape[-1])
    parts = added(q, k, terms, scale)
    alone = terms.causal and not (parts or terms.mask) and q.shape[2] == k.shape[2]
    forbidding = () if alone else masks(terms, q, k)
    q, k, scale = _longer(q, k, scale, terms)
    whole, exact = total(parts), torch.promote_types(q.dtype, torch.float32)
    return Folded(q, k, v, None if whole is None else whole.to(exact), forbidding, scale, alone)


def with_shared_factors(terms: Terms, b: int, n: int, m: int) -> Terms:
    """Terms in which the factors that all structures share are one bias (1, h or 1, n, m), unless it is large.

    It is computed once, while a longer head would be multiplied for each structure.
    """
    alike = [f for f in terms.factors if len(f.left) == len(f.right) == 1] if b > 1 and not terms.pairs else []
    # Not max(..., default=0), which torch.compile cannot trace.
    heads = max([0, *(max(f.left.shape[1], f.right.shape[1]) for f in alike)])
    if not alike or heads * n * m > GATHERED or torch.compiler.is_compiling():
        return terms
    others = tuple(f for f in terms.factors if f not in alike)
    return replace(terms, factors=others, bias=(*terms.bias, *map(multiplied, alike)))


def multiplied(factor: Factor) -> Tensor:
    """(b or 1, h or 1, n or 1, m or 1) left_i.right_j, in float32 at least."""
    return wide(factor.left) @ wide(factor.right).transpose(-1, -2)


def _longer(q: Tensor, k: Tensor, scale: float, terms: Terms) -> tuple[Tensor, Tensor, float]:
    """[scale q; left].[k; right]: a longer head replaces a bias. Also returns the remaining scale."""
    if not terms.factors and scale > 0:
        return q, k, scale
    # Scale here: fused kernels do not support a scale of 0 or less.
    q = scale * q
    for factor in terms.factors:
        left, right = _in_parts(factor, q.dtype)
        q = torch.cat([q, left.expand(*q.shape[:3], -1)], dim=-1)
        k = torch.cat([k, right.expand(*k.shape[:3], -1)], dim=-1)
    return q, k, 1.0


def _in_parts(factor: Factor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Both sides of a factor in a dtype. In half precision, a number is the sum of what it is rounded to and a rest.

    [l, l', l].[r, r, r'] has twice the digits of l.r, so that a product may be large where scores matter.
    """
    left, right = factor.left.to(dtype), factor.right.to(dtype)
    if dtype.itemsize > 2 or factor.left.dtype == factor.right.dtype == dtype:
        return left, right
    rests = (factor.left - left).to(dtype), (factor.right - right).to(dtype)
    return torch.cat([left, rests[0], left], dim=-1), torch.cat([right, right, rests[1]], dim=-1)
