"""Attention over listed pairs only: along the edges of a graph, or within a window. Linear in the number of pairs.

Shapes: e pairs, h heads, d width. A factor (x, i) is a table x (R, h, d) and, for each pair, its row i (e,) in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.autograd import Function

from structpe.attention.attend import kernel
from structpe.dropout import dropout as dropped
from structpe.terms import Lookup, Pairs, SparsePairs, Terms, Toeplitz

__all__ = ["Along", "Listing", "collect", "edges", "meet"]


Along: TypeAlias = tuple[Tensor, Tensor]

_BLOCK = 1 << 18
"""Number of elements of a block of an (e, h, d) tensor."""


def meet(*factors: Along) -> Tensor:
    """(e, h) sum_c of the product of x[i_e, c] over the factors, in float32 at least."""
    met: Tensor = _Meet.apply(*_flat(factors))  # type: ignore[no-untyped-call]
    return met


def collect(weights: Tensor, to: Tensor, rows: int, *factors: Along) -> Tensor:
    """(rows, h, d) sum over the pairs with to_e = row of weights_e times the product of x[i_e] over the factors.

    Args:
        weights: (e, h).
        to: (e,) row of each pair in the result.
        rows: number of rows of the result.
        factors: the factors of the product.
    """
    collected: Tensor = _Collect.apply(rows, weights, to, *_flat(factors))  # type: ignore[no-untyped-call]
    return collected


class _Meet(Function):
    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> Tensor:
        ctx.save_for_backward(*tensors)
        factors = _factors(tensors)
        x, i = factors[0]
        result = x.new_empty(len(i), x.shape[1], dtype=_wide(x))
        for block in _blocks(factors):
            result[block] = _product(factors, block).sum(-1)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        factors = _factors(ctx.saved_tensors)
        needed = ctx.needs_input_grad
        return tuple(_of_factor(grad, factors, k) if needed[k] else None for k in range(len(needed)))


class _Collect(Function):
    @staticmethod
    def forward(ctx: Any, rows: int, weights: Tensor, to: Tensor, *tensors: Tensor) -> Tensor:
        ctx.save_for_backward(weights, to, *tensors)
        factors = _factors(tensors)
        x = factors[0][0]
        result = x.new_zeros(rows, *x.shape[1:], dtype=_wide(x))
        for block in _blocks(factors):
            result.index_add_(0, to[block], weights[block, :, None].to(result.dtype) * _product(factors, block))
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        weights, to, *tensors = ctx.saved_tensors
        factors, needed = _factors(tensors), ctx.needs_input_grad
        of_weights = meet((grad, to), *factors).to(weights.dtype) if needed[1] else None
        others = [(grad, to), *factors]
        of_factors = (_of_factor(weights, others, k - 2) if needed[k] else None for k in range(3, len(needed)))
        return None, of_weights, None, *of_factors


def _of_factor(weights: Tensor, factors: Sequence[Along], which: int) -> Tensor:
    """The gradient of one factor: the product of the others, summed to its rows."""
    x, i = factors[which]
    return collect(weights, i, len(x), *factors[:which], *factors[which + 1 :]).to(x.dtype)


def _flat(factors: Sequence[Along]) -> Iterator[Tensor]:
    """First all tables, then all rows."""
    return (part for parts in zip(*factors, strict=True) for part in parts)


def _factors(tensors: Sequence[Tensor]) -> list[Along]:
    half = len(tensors) // 2
    return list(zip(tensors[:half], tensors[half:], strict=True))


def _product(factors: Sequence[Along], block: slice) -> Tensor:
    return reduce(torch.mul, [x.index_select(0, i[block]).to(_wide(x)) for x, i in factors])


def _wide(x: Tensor) -> torch.dtype:
    return torch.promote_types(x.dtype, torch.float32)


def _blocks(factors: Sequence[Along]) -> Iterator[slice]:
    x, i = factors[0]
    step = max(1, _BLOCK // (x.shape[1] * x.shape[2]))
    return (slice(first, first + step) for first in range(0, len(i), step))


@dataclass(frozen=True, eq=False)
class Listing:
    """The e pairs that may attend, among b n queries and b m keys of h heads.

    Attributes:
        pairs: the shortest of the lists.
        b, h, n, m: the sizes.
    """

    pairs: Pairs
    b: int
    h: int
    n: int
    m: int

    @classmethod
    def of(cls, terms: Terms, q: Tensor, k: Tensor) -> Listing:
        """The listing for terms with at least one list."""
        shortest = sorted(terms.pairs, key=lambda pairs: len(pairs.key))[0]  # min(..., key=...) cannot be compiled
        b, h, n, _ = q.shape
        return cls(shortest, b, h, n, k.shape[2])

    @property
    def query(self) -> Tensor:
        """(e,) index of the query in the flattened batch."""
        return self.pairs.batch * self.n + self.pairs.query

    @property
    def key(self) -> Tensor:
        """(e,) index of the key in the flattened batch."""
        return self.pairs.batch * self.m + self.pairs.key

    def of_queries(self, x: Tensor) -> Along:
        """Vectors of the queries (b or 1, h or 1, n or 1, d), with the query of each pair."""
        return self._flat(x, self.n), self.query

    def of_keys(self, x: Tensor) -> Along:
        """Vectors of the keys (b or 1, h or 1, m or 1, d), with the key of each pair."""
        return self._flat(x, self.m), self.key

    def meet(self, q: Tensor, k: Tensor) -> Tensor:
        """(e, h) q_i . k_j."""
        return meet(self.of_queries(q), self.of_keys(k))

    def meet_keys(self, q: Tensor, x: Lookup | SparsePairs) -> Tensor:
        """(e, h) q_i . x_ij."""
        return meet(self.of_queries(q), self._vectors(x))

    def meet_queries(self, x: Lookup | SparsePairs, k: Tensor) -> Tensor:
        """(e, h) x_ij . k_j."""
        return meet(self._vectors(x), self.of_keys(k))

    def meet_products(self, q: Tensor, k: Tensor, x: Lookup | SparsePairs) -> Tensor:
        """(e, h) sum_c q_ic k_jc x_ijc."""
        return meet(self.of_queries(q), self.of_keys(k), self._vectors(x))

    def collect(self, weights: Tensor, v: Tensor) -> Tensor:
        """(b n, h, d) the sum of weights_ij v_j of each query."""
        return collect(weights, self.query, self.b * self.n, self.of_keys(v))

    def collect_pairs(self, weights: Tensor, x: Lookup | SparsePairs) -> Tensor:
        """(b n, h, d) the sum of weights_ij x_ij of each query."""
        return collect(weights, self.query, self.b * self.n, self._vectors(x))

    def scalars(self, x: Lookup | SparsePairs | Tensor) -> Tensor:
        """(e, h or 1) the quantity of each pair."""
        if isinstance(x, Tensor):
            return self._picked(x)
        table, row = self._rows(x)
        return table[row]

    def allowed(self, terms: Terms) -> Tensor | None:
        """(e, h or 1) which of the pairs attend; None if all do."""
        parts = [self._picked(mask) for mask in terms.mask]
        parts += [self._find(pairs)[1][:, None] for pairs in terms.pairs if pairs is not self.pairs]
        if terms.causal:
            parts.append((self.pairs.key <= self.pairs.query + (self.m - self.n))[:, None])
        return reduce(torch.logical_and, parts) if parts else None

    def _picked(self, x: Tensor) -> Tensor:
        """(e, h or 1) of a tensor (b or 1, h or 1, n or 1, m or 1)."""
        pairs = self.pairs
        batch, query, key = (
            _shared(size, where)
            for size, where in zip((len(x), *x.shape[2:]), (pairs.batch, pairs.query, pairs.key), strict=True)
        )
        return x[batch, :, query, key]

    def _flat(self, x: Tensor, units: int) -> Tensor:
        return x.expand(self.b, self.h, units, -1).transpose(1, 2).flatten(0, 1)

    def _vectors(self, x: Lookup | SparsePairs) -> Along:
        table, row = self._rows(x)
        return table.expand(-1, self.h, -1), row

    def _rows(self, x: Lookup | SparsePairs) -> Along:
        """(R, h or 1, ...) the table and (e,) the row of each pair."""
        if isinstance(x, Lookup):
            rows = _shared(len(x.rows), self.pairs.batch)
            return x.table, x.rows[rows, self._places(x.index)].long()
        if x.pairs is self.pairs:
            return x.table, x.index.long()
        place, found = self._find(x.pairs)
        # One more row, 0, for pairs that are not in that list.
        table = torch.cat([x.table, x.table.new_zeros(1, *x.table.shape[1:])])
        return table, torch.where(found, torch.cat([x.index, x.index.new_zeros(1)])[place], len(x.table))

    def _places(self, index: Tensor | Toeplitz) -> Tensor:
        """(e,) the index of each pair."""
        batch, query, key = _shared(index.shape[0], self.pairs.batch), self.pairs.query, self.pairs.key
        if isinstance(index, Toeplitz):
            return index.diagonals[batch, key - query + index.n - 1].long()
        return index[batch, query, key].long()

    def _find(self, others: Pairs) -> tuple[Tensor, Tensor]:
        """(e,) the index of each pair in another list, and whether it is there; if not, the index is past the end."""
        mine, (theirs, order) = self._code(self.pairs), self._code(others).sort()
        near = torch.searchsorted(theirs, mine)
        after = len(theirs)
        found = torch.cat([theirs, theirs.new_full((1,), -1)])[near] == mine
        return torch.where(found, torch.cat([order, order.new_full((1,), after)])[near], after), found

    def _code(self, pairs: Pairs) -> Tensor:
        return (pairs.batch * self.n + pairs.query) * self.m + pairs.key


def _shared(size: int, where: Tensor) -> Tensor:
    """Indices into a dimension of this size; all 0 if the size is 1."""
    return where if size > 1 else where * 0


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
