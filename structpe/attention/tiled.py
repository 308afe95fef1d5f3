"""Attention in tiles: any trainable term of pairs, at about the cost of attention without one, on any device.

A tile is a block of queries of a few heads of one structure, or of all of several small structures, with all keys that
these queries can see. Its scores fit into the processor's cache, where several passes over them are cheap.

Scores are computed tile by tile, forward and again backward, and no tensor (b, h, n, m) is stored. PyTorch's fused
kernel would read a bias from such a tensor, and is not used at all if the bias needs a gradient.

Shapes: g structures, w heads, c queries, u keys of a tile; d width of a head; r rows that a structure uses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from structpe.attention.attend import Call, kernel
from structpe.attention.gather import GATHERED, gather_scalars, may_forbid, mixed, without_lists
from structpe.dropout import noise
from structpe.terms import Lookup, Terms, Toeplitz

__all__ = ["Quantity", "Tile", "TileIndex", "TilePlan", "Work", "by_index", "pick", "sum_by_row", "tiled", "tiles"]

_MOST_ROWS = 64
"""Up to this many rows, a product with a matrix of zeros and ones sums faster than ``scatter_add``."""


@dataclass(frozen=True, eq=False)
class Tile:
    """A block of scores: ranges of structures, heads and queries, and a number of keys.

    Attributes:
        structures, heads, queries: first, and index after the last. A tile of several structures has all heads.
        keys: u, number of keys, from the first on.
        flat: first and end of the structures and heads among all b h.
        number: of the tile, from 0 on.
    """

    structures: tuple[int, int]
    heads: tuple[int, int]
    queries: tuple[int, int]
    keys: int
    flat: tuple[int, int]
    number: int = 0

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """g, w, c, u."""
        (a, b), (c, d), (e, f) = self.structures, self.heads, self.queries
        return b - a, d - c, f - e, self.keys

    def of(self, x: Tensor, *axes: tuple[int, int]) -> Tensor:
        """The part of x (b or 1, h or 1, ...) for the structures and heads, and for these ranges of further axes."""
        ranges = (self.structures, self.heads, *axes)
        return x[tuple(slice(*at) if size > 1 else slice(None) for size, at in zip(x.shape, ranges, strict=False))]

    def of_queries(self, x: Tensor) -> Tensor:
        """(g w, c, d) of x (b h, n, d)."""
        return x[self.flat[0] : self.flat[1], self.queries[0] : self.queries[1]]

    def of_keys(self, x: Tensor) -> Tensor:
        """(g w, u, d) of x (b h, m, d)."""
        return x[self.flat[0] : self.flat[1], : self.keys]


def tiles(shape: tuple[int, int, int, int], causal: bool, cells: int, queries: int) -> Iterator[Tile]:
    """Cut b structures, h heads, n queries and m keys into tiles; queries without a key are in none.

    Tiles with the same pairs and different heads follow each other: their index is read once for all heads.

    Args:
        shape: b, h, n, m.
        causal: whether the i-th last query sees the i-th last key and those before it only.
        cells: number of scores of a tile, about.
        queries: number of queries of a tile, at most.
    """
    b, h, n, m = shape
    if not b * h * n * m:
        return
    queries = min(n, queries, max(32, 4 * cells // m))
    several = max(1, cells // (h * n * m)) if queries == n else 1  # structures of one tile
    heads = h if several > 1 else max(1, min(h, cells // (queries * m)))
    number = 0
    for first, query, head in product(range(0, b, several), range(0, n, queries), range(0, h, heads)):
        last, stop, end = min(first + several, b), min(query + queries, n), min(head + heads, h)
        keys = min(m, stop + m - n) if causal else m
        if keys > 0:
            flat = (first * h + head, (last - 1) * h + end)
            yield Tile((first, last), (head, end), (query, stop), keys, flat, number)
            number += 1


class TileIndex:
    """The index of the pairs of a tile in int64, as ``gather`` needs it; cached while tiles have the same pairs."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Any, Tensor, Tensor]] = {}
        self._buffers: dict[str, Tensor] = {}

    def of(self, tile: Tile, index: Tensor | Toeplitz) -> Tensor:
        """(g or 1, c, u); valid until the next call for the same index and another tile."""
        which = tile.structures if index.shape[0] > 1 else (0, 1), tile.queries, tile.keys
        found = self._kept.get(id(index))
        if found is not None and found[0] == which:
            return found[1]
        part = _part(tile, index)
        part = part.dense() if isinstance(part, Toeplitz) else part
        memory = found[2] if found is not None else part.new_empty(0, dtype=torch.int64)
        if memory.numel() < part.numel():
            memory = part.new_empty(part.numel(), dtype=torch.int64)
        here = memory[: part.numel()].view(part.shape).copy_(part)
        self._kept[id(index)] = which, here, memory
        return here

    def pick(self, tile: Tile, rows: Tensor, index: Tensor | Toeplitz, out: Tensor) -> Tensor:
        """out_gwcu = rows_gw[c] at the index of the pair; rows are (g or 1, w or 1, r), or (..., c, r) by query."""
        if not isinstance(index, Toeplitz) or index.shape[0] > 1:
            return pick(rows, self.of(tile, index), out)
        # One value per diagonal, picked into a matrix whose rows are shifted views: cheaper than one index per pair.
        at, first, last = self._runs(tile, index)
        g, w, c, u = out.shape
        rows = rows.expand(g, w, -1)[:, :, None] if rows.ndim == 3 else rows
        wide = self._memory("wide", (g, w, c, c + u - 1), out)
        wide[..., :first] = rows[..., at[:1]]
        wide[..., first:last] = rows.index_select(-1, at[first:last])
        wide[..., last:] = rows[..., at[-1:]]
        return out.copy_(_diagonals(wide, u))

    def sums(self, tile: Tile, x: Tensor, index: Tensor | Toeplitz, rows: int, by_query: bool) -> Tensor:
        """The sums of x (g, w, c, u) over the pairs of each row: (g, w, r), or (g, w, c, r) for each query."""
        if not isinstance(index, Toeplitz) or index.shape[0] > 1:
            return sum_by_row(x, self.of(tile, index), rows, by_query)
        at, first, last = self._runs(tile, index)
        g, w, c, u = x.shape
        wide = self._memory("zeros", (g, w, c, c + u - 1), x, zero=True)
        _diagonals(wide, u).copy_(x)
        wide = wide if by_query else wide.sum(2, keepdim=True)
        between = wide[..., first:last]
        if rows > _MOST_ROWS and x.device.type == "cpu":
            sums = x.new_zeros(*between.shape[:3], rows).scatter_add_(-1, at[first:last].expand_as(between), between)
        else:
            sums = between @ torch.nn.functional.one_hot(at[first:last], rows).to(x.dtype)
        sums[..., at[:1]] += wide[..., :first].sum(-1, keepdim=True)
        sums[..., at[-1:]] += wide[..., last:].sum(-1, keepdim=True)
        return sums if by_query else sums.squeeze(2)

    def _runs(self, tile: Tile, index: Toeplitz) -> tuple[Tensor, int, int]:
        """(c + u - 1,) the diagonals of a tile; the ends of the first run of values and of all but the last.

        Clipped offsets begin and end with long runs of equal values, which are read and summed at once.
        """
        at = index.block(*tile.queries, tile.keys).diagonals[0].long()
        if at.device.type != "cpu":  # looking for runs would synchronise
            return at, 0, len(at)
        changes = (at[1:] != at[:-1]).nonzero()
        return (at, int(changes[0]) + 1, int(changes[-1]) + 1) if len(changes) else (at, len(at), len(at))

    def _memory(self, name: str, shape: tuple[int, ...], like: Tensor, zero: bool = False) -> Tensor:
        """The same memory for each tile of a shape; zeros are written once, since all tiles write the same places."""
        found = self._buffers.get(name)
        if found is None or found.shape != shape:
            found = self._buffers[name] = like.new_zeros(shape) if zero else like.new_empty(shape)
        return found


def _diagonals(wide: Tensor, u: int) -> Tensor:
    """(g, w, c, u) a view of (g, w, c, c + u - 1), each row shifted by one: columns of the latter are its diagonals."""
    g, w, c, width = wide.shape
    return wide.as_strided((g, w, c, u), (*wide.stride()[:2], width - 1, 1), c - 1)


def _part(tile: Tile, index: Tensor | Toeplitz) -> Tensor | Toeplitz:
    """The part of an index for the pairs of a tile."""
    at = slice(*tile.structures) if index.shape[0] > 1 else slice(None)
    if isinstance(index, Toeplitz):
        return Toeplitz(index.diagonals[at], index.n, index.m).block(*tile.queries, tile.keys)
    return index[at, slice(*tile.queries), : tile.keys]


@dataclass(eq=False)
class Quantity:
    """A tensor of the terms that tiles read, and its gradient.

    Attributes:
        field: of ``Terms``; ``left`` and ``right`` for the two parts of a factor.
        x: lookups: (b or 1, h or 1, r) or (b or 1, h or 1, r, d), the rows of each structure; otherwise
            (b or 1, h or 1, n or 1, m or 1), or the part of a factor.
        index: of the pairs; None for a tensor.
        grad: of ``x``; None if it is not needed.
        sums: (b h, n, r) of values: the weights of each query, summed by row; None if they are not kept.
    """

    field: str
    x: Tensor
    index: Tensor | Toeplitz | None = None
    grad: Tensor | None = None
    sums: Tensor | None = None

    @property
    def pairs(self) -> tuple[int, int]:
        """Equal for lookups with the same pairs and number of rows, which can be added before they are gathered."""
        return id(self.index), self.x.shape[2]

    def rows(self, tile: Tile) -> Tensor:
        """The rows of a lookup: (g or 1, w or 1, r) or (g or 1, w or 1, r, d)."""
        return tile.of(self.x)

    def add(self, tile: Tile, grad: Tensor, *axes: tuple[int, int]) -> None:
        """Add to the gradient of the part that :meth:`Tile.of` returns; axes of size 1 are summed."""
        if self.grad is not None:
            part = tile.of(self.grad, *axes)
            part.add_(grad.sum_to_size(part.shape))


def by_index(several: list[Quantity]) -> list[list[Quantity]]:
    """Group quantities of the same pairs, whose rows can be added before they are gathered."""
    groups: dict[tuple[int, int], list[Quantity]] = {}
    for each in several:
        groups.setdefault(each.pairs, []).append(each)
    return list(groups.values())


def pick(rows: Tensor, places: Tensor, out: Tensor) -> Tensor:
    """out_gwcu = rows_gw[c] at places_gcu; rows are (g or 1, w or 1, r), or (g or 1, w or 1, c, r) for each query."""
    g, w, c, u = out.shape
    if rows.ndim == 3:
        at = places.reshape(len(places), 1, c * u).expand(g, w, -1)
        torch.gather(rows.expand(g, w, -1), -1, at, out=out.view(g, w, c * u))
    else:
        torch.gather(rows.expand(g, w, c, -1), -1, places[:, None].expand(g, w, c, u), out=out)
    return out


def sum_by_row(x: Tensor, places: Tensor, rows: int, by_query: bool) -> Tensor:
    """The sums of x (g, w, c, u) over the pairs of each row: (g, w, r), or (g, w, c, r) for each query.

    The order of the sums is fixed: on a GPU, where that of ``scatter_add`` varies, they are matrix products.
    """
    g, w, c, u = x.shape
    if x.device.type != "cpu":
        return sum_by_product(x, places, rows, by_query)
    if by_query:
        return x.new_zeros(g, w, c, rows).scatter_add_(-1, places[:, None].expand(g, w, c, u), x)
    at = places.reshape(len(places), 1, c * u).expand(g, w, -1)
    return x.new_zeros(g, w, rows).scatter_add_(-1, at, x.view(g, w, c * u))


def sum_by_product(x: Tensor, places: Tensor, rows: int, by_query: bool) -> Tensor:
    """As :func:`sum_by_row`, by products with a matrix of zeros and ones (c, u, r)."""
    chosen = (places[..., None] == torch.arange(rows, device=x.device)).to(x.dtype)  # (g or 1, c, u, r)
    alike = len(chosen) == 1  # products that broadcast would copy it for each structure
    sums = "gwcr" if by_query else "gwr"
    made: Tensor = torch.einsum(f"gwcu,{'' if alike else 'g'}cur->{sums}", x, chosen[0] if alike else chosen)
    return made


CELLS = {"cpu": 1 << 18}
"""The largest number of scores of a tile, whose buffers then fit into the caches of a processor. 2^24 elsewhere."""

QUERIES = 256
"""The largest number of queries of a tile."""


@dataclass
class TilePlan:
    """The settings of a call.

    Attributes:
        kinds: per tensor its field of ``Terms``, and the index of a lookup.
        masks: bool, (b or 1, h or 1, n or 1, m or 1).
        scale: of the products.
        act: as in ``Terms``.
        causal: likewise.
        dropout: probability of dropping a weight.
        seed: of dropout.
    """

    kinds: list[tuple[str, Tensor | Toeplitz | None]]
    masks: tuple[Tensor, ...]
    scale: float
    act: Callable[[Tensor], Tensor] | None
    causal: bool
    dropout: float
    seed: int = 0


@dataclass
class _Scored:
    """A tile between its scores and its weights.

    Attributes:
        q, k: (g w, c, d) and (g w, u, d) its queries and keys.
        weights: (g, w, c, u) after the softmax, before dropout.
        noise: factors of dropout; None without dropout.
        raw: scores before act and gate; None if there is neither.
        gates: (g, w, c, u) each.
    """

    q: Tensor
    k: Tensor
    weights: Tensor
    noise: Tensor | None = None
    raw: Tensor | None = None
    gates: list[Tensor] = field(default_factory=list)


class Work:
    """One pass over all tiles, with its buffers."""

    def __init__(self, plan: TilePlan, q: Tensor, k: Tensor, v: Tensor, tensors: Any, wanted: Any = ()) -> None:
        self.plan, self.like, self.shape = plan, q, (*q.shape[:3], k.shape[2])
        self.q, self.k, self.v = (x.flatten(0, 1) for x in (q, k, v))
        needs = wanted or [False] * len(tensors)
        self.quantities = [
            Quantity(name, x, index, torch.zeros_like(x) if needed else None)
            for (name, index), x, needed in zip(plan.kinds, tensors, needs, strict=True)
        ]
        self.of: dict[str, list[Quantity]] = {name: [] for name in _FIELDS}
        for each in self.quantities:
            is_tensor = each.field == "bias" and each.index is None
            self.of["bias tensor" if is_tensor else each.field].append(each)
        self.bent = plan.act is not None or bool(self.of["gate"])
        biases = self.of["bias"] + self.of["bias tensor"]
        self.may_forbid = bool(plan.masks) or plan.causal or any(may_forbid(each.x) for each in biases)
        self.buffers: dict[str, Tensor] = {}
        self.places = TileIndex()

    def tiles(self) -> Iterator[Tile]:
        """The tiles of the scores."""
        return tiles(self.shape, self.plan.causal, CELLS.get(self.like.device.type, 1 << 24), QUERIES)

    def buffer(self, name: str, tile: Tile) -> Tensor:
        """(g, w, c, u), uninitialised; the same memory for each tile."""
        shape = tile.shape
        size = math.prod(shape)
        if name not in self.buffers or self.buffers[name].numel() < size:
            self.buffers[name] = self.like.new_empty(size)
        return self.buffers[name][:size].view(shape)

    def mix(self, tile: Tile, out: Tensor) -> None:
        """Write the output (g w, c, d) of the queries of a tile."""
        scored = self.score(tile)
        weights = scored.weights if scored.noise is None else scored.weights.mul_(scored.noise)
        v = tile.of_keys(self.v)
        mixed = torch.bmm(weights.flatten(0, 1), v)
        for x in self.of["value"]:
            sums = self.places.sums(tile, weights, _index(x), x.x.shape[2], True).flatten(0, 1)
            mixed.baddbmm_(sums, _vectors(x, tile))
            if x.sums is not None:
                tile.of_queries(x.sums).copy_(sums)
        out.copy_(mixed)

    def keep_sums(self) -> list[Tensor]:
        """Let :meth:`mix` store the sums of weights by row for the gradient, (b h, n, r), if r is at most d."""
        for x in self.of["value"]:
            if x.x.shape[2] <= self.v.shape[2]:
                x.sums = self.v.new_zeros(*self.q.shape[:2], x.x.shape[2])
        return [x.sums for x in self.of["value"] if x.sums is not None]

    def read_sums(self, kept: list[Tensor]) -> None:
        """Give :meth:`back` the sums that :meth:`keep_sums` returned."""
        small = [x for x in self.of["value"] if x.x.shape[2] <= self.v.shape[2]]
        for x, sums in zip(small, kept, strict=True):
            x.sums = sums

    def score(self, tile: Tile) -> _Scored:
        """The weights of a tile."""
        s = self.buffer("scores", tile)
        scored = _Scored(tile.of_queries(self.q), tile.of_keys(self.k), s)
        if not self.bent:
            self.products(tile, scored, s, self.of["bias"] + self.of["key"])
        else:
            self.bend(tile, scored, s)
        for left, right in zip(self.of["left"], self.of["right"], strict=True):
            of_left, of_right = _factor(tile, left, right)
            s.add_(of_left @ of_right.transpose(-1, -2))
        for x in self.of["bias tensor"]:
            s.add_(tile.of(x.x, tile.queries, (0, tile.keys)))
        self.forbid(tile, s)
        self.softmax(s)
        if self.plan.dropout:
            # A seed per tile, so the backward pass draws the same noise instead of storing it.
            generator = torch.Generator(s.device).manual_seed(self.plan.seed + tile.number)
            scored.noise = noise(s, self.plan.dropout, generator)
        return scored

    def bend(self, tile: Tile, scored: _Scored, s: Tensor) -> None:
        """Write gate act(score) + biases, and store the parts that its gradient needs."""
        scored.raw = raw = self.buffer("raw", tile)
        self.products(tile, scored, raw, self.of["key"])
        s.copy_(raw if self.plan.act is None else self.plan.act(raw))
        for i, x in enumerate(self.of["gate"]):
            gate = self.buffer(f"gate{i}", tile)
            scored.gates.append(
                tile.of(x.x, tile.queries, (0, tile.keys))
                if x.index is None
                else self.places.pick(tile, x.rows(tile), x.index, gate)
            )
            s.mul_(scored.gates[-1])
        for group in by_index(self.of["bias"]):
            s.add_(self.gathered(tile, scored, group, self.buffer("more", tile)))

    def products(self, tile: Tile, scored: _Scored, s: Tensor, gathered: list[Quantity]) -> None:
        """Write the products of queries and keys with each other and with vectors of pairs, and biases."""
        groups, k, scale = by_index(gathered), scored.k, self.plan.scale
        for i, group in enumerate(groups):
            each = self.gathered(tile, scored, group, self.buffer("more", tile) if i else s)
            if i:
                s.add_(each)
        _add_product(s, scored.q, k.transpose(1, 2), scale, float(bool(groups)))
        for x in self.of["query"]:
            rows = torch.bmm(k, _vectors(x, tile).transpose(1, 2)).mul_(scale).view(*tile.shape[:2], -1)  # (g, w, u r)
            s.add_(pick(rows, self.of_pairs(tile, x), self.buffer("more", tile)))
        for x in self.of["product"]:
            places, rows = self.places.of(tile, _index(x))[:, None], _vectors(x, tile)
            for r in range(rows.shape[1]):
                met = torch.bmm(scored.q * rows[:, r, None], k.transpose(1, 2)).view_as(s)
                s.add_(met.mul_(places == r), alpha=scale)

    def gathered(self, tile: Tile, scored: _Scored, group: list[Quantity], out: Tensor) -> Tensor:
        """Write the sum of biases, and of queries with vectors at keys, for lookups of the same pairs."""
        biases = [x.rows(tile) for x in group if x.field == "bias"]  # (g or 1, w or 1, r) each
        met = [self.met(tile, scored, x) for x in group if x.field == "key"]
        if met:
            rows = met[0]
            for more in (*met[1:], *(bias[:, :, None] for bias in biases)):
                rows.add_(more)
        else:
            rows = sum(biases[1:], biases[0])
        return self.places.pick(tile, rows, _index(group[0]), out)

    def met(self, tile: Tile, scored: _Scored, x: Quantity) -> Tensor:
        """(g, w, c, r) the products of queries and vectors at keys, of each row."""
        products = torch.bmm(scored.q, _vectors(x, tile).transpose(1, 2)).mul_(self.plan.scale)
        return products.view(*tile.shape[:3], -1)

    def with_keys(self, bias: Quantity) -> bool:
        """Whether a bias is gathered, and its gradient summed, together with vectors at keys of the same pairs."""
        return not self.bent and any(bias.pairs == x.pairs for x in self.of["key"])

    def of_pairs(self, tile: Tile, x: Quantity) -> Tensor:
        """(g or 1, c, u) the place of each pair among the (u, r) products of keys and rows."""
        return self.places.of(tile, _index(x)) + torch.arange(tile.keys, device=x.x.device) * x.x.shape[2]

    def forbid(self, tile: Tile, s: Tensor) -> None:
        """Write -inf where a mask forbids."""
        for mask in self.plan.masks:
            s.masked_fill_(~tile.of(mask, tile.queries, (0, tile.keys)), -math.inf)
        if self.plan.causal:
            seen = self.shape[3] - self.shape[2] + tile.queries[0]  # keys that the first of these queries sees, less 1
            if seen < tile.keys - 1:
                allowed = torch.ones(tile.shape[2:], dtype=torch.bool, device=s.device).tril_(seen)
                s.masked_fill_(~allowed, -math.inf)

    def softmax(self, s: Tensor) -> None:
        """Turn scores into weights in place; zeros for a query that attends to nothing."""
        if not self.may_forbid:
            torch.softmax(s, -1, out=s)
            return
        nowhere = s.amax(-1, keepdim=True) == -math.inf
        s.masked_fill_(nowhere, 0.0)
        torch.softmax(s, -1, out=s)
        s.masked_fill_(nowhere, 0.0)

    def back(self, tile: Tile, grad: Tensor, of_q: Tensor, of_k: Tensor, of_v: Tensor) -> None:
        """Add the gradients of one tile."""
        scored, go, v = self.score(tile), tile.of_queries(grad), tile.of_keys(self.v)
        dropped = scored.weights if scored.noise is None else scored.weights * scored.noise
        _add_product(tile.of_keys(of_v), dropped.transpose(2, 3), go)
        ds = self.buffer("grad", tile)
        for i, x in enumerate(self.of["value"]):
            rows = _vectors(x, tile)
            if x.sums is None:
                sums = self.places.sums(tile, dropped, _index(x), rows.shape[1], True).flatten(0, 1)
            else:
                sums = tile.of_queries(x.sums)
            x.add(tile, torch.bmm(sums.transpose(1, 2), go).view(*tile.shape[:2], *rows.shape[1:]))
            met = torch.bmm(go, rows.transpose(1, 2)).view(*tile.shape[:3], -1)
            into = self.places.pick(tile, met, _index(x), self.buffer("more", tile) if i else ds)
            if i:
                ds.add_(into)
        _add_product(ds, go, v.transpose(1, 2), 1.0, float(bool(self.of["value"])))
        if scored.noise is not None:
            ds.mul_(scored.noise)
        torch.ops.aten._softmax_backward_data.out(ds, scored.weights, -1, ds.dtype, grad_input=ds)
        self.back_of_biases(tile, ds)
        self.back_of_scores(tile, scored, self.unbent(tile, scored, ds), tile.of_queries(of_q), tile.of_keys(of_k))

    def back_of_biases(self, tile: Tile, ds: Tensor) -> None:
        """Gradients of factors and biases, without those that are gathered together with vectors at keys."""
        for left, right in zip(self.of["left"], self.of["right"], strict=True):
            of_left, of_right = _factor(tile, left, right)
            left.add(tile, ds @ of_right, tile.queries)
            right.add(tile, ds.transpose(-1, -2) @ of_left, (0, tile.keys))
        for x in self.of["bias tensor"]:
            x.add(tile, ds, tile.queries, (0, tile.keys))
        wanted = [each for each in self.of["bias"] if each.grad is not None and not self.with_keys(each)]
        for group in by_index(wanted):
            sums = self.places.sums(tile, ds, _index(group[0]), group[0].x.shape[2], False)
            for x in group:
                x.add(tile, sums)

    def unbent(self, tile: Tile, scored: _Scored, ds: Tensor) -> Tensor:
        """The gradient of the scores before act and gate; adds the gradients of the gates."""
        if scored.raw is None:
            return ds
        with torch.enable_grad():
            raw = scored.raw.detach().requires_grad_()
            acted = raw if self.plan.act is None else self.plan.act(raw)
        for i, x in enumerate(self.of["gate"]):
            if x.grad is None:
                continue
            rest = ds * acted.detach()
            for j, gate in enumerate(scored.gates):
                rest = rest if i == j else rest * gate
            if x.index is None:
                x.add(tile, rest, tile.queries, (0, tile.keys))
            else:
                x.add(tile, self.places.sums(tile, rest, x.index, x.x.shape[2], False))
        for gate in scored.gates:
            ds.mul_(gate)
        return ds if self.plan.act is None else torch.autograd.grad(acted, raw, ds)[0].contiguous()

    def back_of_scores(self, tile: Tile, scored: _Scored, ds: Tensor, to_q: Tensor, to_k: Tensor) -> None:
        """Gradients of queries and keys, and of vectors of pairs that meet them."""
        q, k, scale, (g, w, _, _) = scored.q, scored.k, self.plan.scale, tile.shape
        _add_product(to_q, ds, k, scale)
        _add_product(to_k, ds.transpose(2, 3), q, scale)
        for group in by_index(self.of["key"]):
            sums = self.places.sums(tile, ds, _index(group[0]), group[0].x.shape[2], True)
            for x in group:
                _add_product(to_q, sums, _vectors(x, tile), scale)
                x.add(tile, torch.bmm(sums.flatten(0, 1).transpose(1, 2), q).mul_(scale).view(g, w, -1, q.shape[2]))
            for x in self.of["bias"]:
                if x.pairs == group[0].pairs and self.with_keys(x):
                    x.add(tile, sums.sum(2))
        for x in self.of["query"]:
            rows = _vectors(x, tile)
            sums = sum_by_row(ds, self.of_pairs(tile, x), tile.keys * rows.shape[1], False).view(g, w, tile.keys, -1)
            _add_product(to_k, sums, rows, scale)
            x.add(tile, torch.bmm(sums.flatten(0, 1).transpose(1, 2), k).mul_(scale).view(g, w, -1, k.shape[2]))
        for x in self.of["product"]:
            self.back_of_product(tile, x, scored, ds, to_q, to_k)

    def back_of_product(self, tile: Tile, x: Quantity, scored: _Scored, ds: Tensor, to_q: Tensor, to_k: Tensor) -> None:
        """The same for vectors at products, row by row."""
        q, k, scale, rows, grads = scored.q, scored.k, self.plan.scale, _vectors(x, tile), []
        places = self.places.of(tile, _index(x))[:, None]
        for r in range(rows.shape[1]):
            mine, row = (ds * (places == r)).flatten(0, 1), rows[:, r, None]
            met = torch.bmm(mine, k)
            to_q.add_(met * row, alpha=scale)
            to_k.add_(torch.bmm(mine.transpose(1, 2), q * row), alpha=scale)
            grads.append((met * q).sum(1))
        x.add(tile, scale * torch.stack(grads, dim=1).view(*tile.shape[:2], *rows.shape[1:]))


_FIELDS = ("key", "query", "product", "gate", "bias", "bias tensor", "value", "left", "right")


def _index(x: Quantity) -> Tensor | Toeplitz:
    assert x.index is not None  # only lookups have vectors
    return x.index


def _vectors(x: Quantity, tile: Tile) -> Tensor:
    """(g w, r, d) the rows of a lookup of vectors."""
    return x.rows(tile).expand(*tile.shape[:2], -1, -1).flatten(0, 1)


def _factor(tile: Tile, left: Quantity, right: Quantity) -> tuple[Tensor, Tensor]:
    """(g or 1, w or 1, c, r) and (g or 1, w or 1, u, r): both parts of a factor."""
    of_left, of_right = tile.of(left.x, tile.queries), tile.of(right.x, (0, tile.keys))
    _, _, c, u = tile.shape
    return of_left.expand(-1, -1, c, -1), of_right.expand(-1, -1, u, -1)


def _add_product(out: Tensor, a: Tensor, b: Tensor, alpha: float = 1.0, beta: float = 1.0) -> None:
    """Out = beta out + alpha a @ b, in place. Each is (g w, ...), or (g, w, ...) and contiguous."""
    out, a, b = (x.flatten(0, 1) if x.ndim == 4 else x for x in (out, a, b))
    torch.baddbmm(out, a, b, alpha=alpha, beta=beta, out=out)


def _limits(call: Call) -> str | None:
    if call.traced:
        return "is not traced by torch.compile"
    if call.dtype not in (torch.float32, torch.float64):
        return f"computes in float32, and this is {call.dtype}"
    return None


def _cost(call: Call) -> float:
    b, h, _, m, d = call.shape
    by_row = 300.0 if "product" in call.used else 0.0  # a product of matrices for each row
    by_row += 0.5 * d * call.rows / max(m, 1)  # a product of each query and each row
    fixed = 380_000 + 2_000 * b * h
    return call.time(fixed, 6.5 + by_row, 0.24, gathered=(300_000, 3.0), gpu=(1e7, 0.2, 0.05))


@kernel(
    "tiled",
    supports="maps factors bias gate mask key query product value act scale causal projection",
    cost=_cost,
    limits=_limits,
)
def tiled(q: Tensor, k: Tensor, v: Tensor, terms: Terms, dropout: float = 0.0) -> Tensor:
    """O(b h (n + m) d) memory and, for tables, O(b h n r) for r rows in use; no tensor (b, h, n, m).

    Gradients of tables are summed in a fixed order. Half precision is computed in float32. Dropout is drawn tile by
    tile from a seed, and drawn again in the backward pass.

    Raises:
        RuntimeError: the gradient of a gradient is asked for.
    """
    for change in terms.maps:
        q, k = change(q, k)
    k, v, terms = mixed(k, v, terms)
    terms = without_lists(terms, q.shape[0], q.shape[2], k.shape[2])
    plan, tensors = _plan(q, k, terms, dropout)
    wide = torch.promote_types(q.dtype, torch.float32)
    out: Tensor = _Tiled.apply(  # type: ignore[no-untyped-call]
        plan, *(x.to(wide).contiguous() for x in (q, k, v)), *(x.to(wide) for x in tensors)
    )
    return out.to(v.dtype)


def _plan(q: Tensor, k: Tensor, terms: Terms, dropout: float) -> tuple[TilePlan, list[Tensor]]:
    """The plan of a call, and its tensors that may need a gradient, with the rows of each structure for tables."""
    kinds: list[tuple[str, Tensor | Toeplitz | None]] = []
    tensors: list[Tensor] = []
    for name in ("key", "query", "product", "gate", "bias", "value"):
        for term in getattr(terms, name):
            x = gather_scalars(term) if name == "bias" and _once(term, q) else term
            kinds.append((name, x.index if isinstance(x, Lookup) else None))
            tensors.append(x.cached("local", x.local).movedim(2, 1) if isinstance(x, Lookup) else x)
    for factor in terms.factors:
        kinds += [("left", None), ("right", None)]
        tensors += [factor.left, factor.right]
    scale = terms.scale / math.sqrt(q.shape[-1])
    seed = int(torch.randint(1 << 62, ())) if dropout else 0
    return TilePlan(kinds, terms.mask, scale, terms.act, terms.causal, dropout, seed), tensors


def _once(bias: Lookup | Tensor, q: Tensor) -> bool:
    """Whether to gather a bias for all tiles at once: structures or layers share it, and it is not large."""
    if not isinstance(bias, Lookup):
        return False
    structures = max(len(bias.rows), bias.index.shape[0])
    size = structures * math.prod(bias.index.shape[1:]) * bias.table.shape[1]
    return (bias.shared or structures < len(q)) and size <= GATHERED


class _Tiled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, plan: TilePlan, q: Tensor, k: Tensor, v: Tensor, *tensors: Tensor) -> Tensor:
        ctx.plan = plan
        work = Work(plan, q, k, v, tensors)
        ctx.count = len(tensors)
        ctx.save_for_backward(q, k, v, *tensors, *(work.keep_sums() if any(ctx.needs_input_grad) else ()))
        out = q.new_zeros(*q.shape[:3], v.shape[-1])
        flat = out.flatten(0, 1)
        for tile in work.tiles():
            work.mix(tile, tile.of_queries(flat))
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, *rest = ctx.saved_tensors
        work = Work(ctx.plan, q, k, v, rest[: ctx.count], ctx.needs_input_grad[4:])
        work.read_sums(rest[ctx.count :])
        grads = [torch.zeros_like(x) for x in (q, k, v)]
        flat = grad.contiguous().flatten(0, 1)
        for tile in work.tiles():
            work.back(tile, flat, *(x.flatten(0, 1) for x in grads))
        return None, *grads, *(each.grad for each in work.quantities)
