"""Pair quantities from tables by gathering: never a tensor of (n, m, d)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import torch
from torch import Tensor

from structpe.errors import UnsupportedTerm
from structpe.terms import Listed, Lookup

__all__ = ["collect_values", "disallow", "gather_scalars", "meet_keys", "meet_queries", "total"]


def gather_scalars(x: Lookup | Listed | Tensor) -> Tensor:
    """(b or 1, h or 1, n, m) scalars of each pair."""
    if isinstance(x, Tensor):
        return x
    local = _heads(x)  # (b, h, r)
    return _pick(local[:, :, None, :], _index(x))


def meet_keys(q: Tensor, x: Lookup | Listed) -> Tensor:
    """(b, h, n, m) q_i . table[x_ij]: the query meets each row once, then the products are gathered."""
    return _pick(q @ _heads(x).transpose(-1, -2), _index(x))


def meet_queries(x: Lookup | Listed, k: Tensor) -> Tensor:
    """(b, h, n, m) table[x_ij] . k_j: as :func:`meet_keys`, with keys and queries exchanged."""
    return _pick(k @ _heads(x).transpose(-1, -2), _index(x).transpose(1, 2)).transpose(-1, -2)


def collect_values(weights: Tensor, x: Lookup | Listed) -> Tensor:
    """(b, h, n, d) sum_j weights_ij table[x_ij]: weights are summed by row of the table, which they then meet."""
    b, h, n, _ = weights.shape
    rows = _heads(x)
    by_row = weights.new_zeros(b, h, n, rows.shape[-2])
    by_row = by_row.scatter_add(-1, _index(x)[:, None].expand(b, h, n, -1), weights)
    return by_row @ rows


def total(parts: Sequence[Tensor]) -> Tensor | None:
    """The sum; None where there is nothing to add."""
    return reduce(torch.add, parts) if parts else None


def disallow(bias: Tensor | None, masks: Sequence[Tensor]) -> Tensor | None:
    """Bias and bool masks as one mask: float with -inf where there is a bias, bool where there is none."""
    if not masks:
        return bias
    allowed = reduce(torch.logical_and, masks)
    return allowed if bias is None else bias.masked_fill(~allowed, -math.inf)


def _heads(x: Lookup | Listed) -> Tensor:
    return _whole(x).local().movedim(2, 1)  # (b, r, h, ...) -> (b, h, r, ...)


def _index(x: Lookup | Listed) -> Tensor:
    return _whole(x).index


def _whole(x: Lookup | Listed) -> Lookup:
    if isinstance(x, Listed):
        raise UnsupportedTerm("a quantity of listed pairs goes with these pairs: add Terms(pairs=...), or use 'dense'")
    return x


def _pick(rows: Tensor, index: Tensor) -> Tensor:
    """(b, h, n, m) from (b or 1, h, n or 1, r) by index (b or 1, n, m)."""
    b, h = max(rows.shape[0], index.shape[0]), rows.shape[1]
    n, m = index.shape[1:]
    return rows.expand(b, h, n, -1).gather(-1, index[:, None].expand(b, h, n, m))
