"""Vectors of places on the path of a differential equation, added to queries, keys and values: FLOATER's code."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.positions import Dims, PositionModel, Positions, Site
from structpe.positions._checks import numbers, of_arity
from structpe.positions.absolute._flow import Trail, places_on
from structpe.terms import Lookup, Terms

__all__ = ["FloaterModel"]


class FloaterModel(PositionModel):
    """q_t + p_q(t), k_t + p_k(t), v_t + p_v(t) in every layer, p the path of a differential equation."""

    def __init__(self, dims: Dims, encoding: Encoding = Order()) -> None:
        super().__init__(dims, [of_arity(self.name, encoding, 1)])
        self.start = nn.Parameter(nn.init.xavier_uniform_(torch.empty(3, dims.layers, dims.width)))
        self.field = self.new_field()
        self.trail = Trail()

    @abstractmethod
    def new_field(self) -> nn.Module:
        """H of the equation dp/dt = h(t, p), p (3, l, d)."""

    def prepare(self, positions: Positions) -> tuple[Tensor, Tensor, Tensor]:
        """The path (T, 3, l, d), and the places of queries (b, n) and keys (b, m)."""
        keys = numbers(self.name, self.encodings[0], positions[self.encodings[0]])
        path = self.trail.follow(self.field, self.start, places_on(self.name, keys))
        return path, positions.queries(self.encodings[0]), keys

    def terms(self, prepared: tuple[Tensor, Tensor, Tensor], site: Site) -> Terms:
        path, of_queries, of_keys = prepared
        q, k, v = path[:, :, site.layer].unbind(1)
        v = v.to(self.start.dtype)
        return _added(self.dims, q[of_queries], k[of_keys], v[of_keys])


def _added(dims: Dims, queries: Tensor, keys: Tensor, values: Tensor) -> Terms:
    """q_i + a_i, k_j + b_j and v_j + c_j.

    Args:
        dims: sizes of the Transformer.
        queries: (b, n, d) the a.
        keys: (b, m, d) the b.
        values: (b, m, d) the c.
    """
    a, b = (x.view(*x.shape[:2], dims.heads, dims.head).transpose(1, 2) for x in (queries, keys))

    def shift(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return q + a.to(q.dtype), k + b.to(k.dtype)

    return Terms(maps=(shift,), value=(_per_key(dims, values, queries.shape[1]),))


def _per_key(dims: Dims, values: Tensor, n: int) -> Lookup:
    """x_ij = values_j: each key has its own row, and the index is a view of no size."""
    b, m, _ = values.shape
    table = values.reshape(b * m, dims.heads, dims.head)
    rows = torch.arange(b * m, device=values.device).view(b, m)
    return Lookup(table, rows, torch.arange(m, device=values.device).expand(b, n, m))
