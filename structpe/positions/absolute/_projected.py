"""Vectors of places added to what attention has projected: to queries, keys and values."""

from __future__ import annotations

import torch
from torch import Tensor

from structpe.positions import Dims
from structpe.terms import Lookup, Terms

__all__ = ["added"]


def added(dims: Dims, queries: Tensor, keys: Tensor, values: Tensor) -> Terms:
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
    """x_ij = values_j: each key has a row of its own, and the index is a view of no size."""
    b, m, _ = values.shape
    table = values.reshape(b * m, dims.heads, dims.head)
    rows = torch.arange(b * m, device=values.device).view(b, m)
    return Lookup(table, rows, torch.arange(m, device=values.device).expand(b, n, m))
