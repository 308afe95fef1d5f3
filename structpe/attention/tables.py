"""Attention with pair vectors at the values: explicit softmax, and one product per row of a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import torch
from torch import Tensor

from structpe.attention.attend import Call, kernel, room
from structpe.attention.gather import (
    added,
    collect_values,
    disallow,
    gather_scalars,
    masks,
    multiplied,
    opened,
    total,
    without_lists,
)
from structpe.dropout import dropout as dropped
from structpe.terms import Terms

__all__ = ["tables"]


def _cost(call: Call) -> float:
    vectors = 10.0 * call.large  # a copy for each pair
    return call.time(200_000, 6.0 + vectors, 0.3, gathered=(150_000, 5.0), gpu=(1.5e6, 0.04, 0.02))


@kernel(
    "tables",
    supports="maps factors bias gate mask key query value act scale causal",
    cost=_cost,
    limits=room,
)
def tables(q: Tensor, k: Tensor, v: Tensor, terms: Terms, dropout: float = 0.0) -> Tensor:
    """O(h n (r + m)) memory for tables of r rows in use; ``dense`` takes O(n m d), which is less beyond r = m d / h."""
    for change in terms.maps:
        q, k = change(q, k)
    terms = without_lists(terms, q.shape[0], q.shape[2], k.shape[2])
    forbidding = masks(terms, q, k)
    weights = _weights(*(_bent(q, k, terms) if terms.act or terms.gate else _plain(q, k, terms)), forbidding)
    weights = dropped(weights.to(v.dtype), dropout)
    out = weights @ v
    for x in terms.value:
        out = out + collect_values(weights, x)
    return out


def _weights(scores: Tensor, bias: Tensor | None, forbidding: Sequence[Tensor]) -> Tensor:
    """(b, h, n, m) softmax of scores and biases over the pairs that attend; 0 for a query that attends to nothing."""
    allowed = disallow(None, forbidding)
    if bias is None and allowed is None:
        return torch.softmax(scores, dim=-1)
    opening, nowhere = opened(bias, allowed, scores)
    weights = torch.softmax(scores + opening, dim=-1)
    return weights if nowhere is None else weights.masked_fill(nowhere, 0.0)


def _plain(q: Tensor, k: Tensor, terms: Terms) -> tuple[Tensor, Tensor | None]:
    """(b, h, n, m) scores, and what all other terms add to them."""
    scale = terms.scale / math.sqrt(q.shape[-1])
    return (q * scale) @ k.transpose(-1, -2), total(added(q, k, terms, scale) + _of_factors(terms))


def _bent(q: Tensor, k: Tensor, terms: Terms) -> tuple[Tensor, Tensor | None]:
    """(b, h, n, m) scores after act and gates, and what biases and factors add to them."""
    scale = terms.scale / math.sqrt(q.shape[-1])
    parts = [(q * scale) @ k.transpose(-1, -2), *added(q, k, replace(terms, bias=()), scale)]
    scores = reduce(torch.add, parts)
    if terms.act is not None:
        scores = terms.act(scores)
    for gate in terms.gate:
        scores = scores * gather_scalars(gate)
    return scores, total([gather_scalars(bias) for bias in terms.bias] + _of_factors(terms))


def _of_factors(terms: Terms) -> list[Tensor]:
    return [multiplied(factor) for factor in terms.factors]
