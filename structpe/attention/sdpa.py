"""PyTorch's fused attention; whatever is no vector at the values folds into its query, key or additive mask.

Among few units on a CPU the products are written out instead, which is faster there: see ``_few``.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from structpe.attention._few import few, written_out
from structpe.attention._gather import (
    disallow,
    gather_scalars,
    masks,
    meet_keys,
    meet_queries,
    total,
    without_lists,
)
from structpe.attention._mixtures import mixed
from structpe.attention.base import kernel
from structpe.terms import Terms

__all__ = ["sdpa"]


@kernel("sdpa", supports="maps factors bias mask key query scale causal projection", cost=1)
def sdpa(q: Tensor, k: Tensor, v: Tensor, terms: Terms, dropout: float = 0.0) -> Tensor:
    """``scaled_dot_product_attention`` with one additive mask; without bias or vectors fused kernels stay in use.

    With a projection time and memory are linear in the number of keys.
    """
    for change in terms.maps:
        q, k = change(q, k)
    k, v, terms = mixed(k, v, terms)
    terms = without_lists(terms, q.shape[0], q.shape[2], k.shape[2])
    scale = terms.scale / math.sqrt(q.shape[-1])
    parts = [gather_scalars(bias) for bias in terms.bias]
    parts += [scale * meet_keys(q, x) for x in terms.key] + [scale * meet_queries(x, k) for x in terms.query]
    q, k, scale = _fold(q, k, scale, terms)
    alone = terms.causal and not (parts or terms.mask) and q.shape[2] == k.shape[2]
    added = total(parts)
    added = None if added is None else added.to(q.dtype)
    forbidding = () if alone else masks(terms, q, k)
    if few(q, k) and not alone:
        return written_out(q, k, v, added, disallow(None, forbidding), scale, dropout)
    mask = disallow(added, forbidding)
    if mask is not None:
        mask = mask.expand(q.shape[0], *mask.shape[1:])
    c, d = q.shape[-1], v.shape[-1]
    if c != d:
        # Of several widths PyTorch writes out all n m weights; its kernels for GPUs ask for a multiple of 8 as well.
        wide = -(-max(c, d) // 8) * 8
        q, k = (functional.pad(x, (0, wide - c)) for x in (q, k))  # a map that gives them two widths is not padded away
        v = functional.pad(v, (0, wide - d))
    out = functional.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, dropout_p=dropout, is_causal=alone, scale=scale
    )
    return out[..., :d]


def _fold(q: Tensor, k: Tensor, scale: float, terms: Terms) -> tuple[Tensor, Tensor, float]:
    """[scale q; left].[k; right]: a longer head in place of a bias, and what is left to scale by."""
    if not terms.factors and scale > 0:
        return q, k, scale
    # Here, as no fused kernel promises to scale by 0 or less.
    q = scale * q
    for factor in terms.factors:
        q = torch.cat([q, factor.left.to(q.dtype).expand(*q.shape[:3], -1)], dim=-1)
        k = torch.cat([k, factor.right.to(k.dtype).expand(*k.shape[:3], -1)], dim=-1)
    return q, k, 1.0
