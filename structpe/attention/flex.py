"""PyTorch's FlexAttention on CUDA: a compiled kernel that reads tables of pairs while it computes scores.

A modification is a function of the numbers b, h, i and j of one score. It reads captured tensors, each at one place
only: PyTorch does not compute the gradient of a tensor that is read at two places.

Shapes: b batch, h heads, n queries, m keys, r rows of a structure, e listed pairs, s size of a block.

``auto`` takes it only after :func:`structpe.attention.enable`, which compares it with ``dense`` on the GPU at hand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

from structpe.attention.attend import Call, kernel, padded_width
from structpe.attention.gather import mixed
from structpe.errors import StructPEError
from structpe.terms import Lookup, Pairs, SparsePairs, Terms, Toeplitz

__all__ = [
    "Mask",
    "Masks",
    "Score",
    "block_mask",
    "eager",
    "flex",
    "kernel_options",
    "masks_of",
    "modifications",
    "score_of",
]


At: TypeAlias = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""(b, h, i, j) -> the value of one pair."""

Mask: TypeAlias = At
Score: TypeAlias = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
"""(score, b, h, i, j) -> the changed score."""


def score_of(q: Tensor, k: Tensor, terms: Terms, scale: float, captured: bool) -> Score | None:
    """The modification of scores; None if no term changes them.

    Args:
        q, k: after the maps.
        terms: without maps and projection.
        scale: of the scores.
        captured: whether factors are part of it; otherwise they are part of longer heads.
    """
    shape = (*q.shape[:3], k.shape[2])
    wide = torch.promote_types(q.dtype, torch.float32)
    vectors = [_met_keys(scale * q, x, shape, wide) for x in terms.key]
    vectors += [_met_queries(x, scale * k, shape, wide) for x in terms.query]
    gates = [_scalars(x, shape, wide) for x in terms.gate]
    added = [_scalars(x, shape, wide) for x in terms.bias]
    for factor in terms.factors if captured else ():
        added += [_product(*each, shape[1]) for each in _columns(factor.left.to(wide), factor.right.to(wide))]
    act = terms.act
    if not (vectors or gates or added or act):
        return None

    def score_mod(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        for vector in vectors:
            score = score + vector(b, h, i, j)
        if act is not None:
            score = act(score)
        for gate in gates:
            score = score * gate(b, h, i, j)
        for bias in added:
            score = score + bias(b, h, i, j)
        return score

    return score_mod


@dataclass(frozen=True)
class Masks:
    """Which pairs attend.

    Attributes:
        mod: of one pair.
        some: (b or 1, h or 1, n / s, m / s) False for blocks without a pair that attends.
        whole: of the same shape, True for blocks of which all pairs attend.
    """

    mod: Mask
    some: Tensor
    whole: Tensor


def masks_of(terms: Terms, shape: tuple[int, int, int, int], size: int, device: torch.device) -> Masks | None:
    """Masks, causal attention and listed pairs; None if all pairs attend.

    Nothing of n m elements is made, unless a mask has as many.

    Args:
        terms: which pairs attend.
        shape: b, h, n and m.
        size: of a block.
        device: of the result.
    """
    _, h, n, m = shape
    made = [_of_mask(mask, h, size) for mask in terms.mask] + [_of_list(x, shape, size) for x in terms.pairs]
    if terms.causal:
        made.append(_of_order(n, m, size, device))
    if not made:
        return None
    mods = [each.mod for each in made]

    def mask_mod(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        allowed = mods[0](b, h, i, j)
        for mod in mods[1:]:
            allowed = allowed & mod(b, h, i, j)
        return allowed

    # A block that extends past the last query or key is not whole. A BlockMask needs all four axes.
    ends = [torch.arange(size, -(-count // size) * size + 1, size, device=device) <= count for count in (n, m)]
    whole = reduce(torch.logical_and, [each.whole for each in made], (ends[0][:, None] & ends[1])[None, None])
    some = reduce(torch.logical_and, [each.some for each in made], torch.ones_like(whole))
    return Masks(mask_mod, some, whole & some)


def _at(x: Tensor, heads: int) -> At:
    """x[b, h, i, j] of (b or 1, h or 1, n or 1, m or 1)."""
    if x.numel() == 1:  # indexing needs at least one axis
        x = x.expand(1, heads, 1, 1)
    axes = [axis for axis in range(4) if x.shape[axis] > 1] or [1]
    x = x.reshape([x.shape[axis] for axis in axes])

    def read(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        place = (b, h, i, j)
        return x[tuple([place[axis] for axis in axes])]

    return read


def _scalars(x: Lookup | SparsePairs | Tensor, shape: tuple[int, int, int, int], wide: torch.dtype) -> At:
    if isinstance(x, Tensor):
        return _at(x.to(wide).view_as(x), shape[1])
    rows, places = _rows(x, shape)
    values = _at(rows.to(wide)[:, :, None], shape[1])

    def read(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return values(b, h, i, places(b, h, i, j))

    return read


def _met_keys(q: Tensor, x: Lookup | SparsePairs, shape: tuple[int, int, int, int], wide: torch.dtype) -> At:
    """q_i . x_ij: the query meets each row once."""
    rows, places = _rows(x, shape)
    products = _at((q @ rows.to(q.dtype).transpose(-1, -2)).to(wide), shape[1])

    def read(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return products(b, h, i, places(b, h, i, j))

    return read


def _met_queries(x: Lookup | SparsePairs, k: Tensor, shape: tuple[int, int, int, int], wide: torch.dtype) -> At:
    """x_ij . k_j."""
    rows, places = _rows(x, shape)
    products = _at((k @ rows.to(k.dtype).transpose(-1, -2)).to(wide), shape[1])

    def read(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return products(b, h, j, places(b, h, i, j))

    return read


def _columns(left: Tensor, right: Tensor) -> Sequence[tuple[Tensor, Tensor]]:
    return list(zip(left.unbind(-1), right.unbind(-1), strict=True))


def _product(left: Tensor, right: Tensor, heads: int) -> At:
    """left_i right_j of (b or 1, h or 1, n or 1) and (b or 1, h or 1, m or 1)."""
    one, other = _at(left[..., None], heads), _at(right[:, :, None], heads)

    def read(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return one(b, h, i, j) * other(b, h, i, j)

    return read


def _rows(x: Lookup | SparsePairs, shape: tuple[int, int, int, int]) -> tuple[Tensor, At]:
    """(b or 1, h or 1, r, ...) the rows, and which of them a pair has."""
    if isinstance(x, SparsePairs):
        # Row 0 is for pairs that are not listed.
        table = torch.cat([x.table.new_zeros(1, *x.table.shape[1:]), x.table])
        return table.movedim(1, 0)[None], _listed(x.pairs, x.index.to(torch.int32) + 1, shape, _SIZE)[0]
    rows = x.local().movedim(2, 1)
    if isinstance(x.index, Toeplitz):
        return rows, _diagonal(x.index, shape[1])
    matrix = _at(_narrow(x.index)[:, None], shape[1])

    def places(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return matrix(b, h, i, j).to(torch.int32)

    return rows, places


def _diagonal(index: Toeplitz, heads: int) -> At:
    diagonals, last = _at(_narrow(index.diagonals)[:, None, None], heads), index.n - 1

    def places(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return diagonals(b, h, i, j - i + last).to(torch.int32)

    return places


def _narrow(index: Tensor) -> Tensor:
    return index.to(torch.int32) if index.dtype == torch.int64 else index


_SIZE = 128
"""Of the blocks in which the rows of listed pairs are kept."""


def _listed(pairs: Pairs, values: Tensor, shape: tuple[int, int, int, int], size: int) -> tuple[At, Tensor]:
    """The value of each pair, 0 for those not listed; and (b, n / s, m / s) which blocks have a listed pair.

    Only blocks with a listed pair are kept.
    """
    b, _, n, m = shape
    rows, columns = -(-n // size), -(-m // size)
    number = (pairs.batch * rows + pairs.query // size) * columns + pairs.key // size
    present, of_pair = torch.unique(number, return_inverse=True)
    where = torch.zeros(b * rows * columns, dtype=torch.int32, device=number.device)
    where[present] = torch.arange(1, len(present) + 1, dtype=torch.int32, device=number.device)
    where = where.view(b, rows, columns)
    blocks = values.new_zeros(len(present) + 1, min(size, n), min(size, m))
    blocks[of_pair + 1, pairs.query % size, pairs.key % size] = values

    def read(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        del h
        return blocks[where[b, i // size, j // size], i % size, j % size]

    return read, where > 0


def _of_list(pairs: Pairs, shape: tuple[int, int, int, int], size: int) -> Masks:
    there = torch.ones(len(pairs.key), dtype=torch.bool, device=pairs.key.device)
    mod, some = _listed(pairs, there, shape, size)
    return Masks(mod, some[:, None], torch.zeros_like(some[:, None]))


def _of_order(n: int, m: int, size: int, device: torch.device) -> Masks:
    """Causal attention."""
    ahead = m - n

    def mod(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        del b, h
        return j <= i + ahead

    first, key = (torch.arange(0, count, size, device=device) for count in (n, m))
    last, furthest = (first + size - 1).clamp(max=n - 1), (key + size - 1).clamp(max=m - 1)
    return Masks(mod, key <= last[:, None] + ahead, furthest <= first[:, None] + ahead)


def _of_mask(mask: Tensor, heads: int, size: int) -> Masks:
    some, whole = _in_blocks(mask, size), ~_in_blocks(~mask, size)
    return Masks(_at(mask, heads), some, whole)


def _in_blocks(mask: Tensor, size: int) -> Tensor:
    """(b or 1, h or 1, n / s or 1, m / s or 1) whether a block of a mask has a pair."""
    for axis in (3, 2):
        count = mask.shape[axis]
        if count > 1:
            more = -count % size
            shape = list(mask.shape)
            shape[axis] = more
            filled = torch.cat([mask, mask.new_zeros(shape)], axis)
            mask = filled.reshape(*shape[:axis], -1, size, *shape[axis + 1 :]).any(axis + 1)
    return mask


BLOCK = 128
"""Queries and keys of a block of the mask."""


def _limits(call: Call) -> str | None:
    if call.dropout:
        return "has no dropout of attention weights"
    if call.traced:
        return "is compiled on its own, not as part of a compiled model"
    if call.large:
        return "multiplies each query with all rows of vectors, and there are as many rows as pairs"
    if call.gradients and torch.are_deterministic_algorithms_enabled():
        return "sums gradients of tables in an order that varies"
    return None


def _cost(call: Call) -> float:
    return call.time(150_000, 5.0, 0.2, gathered=(0.0, 1.0), gpu=(2.2e6, 0.012, 0.01))


@kernel(
    "flex",
    supports="maps factors bias gate mask key query act scale pairs causal projection",
    cost=_cost,
    limits=_limits,
    devices="cuda",
    probed="bias gate key query",
)
def flex(q: Tensor, k: Tensor, v: Tensor, terms: Terms, dropout: float = 0.0) -> Tensor:
    """O(b h (n + m) d) memory, and O(b h n r) for vectors of r rows; listed pairs are kept by blocks of 128 x 128.

    Blocks of pairs that do not attend are skipped. Scores are computed in float32. The first call with any terms and
    sizes is compiled, which takes seconds; give batches few sizes.

    Raises:
        StructPEError: attention dropout is asked for, or deterministic algorithms, with a gradient.
    """
    if dropout:
        wrong = f"kernel 'flex' has no dropout of attention weights, and {dropout} is asked for"
        raise StructPEError(f"{wrong}; set attention dropout to 0, or use kernel 'tiled'")
    if torch.are_deterministic_algorithms_enabled() and torch.is_grad_enabled():
        wrong = "kernel 'flex' is not deterministic with gradients, and deterministic algorithms are asked for"
        raise StructPEError(f"{wrong}; use kernel 'tiled'")
    return _computed(_compiled(), q, k, v, terms)


def eager(q: Tensor, k: Tensor, v: Tensor, terms: Terms) -> Tensor:
    """The kernel ``flex`` without compilation, on any device and with (b, h, n, m) scores, for tests.

    Raises:
        NotImplementedError: a gradient is asked for on a CPU; FlexAttention has none there.
    """
    from torch.nn.attention.flex_attention import flex_attention

    return _computed(flex_attention, q, k, v, terms)


def modifications(q: Tensor, k: Tensor, terms: Terms, captured: bool = False) -> tuple[Score | None, Masks | None]:
    """The ``score_mod`` of terms, and their ``mask_mod`` with the blocks that it leaves; None if not needed.

    Args:
        q: (b, h, n, d) after the maps.
        k: (b, h, m, d) after the maps, or the mixtures of keys.
        terms: without maps, projection and fields that the kernel does not support.
        captured: whether factors are part of ``score_mod``; otherwise they are part of longer heads.
    """
    scale = terms.scale / math.sqrt(q.shape[-1])
    shape = (q.shape[0], q.shape[1], q.shape[2], k.shape[2])
    return score_of(q, k, terms, scale, captured), masks_of(terms, shape, BLOCK, q.device)


def block_mask(masks: Masks, n: int, m: int, size: int = BLOCK) -> Any:
    """The ``BlockMask`` of n queries and m keys."""
    from torch.nn.attention.flex_attention import BlockMask

    partly, wholly = (_ordered(each) for each in (masks.some & ~masks.whole, masks.whole))
    return BlockMask.from_kv_blocks(*partly, *wholly, BLOCK_SIZE=size, mask_mod=masks.mod, seq_lengths=(n, m))


def _computed(attention: Callable[..., Any], q: Tensor, k: Tensor, v: Tensor, terms: Terms) -> Tensor:
    """Attention by FlexAttention, compiled or not."""
    for change in terms.maps:
        q, k = change(q, k)
    k, v, terms = mixed(k, v, terms)
    n, m, d = q.shape[2], k.shape[2], v.shape[-1]
    if not (q.numel() and k.numel()):
        return v.new_zeros(*q.shape[:3], d)
    captured = bool(terms.gate) or terms.act is not None
    score_mod, masks = modifications(q, k, terms, captured)
    scale = terms.scale / math.sqrt(q.shape[-1])
    if terms.factors and not captured:
        q = torch.cat([scale * q, *(x.left.to(q.dtype).expand(*q.shape[:3], -1) for x in terms.factors)], -1)
        k = torch.cat([k, *(x.right.to(k.dtype).expand(*k.shape[:3], -1) for x in terms.factors)], -1)
        scale = 1.0
    q, k, v = (functional.pad(x, (0, padded_width(x.shape[-1]) - x.shape[-1])) for x in (q, k, v))
    blocks = None if masks is None else block_mask(masks, n, m)
    options = kernel_options(terms, q.dtype, captured)
    out: Tensor = attention(q, k, v, score_mod=score_mod, block_mask=blocks, scale=scale, kernel_options=options)
    return out[..., :d]


def kernel_options(terms: Terms, dtype: torch.dtype, captured: bool = False) -> dict[str, int] | None:
    """Options with which the kernel of a GPU compiles; None for PyTorch's own.

    The kernel prefetches the tables that a score reads, each into its own shared memory. In half precision three of
    them do not fit into that of an H200, so from two on prefetching is switched off.

    Args:
        terms: what changes scores.
        dtype: of the queries.
        captured: whether factors are part of ``score_mod``.
    """
    tables = sum(len(getattr(terms, name)) for name in ("bias", "gate", "key", "query"))
    tables += 2 * sum(x.left.shape[-1] for x in terms.factors) if captured else 0
    return {"num_stages": 1} if dtype.itemsize == 2 and tables > 1 else None


def _ordered(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """The number of blocks of each row, and all blocks in the order in which these come first."""
    found = blocks.to(torch.int32)
    return found.sum(-1, dtype=torch.int32), found.argsort(dim=-1, descending=True, stable=True).to(torch.int32)


@cache
def _compiled() -> Callable[..., Any]:
    from torch.nn.attention.flex_attention import flex_attention

    # fullgraph, since code that is not compiled would silently write all scores. Not dynamic: for varying sizes PyTorch
    # 2.13 makes wrong code on a CPU if captured tensors share them.
    compiled = torch.compile(flex_attention, fullgraph=True, dynamic=False)

    def attention(*given: Any, **named: Any) -> Any:
        with torch._dynamo.config.patch(recompile_limit=_FORMS):
            return compiled(*given, **named)

    return attention


_FORMS = 64
"""The largest number of forms and sizes that are compiled; PyTorch raises an error beyond it."""
