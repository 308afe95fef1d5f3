"""Gather quantities of pairs from tables, without a tensor of shape (n, m, d)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import torch
from torch import Tensor

from structpe.terms import Lookup, SparsePairs, Terms

__all__ = [
    "collect_values",
    "disallow",
    "gather_scalars",
    "masks",
    "may_forbid",
    "meet_keys",
    "meet_queries",
    "opened",
    "total",
    "without_lists",
]


def without_lists(terms: Terms, b: int, n: int, m: int) -> Terms:
    """Terms in which each :class:`SparsePairs` is a :class:`Lookup`; its last row, 0, is for pairs not listed."""

    def whole(x: Lookup | SparsePairs | Tensor) -> Lookup | Tensor:
        return _whole(x, b, n, m) if isinstance(x, SparsePairs) else x

    if not any(isinstance(x, SparsePairs) for name in _OF_PAIRS for x in getattr(terms, name)):
        return terms
    made: dict[str, Any] = {name: tuple(map(whole, getattr(terms, name))) for name in _OF_PAIRS}
    return replace(terms, **made)


_OF_PAIRS = ("bias", "gate", "key", "query", "product", "value")


def gather_scalars(x: Lookup | SparsePairs | Tensor) -> Tensor:
    """(b or 1, h or 1, n, m) scalars of each pair."""
    if isinstance(x, Tensor):
        return x
    local = _heads(x)  # (b, h, r)
    return _pick(local[:, :, None, :], _lookup(x).index)


def meet_keys(q: Tensor, x: Lookup | SparsePairs) -> Tensor:
    """(b, h, n, m) q_i . table[x_ij]: the query meets each row once, then the products are gathered."""
    return _pick(q @ _heads(x).to(q.dtype).transpose(-1, -2), _lookup(x).index)


def meet_queries(x: Lookup | SparsePairs, k: Tensor) -> Tensor:
    """(b, h, n, m) table[x_ij] . k_j: as :func:`meet_keys`, with keys and queries exchanged."""
    return _pick(k @ _heads(x).to(k.dtype).transpose(-1, -2), _lookup(x).index.transpose(1, 2)).transpose(-1, -2)


def collect_values(weights: Tensor, x: Lookup | SparsePairs) -> Tensor:
    """(b, h, n, d) sum_j weights_ij table[x_ij]: weights are summed by row of the table, which they then meet."""
    b, h, n, _ = weights.shape
    rows = _heads(x).to(weights.dtype)
    by_row = weights.new_zeros(b, h, n, rows.shape[-2])
    by_row = by_row.scatter_add(-1, _lookup(x).index[:, None].expand(b, h, n, -1), weights)
    return by_row @ rows


def total(parts: Sequence[Tensor]) -> Tensor | None:
    """The sum of the parts; None if there are none."""
    return reduce(torch.add, parts) if parts else None


def masks(terms: Terms, q: Tensor, k: Tensor) -> tuple[Tensor, ...]:
    """The masks, including the causal mask if attention is causal."""
    if not terms.causal:
        return terms.mask
    n, m = q.shape[2], k.shape[2]
    return (*terms.mask, torch.ones(1, 1, n, m, dtype=torch.bool, device=q.device).tril(m - n))


def disallow(bias: Tensor | None, masks: Sequence[Tensor]) -> Tensor | None:
    """Join a bias and bool masks: a float mask with -inf if there is a bias, else a bool mask."""
    if not masks:
        return bias
    allowed = reduce(torch.logical_and, masks)
    return allowed if bias is None else bias.masked_fill(~allowed, -math.inf)


def opened(bias: Tensor | None, allowed: Tensor | None, like: Tensor) -> tuple[Tensor, Tensor | None]:
    """Join biases and a bool mask so that no row is all -inf; also return the rows that attend to nothing.

    The softmax of a row of -inf is NaN, and so is its gradient. Such rows are not masked here: set their result to 0.

    Args:
        bias: (b or 1, h or 1, n or 1, m or 1).
        allowed: bool, broadcast likewise; False masks a pair.
        like: of the dtype and device of scores.

    Returns:
        What to add, and (b or 1, h or 1, n or 1, 1) True for a row that attends nowhere; None if no row does.
    """
    added = like.new_zeros(()) if bias is None else bias
    if bias is not None and may_forbid(bias):
        added = added if allowed is None else added.masked_fill(~allowed, -math.inf)
        nowhere = (added.detach() == -math.inf).all(-1, keepdim=True)
        return torch.where(nowhere, 0.0, added), nowhere
    if allowed is None:
        return added, None
    return added.masked_fill(~allowed, torch.finfo(added.dtype).min / 2), ~allowed.any(-1, keepdim=True)


def may_forbid(bias: Tensor) -> bool:
    """Whether a number may be -inf; True if checking would synchronise with a GPU or break a compiled graph."""
    if torch.compiler.is_compiling() or bias.device.type != "cpu":
        return True
    return bias.numel() > 0 and bool(bias.detach().amin() == -math.inf)


def _heads(x: Lookup | SparsePairs) -> Tensor:
    return _lookup(x).local().movedim(2, 1)  # (b, r, h, ...) -> (b, h, r, ...)


def _lookup(x: Lookup | SparsePairs) -> Lookup:
    assert isinstance(x, Lookup)  # see without_lists
    return x


def _whole(x: SparsePairs, b: int, n: int, m: int) -> Lookup:
    zero = len(x.table)
    table = torch.cat([x.table, x.table.new_zeros(1, *x.table.shape[1:])])
    index = x.index.new_full((b, n, m), zero)
    index[x.pairs.batch, x.pairs.query, x.pairs.key] = x.index
    return Lookup(table, torch.arange(zero + 1, device=x.index.device).expand(b, -1), index)


def _pick(rows: Tensor, index: Tensor) -> Tensor:
    """(b, h, n, m) from (b or 1, h, n or 1, r) by index (b or 1, n, m)."""
    b, h = max(rows.shape[0], index.shape[0]), rows.shape[1]
    n, m = index.shape[1:]
    return rows.expand(b, h, n, -1).gather(-1, index[:, None].expand(b, h, n, m))
