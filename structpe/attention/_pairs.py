"""Evaluate terms at listed pairs only, without a tensor of shape (n, m)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor

from structpe.attention._sparse_products import Along, collect, meet
from structpe.terms import Lookup, Pairs, SparsePairs, Terms, Toeplitz

__all__ = ["Listing"]


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
        # One more row, 0, for pairs that are not on that list.
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
