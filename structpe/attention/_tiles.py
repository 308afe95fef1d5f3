"""Quantities of pairs on one tile of the scores at a time, and their gradients.

A tile is a block of queries of a few heads of one structure, or of all of several small structures, with all keys that
these queries can see. Its scores fit into the processor's cache, where several passes over them are cheap.

Shapes: g structures, w heads, c queries, u keys of a tile; d width of a head; r rows that a structure uses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import Tensor

from structpe.terms import Toeplitz

__all__ = ["Places", "Quantity", "Tile", "by_index", "pick", "sum_by_row", "tiles"]


_MOST_ROWS = 64
"""Up to this many rows, a product with a matrix of zeros and ones sums faster than ``scatter_add``."""


@dataclass(frozen=True, eq=False)
class Tile:
    """Which scores: structures, heads and queries from..to, and how many keys.

    Attributes:
        structures, heads, queries: first, and index after the last. More than one structure, and then all heads.
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

    Tiles with the same pairs and different heads follow each other, so that an index is read once for all heads.

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


class Places:
    """The index of the pairs of a tile in int64, as ``gather`` needs it; kept until other pairs follow."""

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
        """(c + u - 1,) the diagonals of a tile; where those equal to the first end, and those equal to the last begin.

        Clipped offsets begin and end with many equal ones, which are read and summed at once.
        """
        at = index.block(*tile.queries, tile.keys).diagonals[0].long()
        if at.device.type != "cpu":  # to look would synchronise
            return at, 0, len(at)
        changes = (at[1:] != at[:-1]).nonzero()
        return (at, int(changes[0]) + 1, int(changes[-1]) + 1) if len(changes) else (at, len(at), len(at))

    def _memory(self, name: str, shape: tuple[int, ...], like: Tensor, zero: bool = False) -> Tensor:
        """The same memory for each tile of a shape; zeros are written once, as all tiles write the same places."""
        found = self._buffers.get(name)
        if found is None or found.shape != shape:
            found = self._buffers[name] = like.new_zeros(shape) if zero else like.new_empty(shape)
        return found


def _diagonals(wide: Tensor, u: int) -> Tensor:
    """(g, w, c, u) a view of (g, w, c, c + u - 1), each row shifted by one, so that diagonals are columns."""
    g, w, c, width = wide.shape
    return wide.as_strided((g, w, c, u), (*wide.stride()[:2], width - 1, 1), c - 1)


def _part(tile: Tile, index: Tensor | Toeplitz) -> Tensor | Toeplitz:
    """The index of the pairs of a tile, as it is stored."""
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
        """Equal for lookups of the same pairs and with as many rows, which can be added before they are gathered."""
        return id(self.index), self.x.shape[2]

    def rows(self, tile: Tile) -> Tensor:
        """The rows of a lookup: (g or 1, w or 1, r) or (g or 1, w or 1, r, d)."""
        return tile.of(self.x)

    def add(self, tile: Tile, grad: Tensor, *axes: tuple[int, int]) -> None:
        """Add to the gradient of the part that :meth:`Tile.of` gives; sizes of 1 are summed."""
        if self.grad is not None:
            part = tile.of(self.grad, *axes)
            part.add_(grad.sum_to_size(part.shape))


def by_index(several: list[Quantity]) -> list[list[Quantity]]:
    """Group quantities of the same pairs: those whose rows can be added before they are gathered."""
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

    The order of the sums is fixed: on a GPU, where ``scatter_add`` has none, they are matrix products.
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
