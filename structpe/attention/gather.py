"""Terms of pairs gathered from tables, and folded into queries, keys and one additive mask.

Vectors of pairs are gathered in one of two ways. With r rows in use per structure, each query is multiplied with each
row, and each pair picks its product: O(h n r) memory. If r is large, each pair gets a copy of its vector: O(n m d)
memory, and a table per head h times as much. :func:`is_large` decides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from structpe.precision import wide
from structpe.terms import Factor, Lookup, SparsePairs, Terms

__all__ = [
    "GATHERED",
    "OF_PAIRS",
    "Folded",
    "added",
    "collect_values",
    "collect_vectors",
    "disallow",
    "folded",
    "gather_scalars",
    "is_large",
    "key_vectors",
    "longer",
    "masks",
    "may_forbid",
    "mixed",
    "multiplied",
    "opened",
    "query_vectors",
    "total",
    "with_shared_factors",
    "without_lists",
]


def is_large(x: Lookup, products: int) -> bool:
    """Whether the vectors of all pairs take less memory than the products of all queries and rows.

    On a CPU they then take less time, too. False while tracing, since the number of rows varies between batches.

    Args:
        x: the vectors.
        products: number of vectors that are multiplied with a row: b h n, or b h m of keys.
    """
    if torch.compiler.is_compiling():
        return False
    shared, n, m = x.index.shape
    return max(len(x.rows), shared) * n * m * x.table[0].numel() < products * x.rows.shape[1]


def key_vectors(q: Float[Tensor, "b h n d"], x: Lookup) -> Float[Tensor, "b h n m"]:
    """q_i . x_ij."""
    # Vectors first: their gradient, the largest tensor here, then has the order in which they are stored.
    met: Tensor = torch.einsum("bnmhd,bhnd->bhnm", _vectors(x, q.dtype), q)
    return met


def query_vectors(x: Lookup, k: Float[Tensor, "b h m d"]) -> Float[Tensor, "b h n m"]:
    """x_ij . k_j."""
    met: Tensor = torch.einsum("bnmhd,bhmd->bhnm", _vectors(x, k.dtype), k)
    return met


def collect_vectors(weights: Float[Tensor, "b h n m"], x: Lookup) -> Float[Tensor, "b h n d"]:
    """sum_j weights_ij x_ij."""
    collected: Tensor = torch.einsum("bhnm,bnmhd->bhnd", weights, _vectors(x, weights.dtype))
    return collected


def _vectors(x: Lookup, dtype: torch.dtype) -> Tensor:
    """(b or 1, n, m, h or 1, d) the vector of each pair."""
    structures = max(len(x.rows), x.index.shape[0])
    index = x.dense_index().flatten(1).expand(structures, -1)
    chosen = x.rows.expand(structures, -1).gather(1, index).long()
    found = x.table.to(dtype).index_select(0, chosen.flatten())
    return found.view(structures, *x.index.shape[1:], *x.table.shape[1:])


def without_lists(terms: Terms, b: int, n: int, m: int) -> Terms:
    """Terms in which each :class:`SparsePairs` is a :class:`Lookup`; its last row, 0, is for pairs not listed."""

    def whole(x: Lookup | SparsePairs | Tensor) -> Lookup | Tensor:
        return _whole(x, b, n, m) if isinstance(x, SparsePairs) else x

    if not any(isinstance(x, SparsePairs) for name in OF_PAIRS for x in getattr(terms, name)):
        return terms
    made: dict[str, Any] = {name: tuple(map(whole, getattr(terms, name))) for name in OF_PAIRS}
    return replace(terms, **made)


OF_PAIRS = ("bias", "gate", "key", "query", "product", "value")
"""The fields of ``Terms`` whose quantities of pairs may come from tables."""


def gather_scalars(x: Lookup | SparsePairs | Tensor) -> Tensor:
    """(b or 1, h or 1, n, m) scalars of each pair."""
    if isinstance(x, Tensor):
        return x
    of_pairs = _lookup(x)
    return of_pairs.cached("scalars", lambda: _pick_shared(_heads(x), of_pairs.dense_index()))


def added(q: Tensor, k: Tensor, terms: Terms, scale: float) -> list[Tensor]:
    """The parts of scores from biases, and from vectors at keys and queries times ``scale``, (b, h, n, m) or 1s each.

    A bias of the same pairs as vectors at keys is added to the products of queries and rows before both are gathered.
    Sums are of float32 at least, even if queries are of half precision: a bias may be large where scores matter.
    """
    scaled, parts, alone = q * scale if terms.key else q, [], list(terms.bias)
    for x in terms.key:
        joined = [bias for bias in alone if _joins(bias, x, q)]
        alone = [bias for bias in alone if all(bias is not other for other in joined)]
        parts.append(meet_keys(scaled, x, joined))
    parts += [meet_queries(x, k * scale) for x in terms.query]
    return parts + [gather_scalars(bias) for bias in alone]


def _joins(bias: Lookup | SparsePairs | Tensor, x: Lookup | SparsePairs, q: Tensor) -> bool:
    """Whether a bias has the same pairs as vectors x, and no other layer shares it, which would gather it once."""
    of_pairs = _lookup(x)
    if torch.compiler.is_compiling() or not isinstance(bias, Lookup) or bias.shared:
        return False
    same = bias.index is of_pairs.index and bias.rows is of_pairs.rows
    return same and not is_large(of_pairs, q[..., 0].numel())


def meet_keys(q: Tensor, x: Lookup | SparsePairs, biases: Sequence[Lookup | SparsePairs | Tensor] = ()) -> Tensor:
    """(b, h, n, m) q_i . table[x_ij] and biases of the same pairs: each query and row once, then a gather.

    With one row it is (b, h, n, 1).
    """
    if is_large(_lookup(x), q[..., 0].numel()):
        return key_vectors(q, _lookup(x))
    met = wide(q @ _heads(x).to(q.dtype).transpose(-1, -2))
    for bias in biases:
        assert isinstance(bias, Lookup)  # see _joins
        met = met + _heads(bias)[:, :, None]
    return _pick(met, _lookup(x))


def meet_queries(x: Lookup | SparsePairs, k: Tensor) -> Tensor:
    """(b, h, n, m) table[x_ij] . k_j: each key and row once, then a gather; with one row (b, h, 1, m)."""
    if is_large(_lookup(x), k[..., 0].numel()):
        return query_vectors(_lookup(x), k)
    met = k @ _heads(x).to(k.dtype).transpose(-1, -2)
    return _pick(met, _lookup(x), by_key=True)


def collect_values(weights: Tensor, x: Lookup | SparsePairs) -> Tensor:
    """(b, h, n, d) sum_j weights_ij table[x_ij]: weights are summed by row, then multiplied with the rows."""
    b, h, n, _ = weights.shape
    if is_large(_lookup(x), weights[..., 0].numel()):
        return collect_vectors(weights, _lookup(x))
    rows = _heads(x).to(weights.dtype)
    shares = wide(weights)  # a sum of many small numbers
    by_row = shares.new_zeros(b, h, n, rows.shape[-2])
    by_row = by_row.scatter_add(-1, _lookup(x).dense_index()[:, None].expand(b, h, n, -1), shares)
    return by_row.to(weights.dtype) @ rows


def total(parts: Sequence[Tensor]) -> Tensor | None:
    """The sum of the parts, in float32 at least; None if there are none."""
    parts = [wide(part) for part in parts]
    if torch.compiler.is_compiling() or not parts:  # the compiler joins the sums itself
        return reduce(torch.add, parts) if parts else None
    first, *others = sorted(parts, key=Tensor.numel, reverse=True)
    if not others:
        return first
    whole = first + others[0]
    for other in others[1:]:
        # In place if the sum has its shape and dtype already, since each further tensor of all pairs takes memory.
        fits = other.dtype == whole.dtype and other.shape == torch.Size(map(min, other.shape, whole.shape))
        whole = whole.add_(other) if fits else whole + other
    return whole


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
    """Join biases and a bool mask without rows of -inf only; also return the rows that attend to nothing.

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
    index = x.index.new_full((b, n, m), zero, dtype=torch.int64)
    index[x.pairs.batch, x.pairs.query, x.pairs.key] = x.index.long()
    return Lookup(table, torch.arange(zero + 1, device=x.index.device).expand(b, -1), index)


def _pick(met: Tensor, x: Lookup, by_key: bool = False) -> Tensor:
    """(b, h, n, m) the value of each pair in met (b, h, n, r), of queries, or (b, h, m, r), of keys.

    With one row there is nothing to gather: it is (b, h, n, 1), or (b, h, 1, m).
    """
    if met.shape[-1] == 1:
        return met.transpose(-1, -2) if by_key else met
    index = x.dense_index().transpose(1, 2) if by_key else x.dense_index()
    picked = met.gather(-1, index[:, None].expand(*met.shape[:2], *index.shape[1:]))
    return picked.transpose(-1, -2) if by_key else picked


def _pick_shared(rows: Tensor, index: Tensor) -> Tensor:
    """(b or 1, h, n, m) from rows (b or 1, h, r) that all queries share: no tensor is as large as n r."""
    if rows.device.type != "cpu" and rows.shape[-1] <= _FEW and not torch.compiler.is_compiling():
        return _picked(rows, index)
    return _gathered(rows, index)


_FEW = 256
"""Up to this number of rows, a GPU sums gradients by matrix products: with atomic sums many pairs wait for few rows."""
_PART = 1 << 27
"""The largest matrix of zeros and ones in such a product."""


def _picked(rows: Tensor, index: Tensor) -> Tensor:
    picked: Tensor = _Picked.apply(rows, index)  # type: ignore[no-untyped-call]
    return picked


class _Picked(torch.autograd.Function):
    """As :func:`_gathered`. Its gradient is a product with a matrix of zeros and ones, in parts: no atomic sums."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, index: Tensor) -> Tensor:
        ctx.save_for_backward(index)
        ctx.shape = rows.shape
        return _gathered(rows, index)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (index,) = ctx.saved_tensors
        flat, given, count = index.flatten(1), grad.flatten(2), ctx.shape[-1]
        which = torch.arange(count, device=grad.device)
        whole = torch.promote_types(grad.dtype, torch.float32)
        sums = grad.new_zeros(*grad.shape[:2], count, dtype=whole)
        step = max(1, _PART // (len(flat) * count))
        for start in range(0, flat.shape[1], step):
            chosen = (flat[:, start : start + step, None] == which).to(grad.dtype)
            sums += given[:, :, start : start + step] @ chosen
        return sums.sum_to_size(ctx.shape).to(grad.dtype), None


def _gathered(rows: Tensor, index: Tensor) -> Tensor:
    b, h = max(len(rows), len(index)), rows.shape[1]
    flat = index.flatten(1)[:, None].expand(b, h, -1)
    return rows.expand(b, h, -1).gather(-1, flat).view(b, h, *index.shape[1:])


def mixed(k: Tensor, v: Tensor, terms: Terms) -> tuple[Tensor, Tensor, Terms]:
    """Keys and values after the projection of the terms, and the remaining terms."""
    if terms.projection is None:
        return k, v, terms
    keys, values = terms.projection.keys.to(k.dtype), terms.projection.values.to(v.dtype)
    for mask in terms.mask:  # (b or 1, h or 1, 1, m): a masked key has no part in any mixture
        keys, values = keys * mask, values * mask
    return keys @ k, values @ v, replace(terms, projection=None, mask=())


GATHERED = 1 << 23
"""The largest number of scalars that are computed once for all structures or layers that share them."""


class Folded(NamedTuple):
    """softmax(scale q k^T + added) v over the pairs that the masks allow.

    Attributes:
        q, k, v: (b, h, n, c), (b, h, m, c) and (b, h, m, d); c may exceed d, by factors.
        added: (b or 1, h or 1, n or 1, m or 1), of the dtype of q and float32 at least; None if nothing is added.
        masks: bool, broadcast likewise; they include the causal mask.
        scale: of the products.
        alone: whether attention is causal, with as many queries as keys, and without other masks or biases.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    added: Tensor | None
    masks: tuple[Tensor, ...]
    scale: float
    alone: bool


def folded(q: Tensor, k: Tensor, v: Tensor, terms: Terms) -> Folded:
    """Fold maps, factors, biases, vectors at keys and queries, and projections."""
    for change in terms.maps:
        q, k = change(q, k)
    k, v, terms = mixed(k, v, terms)
    terms = without_lists(terms, q.shape[0], q.shape[2], k.shape[2])
    scale = terms.scale / math.sqrt(q.shape[-1])
    parts = added(q, k, terms, scale)
    alone = terms.causal and not (parts or terms.mask) and q.shape[2] == k.shape[2]
    forbidding = () if alone else masks(terms, q, k)
    q, k, scale = longer(q, k, scale, terms)
    whole, exact = total(parts), torch.promote_types(q.dtype, torch.float32)
    return Folded(q, k, v, None if whole is None else whole.to(exact), forbidding, scale, alone)


def with_shared_factors(terms: Terms, b: int, n: int, m: int) -> Terms:
    """Terms in which the factors that all structures share are one bias (1, h or 1, n, m), unless it is large.

    The bias is computed once; longer heads would be multiplied for each structure.
    """
    alike = [f for f in terms.factors if len(f.left) == len(f.right) == 1] if b > 1 and not terms.pairs else []
    # Not max(..., default=0), which torch.compile cannot trace.
    heads = max([0, *(max(f.left.shape[1], f.right.shape[1]) for f in alike)])
    if not alike or heads * n * m > GATHERED or torch.compiler.is_compiling():
        return terms
    others = tuple(f for f in terms.factors if f not in alike)
    return replace(terms, factors=others, bias=(*terms.bias, *map(multiplied, alike)))


def multiplied(factor: Factor) -> Tensor:
    """(b or 1, h or 1, n or 1, m or 1) left_i.right_j, in float32 at least."""
    return wide(factor.left) @ wide(factor.right).transpose(-1, -2)


def longer(q: Tensor, k: Tensor, scale: float, terms: Terms) -> tuple[Tensor, Tensor, float]:
    """[scale q; left].[k; right]: a longer head replaces a bias. Also returns the remaining scale."""
    if not terms.factors and scale > 0:
        return q, k, scale
    # Scale here: fused kernels do not support a scale of 0 or less.
    q = scale * q
    for factor in terms.factors:
        left, right = _in_parts(factor, q.dtype)
        q = torch.cat([q, left.expand(*q.shape[:3], -1)], dim=-1)
        k = torch.cat([k, right.expand(*k.shape[:3], -1)], dim=-1)
    return q, k, 1.0


def _in_parts(factor: Factor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Both sides of a factor in a dtype. In half precision, a number is split into its rounded value and a rest.

    [l, l', l].[r, r, r'] has twice the digits of l.r, which matters for products that are large next to scores.
    """
    left, right = factor.left.to(dtype), factor.right.to(dtype)
    if dtype.itemsize > 2 or factor.left.dtype == factor.right.dtype == dtype:
        return left, right
    rests = (factor.left - left).to(dtype), (factor.right - right).to(dtype)
    return torch.cat([left, rests[0], left], dim=-1), torch.cat([right, right, rests[1]], dim=-1)
