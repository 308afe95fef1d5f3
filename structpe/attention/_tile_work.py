"""Attention on one tile of the scores after the other: its weights, its output and its gradients.

Shapes: g structures, w heads, c queries, u keys of a tile; d width of a head; r rows that a structure uses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from structpe.attention._tiles import Places, Quantity, Tile, by_index, pick, sum_by_row, tiles
from structpe.dropout import noise
from structpe.quantities import Toeplitz

__all__ = ["Plan", "Work"]

CELLS = {"cpu": 1 << 18}
"""Scores of a tile, whose buffers then fit into the caches of a processor. On other devices 2^24."""

QUERIES = 256
"""Queries of a tile, at most."""


@dataclass
class Plan:
    """What a call computes besides its tensors.

    Attributes:
        kinds: per tensor its field of ``Terms``, and the index of a lookup.
        masks: bool, (b or 1, h or 1, n or 1, m or 1).
        scale: of the products.
        act: as in ``Terms``.
        causal: likewise.
        dropout: probability of dropping a weight.
        seed: of what is dropped.
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
        noise: what dropout multiplies them by; None without.
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

    def __init__(self, plan: Plan, q: Tensor, k: Tensor, v: Tensor, tensors: Any, wanted: Any = ()) -> None:
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
        self.may_forbid = bool(plan.masks) or plan.causal or any(_infinite(each.x) for each in biases)
        self.buffers: dict[str, Tensor] = {}
        self.places = Places()

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
        """Have :meth:`mix` keep the sums of weights by row that the gradient reads, (b h, n, r), if r is at most d."""
        for x in self.of["value"]:
            if x.x.shape[2] <= self.v.shape[2]:
                x.sums = self.v.new_zeros(*self.q.shape[:2], x.x.shape[2])
        return [x.sums for x in self.of["value"] if x.sums is not None]

    def read_sums(self, kept: list[Tensor]) -> None:
        """Give :meth:`back` what :meth:`keep_sums` returned."""
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
            generator = torch.Generator(s.device).manual_seed(self.plan.seed + tile.number)
            scored.noise = noise(s, self.plan.dropout, generator)
        return scored

    def bend(self, tile: Tile, scored: _Scored, s: Tensor) -> None:
        """Write gate act(score) + biases, and keep what its gradient needs."""
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
        """Write what queries and keys have with each other and with vectors of pairs, and biases."""
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
        """Whether a bias is gathered together with vectors at keys of the same pairs, and its gradient summed so."""
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


def _infinite(x: Tensor) -> bool:
    """Whether a bias may be -inf; True if checking would synchronise with a GPU."""
    return x.device.type != "cpu" or (x.numel() > 0 and bool(x.detach().amin() == -math.inf))


def _add_product(out: Tensor, a: Tensor, b: Tensor, alpha: float = 1.0, beta: float = 1.0) -> None:
    """Out = beta out + alpha a @ b, in place. Each is (g w, ...), or (g, w, ...) and contiguous."""
    out, a, b = (x.flatten(0, 1) if x.ndim == 4 else x for x in (out, a, b))
    torch.baddbmm(out, a, b, alpha=alpha, beta=beta, out=out)
