"""The meaning: the equation written out, every pair quantity as a dense tensor. Slow on purpose; the reference."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from structpe.attention.base import kernel
from structpe.terms import Lookup, Terms

__all__ = ["dense"]


@kernel("dense", supports="maps factors bias gate mask key query product value act scale", cost=100)
def dense(q: Tensor, k: Tensor, v: Tensor, terms: Terms, dropout: float = 0.0) -> Tensor:
    """Every field, as it reads. A query that may attend nowhere gets zeros."""
    for change in terms.maps:
        q, k = change(q, k)
    score = torch.einsum("bhnd,bhmd->bhnm", q, k)
    for x in terms.key:
        score = score + torch.einsum("bhnd,bhnmd->bhnm", q, _vectors(x, q))
    for x in terms.query:
        score = score + torch.einsum("bhnmd,bhmd->bhnm", _vectors(x, q), k)
    for x in terms.product:
        score = score + torch.einsum("bhnd,bhmd,bhnmd->bhnm", q, k, _vectors(x, q))
    score = score * (terms.scale / math.sqrt(q.shape[-1]))
    if terms.act is not None:
        score = terms.act(score)
    for gate in terms.gate:
        score = score * _scalars(gate)
    for factor in terms.factors:
        score = score + torch.einsum("bhnr,bhmr->bhnm", factor.left, factor.right)
    for bias in terms.bias:
        score = score + _scalars(bias)
    allowed = torch.ones((), dtype=torch.bool, device=q.device)
    for mask in terms.mask:
        allowed = allowed & mask
    # Only rows with something to attend to go through the softmax: a row of -inf alone has no gradient but NaN.
    somewhere = allowed.any(-1, keepdim=True) if allowed.ndim else allowed
    score = torch.where(allowed, score, torch.where(somewhere, -math.inf, 0.0).to(score.dtype))
    weights = torch.where(somewhere, torch.softmax(score, dim=-1), torch.zeros((), dtype=score.dtype, device=q.device))
    weights = functional.dropout(weights, dropout, training=dropout > 0)
    out = torch.einsum("bhnm,bhmd->bhnd", weights, v)
    for x in terms.value:
        out = out + torch.einsum("bhnm,bhnmd->bhnd", weights, _vectors(x, q))
    return out


def _vectors(x: Lookup, q: Tensor) -> Tensor:
    dense = x.dense().movedim(3, 1)  # (b, n, m, h, d) -> (b, h, n, m, d)
    return dense.expand(q.shape[0], q.shape[1], *dense.shape[2:])


def _scalars(x: Lookup | Tensor) -> Tensor:
    return x.dense().movedim(3, 1) if isinstance(x, Lookup) else x
