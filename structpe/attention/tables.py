"""Attention with pair vectors at the values: explicit softmax, and one product per row of a table."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from structpe.attention._gather import (
    collect_values,
    disallow,
    gather_scalars,
    masks,
    meet_keys,
    meet_queries,
    opened,
    total,
    without_lists,
)
from structpe.attention.base import kernel
from structpe.terms import Terms

__all__ = ["tables"]


@kernel(
    "tables",
    supports="maps factors bias gate mask key query value act scale causal",
    cost=lambda call: 15.0 * call.cells,
)
def tables(q: Tensor, k: Tensor, v: Tensor, terms: Terms, dropout: float = 0.0) -> Tensor:
    """O(h n (r + m)) memory for tables of r rows in use; ``dense`` takes O(n m d), which is less beyond r = m d / h."""
    for change in terms.maps:
        q, k = change(q, k)
    terms = without_lists(terms, q.shape[0], q.shape[2], k.shape[2])
    weights = _weights(_scores(q, k, terms), terms, masks(terms, q, k))
    weights = functional.dropout(weights.to(v.dtype), dropout, training=dropout > 0)
    out = weights @ v
    for x in terms.value:
        out = out + collect_values(weights, x)
    return out


def _weights(scores: Tensor, terms: Terms, forbidding: Sequence[Tensor]) -> Tensor:
    """(b, h, n, m) softmax of scores and biases over the pairs that attend; 0 for a query that attends to nothing."""
    bias, allowed = total([gather_scalars(bias) for bias in terms.bias]), disallow(None, forbidding)
    if bias is None and allowed is None:
        return torch.softmax(scores, dim=-1)
    added, nowhere = opened(bias, allowed, scores)
    weights = torch.softmax(scores + added, dim=-1)
    return weights if nowhere is None else weights.masked_fill(nowhere, 0.0)


def _scores(q: Tensor, k: Tensor, terms: Terms) -> Tensor:
    """(b, h, n, m) scores without biases."""
    scores = q @ k.transpose(-1, -2)
    for x in terms.key:
        scores = scores + meet_keys(q, x)
    for x in terms.query:
        scores = scores + meet_queries(x, k)
    scores = scores * (terms.scale / math.sqrt(q.shape[-1]))
    if terms.act is not None:
        scores = terms.act(scores)
    for gate in terms.gate:
        scores = scores * gather_scalars(gate)
    for factor in terms.factors:
        scores = scores + factor.left @ factor.right.transpose(-1, -2)
    return scores
