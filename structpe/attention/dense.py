"""The reference: the equation written out, with dense tensors for all quantities of pairs. Slow on purpose."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from structpe.attention.base import kernel
from structpe.terms import Lookup, Projection, SparsePairs, Terms

__all__ = ["dense"]


@kernel(
    "dense",
    supports="maps factors bias gate mask key query product value act scale pairs causal feature_map projection",
    cost=lambda call: call.time(600_000, 100.0, 10.0, gathered=(0.0, 0.0)),
)
def dense(q: Tensor, k: Tensor, v: Tensor, terms: Terms, dropout: float = 0.0) -> Tensor:
    """Supports every field. The output is 0 for a query that attends to nothing."""
    for change in terms.maps:
        q, k = change(q, k)
    if terms.projection is not None:
        k, v = _mixed(terms.projection, k, v, terms.mask)
    n, m = q.shape[2], k.shape[2]
    allowed = _allowed(terms, q, n, m)
    if terms.feature_map is None:
        score = _scores(q, k, terms)
        weights = _softmax(score, allowed & (score != -math.inf))
    else:
        weights = torch.einsum("bhnf,bhmf->bhnm", terms.feature_map(q), terms.feature_map(k)) * allowed
        total = weights.sum(-1, keepdim=True)
        weights = torch.where(total != 0, weights / torch.where(total != 0, total, 1), 0)
    weights = functional.dropout(weights.to(v.dtype), dropout, training=dropout > 0)
    out = torch.einsum("bhnm,bhmd->bhnd", weights, v)
    for x in terms.value:
        out = out + torch.einsum("bhnm,bhnmd->bhnd", weights, _vectors(x, q, m))
    return out


def _scores(q: Tensor, k: Tensor, terms: Terms) -> Tensor:
    m = k.shape[2]
    score = torch.einsum("bhnd,bhmd->bhnm", q, k)
    for x in terms.key:
        score = score + torch.einsum("bhnd,bhnmd->bhnm", q, _vectors(x, q, m))
    for x in terms.query:
        score = score + torch.einsum("bhnmd,bhmd->bhnm", _vectors(x, q, m), k)
    for x in terms.product:
        # As a contraction it would be a product of matrices for each pair, which takes three times as long.
        score = score + (q[:, :, :, None] * k[:, :, None] * _vectors(x, q, m)).sum(-1)
    score = score * (terms.scale / math.sqrt(q.shape[-1]))
    if terms.act is not None:
        score = terms.act(score)
    for gate in terms.gate:
        score = score * _scalars(gate, q, m)
    for factor in terms.factors:
        score = score + torch.einsum("bhnr,bhmr->bhnm", factor.left, factor.right)
    for bias in terms.bias:
        score = score + _scalars(bias, q, m)
    return score


def _softmax(score: Tensor, allowed: Tensor) -> Tensor:
    # A row of -inf is left out of the softmax: its gradient would be NaN.
    somewhere = allowed.any(-1, keepdim=True)
    score = torch.where(allowed, score, torch.where(somewhere, -math.inf, 0.0).to(score.dtype))
    return torch.where(somewhere, torch.softmax(score, dim=-1), torch.zeros((), dtype=score.dtype, device=score.device))


def _allowed(terms: Terms, q: Tensor, n: int, m: int) -> Tensor:
    """(b or 1, h or 1, n, m) which pairs attend."""
    allowed = torch.ones(1, 1, n, m, dtype=torch.bool, device=q.device)
    # With a projection the mask has been applied to the mixtures.
    for mask in terms.mask if terms.projection is None else ():
        allowed = allowed & mask
    for pairs in terms.pairs:
        allowed = allowed & pairs.dense(q.shape[0], n, m)
    return allowed.tril(m - n) if terms.causal else allowed


def _mixed(projection: Projection, k: Tensor, v: Tensor, masks: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    for mask in masks:
        there = mask.transpose(-1, -2)  # (b or 1, h or 1, m, 1), as attend() has checked
        k, v = k * there, v * there
    return projection.keys.to(k.dtype) @ k, projection.values.to(v.dtype) @ v


def _vectors(x: Lookup | SparsePairs, q: Tensor, m: int) -> Tensor:
    dense = _pairs(x, q, m).to(q.dtype).movedim(3, 1)  # (b, n, m, h, d) -> (b, h, n, m, d)
    return dense.expand(q.shape[0], q.shape[1], *dense.shape[2:])


def _scalars(x: Lookup | SparsePairs | Tensor, q: Tensor, m: int) -> Tensor:
    return x if isinstance(x, Tensor) else _pairs(x, q, m).movedim(3, 1)


def _pairs(x: Lookup | SparsePairs, q: Tensor, m: int) -> Tensor:
    return x.dense() if isinstance(x, Lookup) else x.dense(q.shape[0], q.shape[2], m)
