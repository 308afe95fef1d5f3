"""Attention among few units, written out: where matrices are small, three batched products beat the fused kernel.

On a CPU PyTorch's fused kernel goes through the graphs one by one, whatever their size. For 128 graphs of 24 nodes,
4 heads of width 16, forward and backward take two thirds of its time here; from 50 nodes on it is the faster.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from structpe.attention._gather import opened

__all__ = ["few", "written_out"]

UNITS, CELLS = 40, 1 << 16


def few(q: Tensor, k: Tensor) -> bool:
    """Whether it is worth it: few units, but so many graphs that starting more operations does not count."""
    n, m = q.shape[2], k.shape[2]
    return q.device.type == "cpu" and 1 < n <= UNITS and m <= UNITS and q.shape[0] * q.shape[1] * n * m >= CELLS


def written_out(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, allowed: Tensor | None, scale: float, dropout: float
) -> Tensor:
    """softmax(scale q k^T + bias) v over the allowed pairs; 0 for a query that is allowed none.

    Args:
        q, k, v: (b, h, n, c), (b, h, m, c) and (b, h, m, d); c may exceed d, by factors.
        bias: (b or 1, h or 1, n or 1, m or 1).
        allowed: (b or 1, h or 1, n or 1, m), bool.
        scale: of the products.
        dropout: probability with which a weight is dropped.
    """
    (b, h, n, _), d = q.shape, v.shape[-1]
    added, nowhere = opened(bias, allowed, q)
    rows = added.expand(b, h, *added.shape[-2:]).flatten(0, 1) if added.ndim else added
    q, k, v = (x.flatten(0, 1) for x in (q, k, v))
    weights = torch.baddbmm(rows, q, k.transpose(1, 2), alpha=scale, beta=float(added.ndim > 0)).softmax(-1)
    out = torch.bmm(functional.dropout(weights, dropout, training=dropout > 0), v).view(b, h, n, d)
    return out if nowhere is None else out.masked_fill(nowhere, 0.0)
