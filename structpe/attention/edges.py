"""Attention over listed pairs only: along the edges of a graph, or within a window. Linear in the number of pairs."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from structpe.attention._pairs import Listing
from structpe.attention.base import kernel
from structpe.dropout import dropout as dropped
from structpe.terms import Terms

__all__ = ["edges"]


@kernel(
    "edges",
    supports="maps factors bias gate mask key query product value act scale pairs causal feature_map",
    cost=lambda call: 600_000 + (50.0 + call.shape[4]) * call.pairs * call.shape[1],
    needs="pairs",
)
def edges(q: Tensor, k: Tensor, v: Tensor, terms: Terms, dropout: float = 0.0) -> Tensor:
    """O(e h d) time and O(e h) memory for e pairs. The output is 0 for a query without a pair.

    On a GPU the order of the sums is not fixed, so the last digits may differ from run to run. Use
    ``torch.use_deterministic_algorithms`` to fix it.
    """
    for change in terms.maps:
        q, k = change(q, k)
    at = Listing.of(terms, q, k)
    shares, query = _shares(q, k, terms, at), at.query
    total = shares.new_zeros(at.b * at.n, at.h).index_add(0, query, shares)[query]
    weights = dropped(shares / torch.where(total != 0, total, 1), dropout)
    out = at.collect(weights, v)
    for x in terms.value:
        out = out + at.collect_pairs(weights, x)
    return out.to(v.dtype).view(at.b, at.n, at.h, v.shape[-1]).transpose(1, 2)


def _shares(q: Tensor, k: Tensor, terms: Terms, at: Listing) -> Tensor:
    """(e, h) the weight of each pair before normalisation."""
    allowed = at.allowed(terms)
    if terms.feature_map is not None:
        shares = at.meet(terms.feature_map(q), terms.feature_map(k))
        return shares if allowed is None else shares * allowed
    scores = _scores(q, k, terms, at)
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -math.inf)
    query = at.query[:, None].expand_as(scores)
    highest = scores.new_zeros(at.b * at.n, at.h)
    highest = highest.scatter_reduce(0, query, scores.detach(), "amax", include_self=False)
    # If all pairs of a query are -inf, subtracting the maximum would give NaN.
    highest = highest.masked_fill(highest == -math.inf, 0.0)
    return torch.exp(scores - highest.gather(0, query))


def _scores(q: Tensor, k: Tensor, terms: Terms, at: Listing) -> Tensor:
    """(e, h) the score of each pair."""
    score = at.meet(q, k)
    for x in terms.key:
        score = score + at.meet_keys(q, x)
    for x in terms.query:
        score = score + at.meet_queries(x, k)
    for x in terms.product:
        score = score + at.meet_products(q, k, x)
    score = score * (terms.scale / math.sqrt(q.shape[-1]))
    if terms.act is not None:
        score = terms.act(score)
    for gate in terms.gate:
        score = score * at.scalars(gate)
    for factor in terms.factors:
        score = score + at.meet(factor.left, factor.right)
    for bias in terms.bias:
        score = score + at.scalars(bias)
    return score
