"""The one equation pair by pair, in loops: what kernels are held to. It shares no code with them, nor with terms."""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor

from structpe.terms import Lookup, Pairs, SparsePairs, Terms, Toeplitz

__all__ = ["attends", "meaning"]


def meaning(q: Tensor, k: Tensor, v: Tensor, terms: Terms) -> Tensor:
    """(b, h, n, d) what attention is by the equation at the head of terms; gradients go through it."""
    for change in terms.maps:
        q, k = change(q, k)
    (b, h, n, _), d = q.shape, v.shape[-1]
    rows = [_of_query(q, k, v, terms, *at) for at in itertools.product(range(b), range(h), range(n))]
    return torch.stack(rows).view(b, h, n, d) if rows else v.new_zeros(b, h, n, d)


def _of_query(q: Tensor, k: Tensor, v: Tensor, t: Terms, b: int, h: int, i: int) -> Tensor:
    keys, extra = list(k[b, h]), list(v[b, h])
    if t.projection is not None:
        keys, extra = _mixtures(t, b, h, "keys", k[b, h]), _mixtures(t, b, h, "values", v[b, h])
    ahead = len(keys) - q.shape[2]
    met = [j for j in range(len(keys)) if attends(t, b, h, i, j, ahead)]
    zero = torch.zeros(v.shape[-1], dtype=v.dtype)
    if not met:
        return zero
    values = [extra[j] + sum((_one(x, b, h, i, j) for x in t.value), zero) for j in met]
    if t.feature_map is not None:
        weights = [t.feature_map(q[b, h, i]) @ t.feature_map(keys[j]) for j in met]
    else:
        scores = [_score(t, q[b, h, i], keys[j], b, h, i, j) for j in met]
        highest = max(s.item() for s in scores)
        weights = [torch.exp(s - highest) for s in scores]
    whole = sum(weights, zero.sum())
    return sum((w / whole * x for w, x in zip(weights, values, strict=True)), zero)


def _score(t: Terms, query: Tensor, key: Tensor, *at: int) -> Tensor:
    b, h, i, j = at
    s = query @ key
    for x in t.key:
        s = s + query @ _one(x, *at)
    for x in t.query:
        s = s + _one(x, *at) @ key
    for x in t.product:
        s = s + (query * key * _one(x, *at)).sum()
    s = s * (t.scale / math.sqrt(len(query)))
    s = s if t.act is None else t.act(s)
    for gate in t.gate:
        s = s * _one(gate, *at)
    for f in t.factors:
        s = s + _one(f.left, b, h, i) @ _one(f.right, b, h, j)
    for x in t.bias:
        s = s + _one(x, *at)
    return s


def _mixtures(t: Terms, b: int, h: int, of: str, units: Tensor) -> list[Tensor]:
    """Mixtures of keys or values, of those that are there."""
    shares = getattr(t.projection, of)
    there = [all(_one(mask, b, h, 0, j) for mask in t.mask) for j in range(len(units))]
    zero = torch.zeros(units.shape[1], dtype=units.dtype)
    return [
        sum((_one(shares, b, h, c, j) * x for j, x in enumerate(units) if there[j]), zero)
        for c in range(shares.shape[2])
    ]


def attends(t: Terms, b: int, h: int, i: int, j: int, ahead: int) -> bool:
    """Whether a pair does; ``ahead`` is how many more keys than queries there are."""
    if t.projection is None and not all(_one(mask, b, h, i, j) for mask in t.mask):
        return False
    if t.causal and j > i + ahead:
        return False
    lowered = t.feature_map is None and any(_one(bias, b, h, i, j).item() == -math.inf for bias in t.bias)
    return not lowered and all((b, i, j) in _listed(pairs) for pairs in t.pairs)


def _listed(pairs: Pairs) -> list[tuple[int, int, int]]:
    return list(zip(pairs.batch.tolist(), pairs.query.tolist(), pairs.key.tolist(), strict=True))


def _one(x: Lookup | SparsePairs | Tensor, *at: int) -> Tensor:
    """The quantity of one pair, found the slow way."""
    if isinstance(x, Tensor):
        return x[tuple(place if size > 1 else 0 for place, size in zip(at, x.shape, strict=False))]
    b, h, i, j = at
    if isinstance(x, Lookup):
        if isinstance(x.index, Toeplitz):
            diagonals = x.index.diagonals
            local = int(diagonals[b if len(diagonals) > 1 else 0, j - i + x.index.n - 1])
        else:
            local = int(x.index[b if len(x.index) > 1 else 0, i, j])
        entry = x.table[int(x.rows[b if len(x.rows) > 1 else 0, local])]
    elif (b, i, j) in (found := _listed(x.pairs)):
        entry = x.table[x.index[found.index((b, i, j))]]
    else:
        entry = torch.zeros_like(x.table[0])
    return entry[h if len(entry) > 1 else 0]
