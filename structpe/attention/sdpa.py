"""PyTorch's fused attention. All terms except vectors at the values fold into its query, key or additive mask."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from structpe.attention.attend import Call, kernel, of_offsets, room
from structpe.attention.gather import disallow, folded
from structpe.attention.reference import rounded
from structpe.precision import wide
from structpe.terms import Lookup, Terms, Toeplitz

__all__ = ["sdpa"]

_BLOCK = 512
"""Queries of a block of causal attention with a bias."""


def _cost(call: Call) -> float:
    # With dropout PyTorch has no fused kernel on a CPU: it computes and keeps all weights, and draws slowly.
    cell = 25.0 if call.dropout and call.device == "cpu" and not call.traced else 5.0
    return call.time(100_000, cell, 0.2, gathered=(200_000, 10.0), gpu=(1e6, 0.01, 0.02))


@kernel("sdpa", supports="maps factors bias mask key query scale causal projection", cost=_cost, limits=room)
def sdpa(q: Tensor, k: Tensor, v: Tensor, terms: Terms, dropout: float = 0.0) -> Tensor:
    """``scaled_dot_product_attention`` with one additive mask, or without one if no term needs it.

    With a projection, time and memory are linear in the number of keys. Without gradients, biases that depend on the
    offset only are a view of one vector. In half precision the mask is of float32 on a CPU. On a GPU, where PyTorch
    requires the dtype of the queries, the largest number of each query is subtracted before the mask is rounded.
    """
    diagonals = _diagonals(terms, q, k)
    causal = terms.causal
    if diagonals is not None:
        terms = replace(terms, bias=(), causal=False)
    q, k, v, added, masks, scale, alone = folded(q, k, v, terms)
    c, d = q.shape[-1], v.shape[-1]
    if c != d or (c % 8 and q.device.type != "cpu"):
        # With different widths PyTorch computes all n m weights, and on a GPU also if they are not a multiple of 8.
        # q and k are padded by the same number: different widths of them, from a map, stay an error.
        width = -(-max(c, d) // 8) * 8
        q, k, v = (functional.pad(x, (0, width - own)) for x, own in ((q, c), (k, c), (v, d)))
    fused = partial(functional.scaled_dot_product_attention, dropout_p=dropout, scale=scale)
    if diagonals is not None:
        return _of_offsets(fused, q, k, v, diagonals.contiguous(), causal)[..., :d]
    mask = disallow(added, masks)
    if mask is not None:
        mask = _taken(mask, q).expand(q.shape[0], *mask.shape[1:])
    return fused(q, k, v, attn_mask=mask, is_causal=alone)[..., :d]


def _of_offsets(
    fused: Callable[..., Tensor], q: Tensor, k: Tensor, v: Tensor, diagonals: Tensor, causal: bool
) -> Tensor:
    """Attention with a bias of offsets: from the last query back, its rows are windows of one vector.

    Causal attention goes block by block, over the keys that a block can see.
    """
    n, m = q.shape[2], k.shape[2]
    copied = q.device.type != "cpu" and q.dtype.itemsize == 2
    step, parts = (_BLOCK if causal or copied else n), []
    for start in range(0, n, step):
        stop = min(start + step, n)
        keys = min(m, stop + m - n) if causal else m
        if keys <= 0:  # these queries see nothing
            parts.append(torch.zeros_like(q[:, :, start:stop]))
            continue
        bias = _taken(diagonals[:, :, n - stop : n - start + keys - 1].unfold(2, keys, 1), q)
        parts.append(fused(q[:, :, start:stop].flip(2), k[:, :, :keys], v[:, :, :keys], attn_mask=bias).flip(2))
    return torch.cat(parts, dim=2)


def _taken(mask: Tensor, q: Tensor) -> Tensor:
    """A mask in a dtype that the fused kernel accepts with these queries."""
    if mask.dtype == torch.bool:
        return mask
    if q.device.type == "cpu":
        return mask.to(torch.promote_types(q.dtype, torch.float32))
    return rounded(mask, q.dtype)


def _diagonals(terms: Terms, q: Tensor, k: Tensor) -> Tensor | None:
    """(1, h or 1, n + m - 1) the sum of biases that depend on the offset only, -inf where causal attention forbids.

    None if there are other terms that need a mask, or if :func:`of_offsets` is false.
    """
    if not of_offsets(terms) or terms.used() & {"mask", "key", "query", "projection"}:
        return None
    each = (
        x.local()[0, x.index.diagonals[0].long()].T[None]
        for x in terms.bias
        if isinstance(x, Lookup) and isinstance(x.index, Toeplitz)
    )
    vector = sum(each, wide(q.new_zeros(())))
    if terms.causal:
        vector = torch.where(torch.arange(vector.shape[2], device=q.device) < k.shape[2], vector, -math.inf)
    return vector.to(torch.promote_types(q.dtype, torch.float32))
