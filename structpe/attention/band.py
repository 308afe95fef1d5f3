"""Attention over listed pairs that form a band, as those of a sliding window: blocks of queries against strips of keys.

All pairs of a block of B queries have their keys in a strip of B + w - 1 keys, for offsets of w different lengths. The
blocks are a batch of short sequences, each computed by the kernel that is best for it (Beltagy, Peters and Cohan 2020,
section 3.2, have chunks that overlap by half). Time and memory are linear in the number of units.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from structpe.attention.attend import Call, attend_masked, cost_masked, kernel
from structpe.terms import Factor, Lookup, Pairs, SparsePairs, Terms

__all__ = ["band"]


@dataclass(frozen=True, eq=False)
class Strips:
    """Blocks of B queries, each with a strip of S keys.

    Attributes:
        b: number of structures.
        low: offset of the first key of a strip from the first query of its block.
        queries: (blocks, B) places of queries; the last one again after the end.
        keys: (blocks, S) places of keys; those before the first and after the last are the nearest.
    """

    b: int
    low: int
    queries: Int[Tensor, "blocks B"]
    keys: Int[Tensor, "blocks S"]

    @classmethod
    def of(cls, pairs: Pairs, b: int, n: int, m: int) -> Strips:
        """Those of the pairs of b structures of n queries and m keys."""
        low, high = pairs.offsets
        block, blocks, length = _sizes(n, high - low + 1)
        device = pairs.query.device
        starts = torch.arange(blocks, device=device)[:, None] * block
        queries = (starts + torch.arange(block, device=device)).clamp(max=n - 1)
        keys = (starts + low + torch.arange(length, device=device)).clamp(0, m - 1)
        return cls(b, low, queries, keys)

    def listed(self, pairs: Pairs) -> tuple[Pairs, Tensor]:
        """The pairs within the strips, renumbered, and which of the given pairs these are."""
        blocks, block = self.queries.shape
        number = pairs.query.div(block, rounding_mode="floor")
        place = pairs.key - number * block - self.low
        kept = (place >= 0) & (place < self.keys.shape[1])
        batch, query = pairs.batch * blocks + number, pairs.query - number * block
        return Pairs(batch[kept], query[kept], place[kept]), kept

    def of_units(self, x: Tensor, where: Tensor) -> Tensor:
        """(b blocks, h, B or S, c) from (b or 1, h, n or m or 1, c)."""
        parts = x[:, :, where.clamp(max=x.shape[2] - 1)]
        return parts.expand(self.b, *parts.shape[1:]).transpose(1, 2).flatten(0, 1)

    def of_pairs(self, x: Tensor) -> Tensor:
        """(b blocks, h, B or 1, S or 1) from (b or 1, h, n or 1, m or 1)."""
        each = zip(x.shape[2:], (self.queries, self.keys), strict=True)
        query, key = (where if size > 1 else where[:, :1] * 0 for size, where in each)
        parts = x[:, :, query[:, :, None], key[:, None]]
        return parts.expand(self.b, *parts.shape[1:]).transpose(1, 2).flatten(0, 1)

    def term(self, x: Any) -> Any:
        """A quantity of pairs, in any of its forms."""
        if isinstance(x, Tensor):
            return self.of_pairs(x)
        if isinstance(x, SparsePairs):
            pairs, kept = self.listed(x.pairs)
            return SparsePairs(x.table, x.index[kept], pairs)
        if isinstance(x, Factor):
            return Factor(self.of_units(x.left, self.queries), self.of_units(x.right, self.keys))
        rows = x.rows.expand(self.b, -1).repeat_interleave(len(self.queries), dim=0)
        return Lookup(x.table, rows, self.of_pairs(x.dense_index()[:, None])[:, 0])

    def terms(self, terms: Terms, causal: Pairs) -> Terms:
        """Terms whose maps have been applied; ``causal`` is the shortest list, without future keys."""
        lists = tuple(self.listed(pairs)[0] for pairs in (causal, *terms.pairs[1:]))
        changed: dict[str, Any] = {name: tuple(self.term(x) for x in getattr(terms, name)) for name in _OF_PAIRS}
        return replace(terms, maps=(), pairs=lists, causal=False, **changed)


_OF_PAIRS = ("factors", "bias", "gate", "mask", "key", "query", "product", "value")


def _sizes(n: int, span: int) -> tuple[int, int, int]:
    """B, the number of blocks, and S. Blocks as long as the band is wide have half of each strip in the band."""
    block = min(n, max(span, 32))
    return block, -(-n // block), block + span - 1


def _limits(call: Call) -> str | None:
    _, _, n, m, _ = call.shape
    if not call.span:
        return "is for listed pairs that form a band, which is not known of these"
    _, blocks, length = _sizes(n, call.span)
    if blocks == 1 or length > m:
        return f"is for a band much narrower than {m} keys, and this one has {call.span} offsets"
    return None


def _cost(call: Call) -> float:
    b, h, n, _, d = call.shape
    block, blocks, length = _sizes(n, call.span)
    inner = replace(call, shape=(b * blocks, h, block, length, d))
    return cost_masked(inner) + 10.0 * call.pairs + 3.0 * b * h * blocks * (block + 2 * length) * d


@kernel(
    "band",
    supports="maps factors bias gate mask key query product value act scale pairs causal",
    cost=_cost,
    needs="pairs",
    limits=_limits,
)
def band(q: Tensor, k: Tensor, v: Tensor, terms: Terms, dropout: float = 0.0) -> Tensor:
    """The output is 0 for a query without a pair."""
    for change in terms.maps:
        q, k = change(q, k)
    (b, h, n, _), m = q.shape, k.shape[2]
    if not n or not m:
        return attend_masked(q, k, v, replace(terms, maps=()), dropout)
    terms = replace(terms, pairs=tuple(sorted(terms.pairs, key=lambda pairs: len(pairs.key))))
    shortest = terms.pairs[0]
    if terms.causal:
        seen = shortest.key <= shortest.query + (m - n)
        shortest = Pairs(shortest.batch[seen], shortest.query[seen], shortest.key[seen])
    strips = Strips.of(shortest, b, n, m)
    k, v = (strips.of_units(x, strips.keys) for x in (k, v))
    out = attend_masked(strips.of_units(q, strips.queries), k, v, strips.terms(terms, shortest), dropout)
    whole = out.view(b, -1, h, *out.shape[2:]).transpose(1, 2).flatten(2, 3)
    return whole[:, :, :n]
