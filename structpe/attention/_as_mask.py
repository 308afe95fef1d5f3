"""Lists of pairs as a mask, for the kernel that is best with it."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from structpe.attention.base import Call, cheapest
from structpe.terms import Pairs, Terms

__all__ = ["attend_masked", "cost_masked"]


def attend_masked(q: Tensor, k: Tensor, v: Tensor, terms: Terms, dropout: float) -> Tensor:
    """Attention with a mask in place of the lists."""
    (b, h, n, d), m = q.shape, k.shape[2]
    if not n or not m:
        return (q.sum() + k.sum() + v.sum()) * 0 + v.new_zeros(b, h, n, v.shape[-1])
    masks = (_mask(pairs, b, n, m) for pairs in terms.pairs)
    whole = replace(terms, pairs=(), mask=(*terms.mask, *(mask for mask in masks if mask is not None)))
    return cheapest(Call.of(whole, q, (b, h, n, m, d), dropout, False)).compute(q, k, v, whole, dropout)


def cost_masked(call: Call) -> float:
    """Nanoseconds of a call."""
    b, _, n, m, _ = call.shape
    without = replace(call, used=call.used - {"pairs"} | {"mask"}, pairs=0)
    return cheapest(without).cost(without) + 5.0 * b * n * m + 5.0 * call.pairs


def _mask(pairs: Pairs, b: int, n: int, m: int) -> Tensor | None:
    """(b, 1, n, m) which pairs are listed; None if all are, as no pair is listed twice."""
    if len(pairs.key) == b * n * m and not torch.compiler.is_compiling():
        return None
    place = (pairs.batch * n + pairs.query) * m + pairs.key
    listed = torch.zeros(b * n * m, dtype=torch.bool, device=place.device).index_fill_(0, place, True)
    return listed.view(b, 1, n, m)
