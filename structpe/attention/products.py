"""Attention with vectors of pairs at products, sum_c q_ic k_jc r_ijc, channel by channel.

No vector of a pair is made: for each channel the numbers r_ijc of a block of queries are a matrix, which multiplies
that of q_ic k_jc. What comes out is a bias, and the other terms are computed by the kernel that is best with it.

Shapes: d width of a head; b' and h' structures and heads of the table, or 1; c queries of a block.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from structpe.attention.attend import Call, cheapest, kernel
from structpe.attention.gather import without_lists
from structpe.terms import Lookup, Terms, Toeplitz

__all__ = ["products"]

CELLS = 1 << 18
"""Scores of a block, about."""


def _rest(call: Call) -> Call:
    """The call without vectors at products, with a bias."""
    return replace(call, used=call.used - {"product", "maps"} | {"bias"}, ready=False)


def _limits(call: Call) -> str | None:
    if "product" not in call.used:
        return "is for vectors at products, which these terms lack"
    return "is not traced by torch.compile" if call.traced else None


def _cost(call: Call) -> float:
    return cheapest(_rest(call)).cost(_rest(call)) + 1_000_000 + 2.5 * call.shape[4] * call.cells


@kernel(
    "products",
    supports="maps factors bias mask key query product value scale causal",
    cost=_cost,
    limits=_limits,
    devices="cpu",
)
def products(q: Tensor, k: Tensor, v: Tensor, terms: Terms, dropout: float = 0.0) -> Tensor:
    """O(b h n m) memory, and the time of a few passes over the scores for each channel. Computes in float32 at least.

    Raises:
        RuntimeError: the gradient of a gradient is asked for.
    """
    for change in terms.maps:
        q, k = change(q, k)
    (b, h, n, d), m = q.shape, k.shape[2]
    terms = without_lists(terms, b, n, m)
    exact, scale = torch.promote_types(q.dtype, torch.float32), terms.scale / math.sqrt(d)
    lookups = [x for x in terms.product if isinstance(x, Lookup)]
    wide_q, wide_k = q.to(exact) * scale, k.to(exact)
    each: list[Tensor] = [
        _Products.apply(wide_q, wide_k, x.local().to(exact), x.index)  # type: ignore[no-untyped-call]
        for x in lookups
    ]
    whole = replace(terms, maps=(), product=(), bias=(*terms.bias, *each))
    return cheapest(Call.of(whole, q, (b, h, n, m, d), dropout, False)).compute(q, k, v, whole, dropout)


class _Products(torch.autograd.Function):
    """(b, h, n, m) sum_c q_ic k_jc r_ijc from q (b, h, n, d), k (b, h, m, d), and rows (b', r, h', d) with an index.

    Numbers of a block are written where those of the block before were: new memory would take longer than to compute
    them.
    """

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, rows: Tensor, index: Tensor | Toeplitz) -> Tensor:
        ctx.save_for_backward(q, k, rows)
        ctx.index = index
        pairs, out = _pairs(rows, index), q.new_zeros(*q.shape[:3], k.shape[2])
        keys, queries = k.movedim(3, 0).contiguous()[..., None, :], _turned(q, index).movedim(3, 0)[..., None]
        for at, room in _blocks(out):
            into = out[:, :, at]
            for r, of_query, of_key in zip(pairs.block(at), queries[:, :, :, at], keys, strict=True):
                into.addcmul_(torch.mul(of_query, r, out=room), of_key)
        return _turned(out, index)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        q, k, rows = ctx.saved_tensors
        pairs, grad = _pairs(rows, ctx.index), _turned(grad, ctx.index)
        queries = _turned(q, ctx.index).movedim(3, 0).contiguous()[..., None]
        keys = k.movedim(3, 0).contiguous()[..., None, :]  # (d, b, h, 1, m)
        to_q, to_k = torch.zeros_like(queries), torch.zeros_like(keys)
        for at, room in _blocks(grad):
            ds, of_pairs = grad[:, :, at], pairs.room(room)
            for c, r in enumerate(pairs.block(at)):
                of_query, of_key = queries[c, :, :, at], keys[c]
                torch.mul(ds, r, out=room)
                to_q[c, :, :, at] = (of_key @ room.mT).mT
                to_k[c] += of_query.mT @ room
                of_pairs[c].copy_(_summed(torch.mul(ds, of_query, out=room).mul_(of_key), *of_pairs.shape[1:3]))
            pairs.add(at, of_pairs)
        return _turned(to_q[..., 0].movedim(0, 3), ctx.index), to_k[..., 0, :].movedim(0, 3), pairs.sums(), None


def _turned(x: Tensor, index: Tensor | Toeplitz) -> Tensor:
    """Queries from the last on, if the index is of diagonals: they are windows of one vector then, without copies."""
    return x.flip(2) if isinstance(index, Toeplitz) else x


def _blocks(scores: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """Ranges of queries, and memory for numbers of their pairs (b, h, c, m)."""
    b, h, n, m = scores.shape
    step = max(1, CELLS // max(1, b * h * m))
    room = scores.new_empty(b, h, min(step, n), m)
    for first in range(0, n, step):
        at = slice(first, min(first + step, n))
        yield at, room if at.stop - first == room.shape[2] else scores.new_empty(b, h, at.stop - first, m)


class _Pairs:
    """Numbers r_ijc of pairs, channel by channel, and the sums of their gradients.

    Args:
        rows: (b', r, h', d).
        index: (b', n, m).
    """

    def __init__(self, rows: Tensor, index: Tensor) -> None:
        self._rows, self._index = rows, index
        self._sums = rows.new_zeros(rows.shape[3], len(rows), rows.shape[2], rows.shape[1])  # (d, b', h', r)

    def block(self, at: slice) -> Tensor:
        """(d, b', h', c, m) those of some queries."""
        places = self._index[:, at]
        picked = _picked(self._rows, places.flatten(1))
        return picked.reshape(*picked.shape[:-1], *places.shape[1:])

    def room(self, like: Tensor) -> Tensor:
        """(d, b', h', c, m) memory for gradients of the pairs of a block (b, h, c, m)."""
        return like.new_empty(*self._sums.shape[:1], *self._shape(), *like.shape[2:])

    def add(self, at: slice, of_pairs: Tensor) -> None:
        """Add gradients (d, b', h', c, m) of pairs."""
        flat = self._index[:, at].flatten(1).long()[None, :, None].expand(*of_pairs.shape[:3], -1)
        more = self._sums.new_zeros(*of_pairs.shape[:3], self._sums.shape[3])
        self._sums += more.scatter_add_(-1, flat, of_pairs.flatten(3)).sum_to_size(self._sums.shape)

    def _shape(self) -> tuple[int, int]:
        return max(len(self._rows), len(self._index)), self._rows.shape[2]

    def sums(self) -> Tensor:
        """(b', r, h', d)."""
        return self._sums.permute(1, 3, 2, 0)


class _Diagonals:
    """The same of diagonals, with the last query first: its pairs begin at the first, those of others later."""

    def __init__(self, rows: Tensor, index: Toeplitz) -> None:
        self._rows, self._places, self._shape = rows, index.diagonals, index.shape[1:]
        self._line = _picked(rows, index.diagonals).contiguous()  # (d, b', h', n + m - 1)
        self._sums = torch.zeros_like(self._line)
        self._wide = self._sums.new_zeros(0)

    def block(self, at: slice) -> Tensor:
        n, m = self._shape
        line = self._line
        return line.as_strided((*line.shape[:-1], n, m), (*line.stride(), 1))[..., at, :]

    def room(self, like: Tensor) -> Tensor:
        c, m = like.shape[2:]
        shape = *self._sums.shape[:3], c, m + c
        if self._wide.shape != shape:
            self._wide = self._sums.new_zeros(shape)
        return self._wide[..., :m]

    def add(self, at: slice, of_pairs: Tensor) -> None:
        # Rows that are read one number shorter begin one further to the left each: column j has a diagonal then.
        c, width = self._wide.shape[3], self._wide.shape[4] - 1
        cut = self._wide.flatten(3)[..., : c * width]
        shifted = cut.view(*cut.shape[:-1], c, width)
        self._sums[..., at.start : at.start + width] += shifted.sum(3)

    def sums(self) -> Tensor:
        d, structures, h, _ = self._sums.shape
        b, r = self._rows.shape[:2]
        flat = self._places.long()[None, :, None].expand(d, structures, h, -1)
        of_rows = self._sums.new_zeros(d, structures, h, r).scatter_add_(-1, flat, self._sums)
        return of_rows.sum_to_size(d, b, h, r).permute(1, 3, 2, 0)


def _pairs(rows: Tensor, index: Tensor | Toeplitz) -> _Pairs | _Diagonals:
    return _Diagonals(rows, index) if isinstance(index, Toeplitz) else _Pairs(rows, index)


def _summed(x: Tensor, structures: int, heads: int) -> Tensor:
    """(b or 1, h or 1, c, m) the sum over axes that are to be 1; x is used up. Halves are added fastest."""
    for axis, size in enumerate((structures, heads)):
        while (half := x.shape[axis] // 2) and size == 1:
            rest = x.narrow(axis, half, x.shape[axis] - half)
            x.narrow(axis, 0, half).add_(rest.narrow(axis, rest.shape[axis] - half, half))
            x = x.narrow(axis, 0, x.shape[axis] - half)
    return x


def _picked(rows: Tensor, places: Tensor) -> Tensor:
    """(d, b', h', x) the numbers of rows (b', r, h', d) at places (b', x), for each channel."""
    structures, (_, r, h, d) = max(len(rows), len(places)), rows.shape
    flat = places.long()[None, :, None].expand(d, structures, h, -1)
    return rows.permute(3, 0, 2, 1).expand(d, structures, h, r).gather(-1, flat)
