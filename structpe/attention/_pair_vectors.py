"""Vectors of pairs from tables with so many rows that few pairs share one: one vector per pair, and batched products.

With r rows in use per structure, ``_gather`` lets each query meet each row and picks from the products: O(h n r)
memory. Here each pair has its own copy of its vector: O(n m d) memory, and a table per head h times as much.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from structpe.terms import Lookup

__all__ = ["collect_vectors", "is_large", "key_vectors", "query_vectors"]


def is_large(x: Lookup, products: int) -> bool:
    """Whether the vectors of all pairs take less memory than the products of all queries and rows.

    On a CPU they then take less time too. Never while tracing: a number of rows may vary from batch to batch.

    Args:
        x: the vectors.
        products: number of vectors that meet a row: b h n, or b h m of keys.
    """
    if torch.compiler.is_compiling():
        return False
    shared, n, m = x.index.shape
    return max(len(x.rows), shared) * n * m * x.table[0].numel() < products * x.rows.shape[1]


def key_vectors(q: Float[Tensor, "b h n d"], x: Lookup) -> Float[Tensor, "b h n m"]:
    """q_i . x_ij."""
    # Vectors first: their gradient, the largest tensor here, then comes in the order in which they are stored.
    met: Tensor = torch.einsum("bnmhd,bhnd->bhnm", _vectors(x, q.dtype), q)
    return met


def query_vectors(x: Lookup, k: Float[Tensor, "b h m d"]) -> Float[Tensor, "b h n m"]:
    """x_ij . k_j."""
    met: Tensor = torch.einsum("bnmhd,bhmd->bhnm", _vectors(x, k.dtype), k)
    return met


def collect_vectors(weights: Float[Tensor, "b h n m"], x: Lookup) -> Float[Tensor, "b h n d"]:
    """sum_j weights_ij x_ij."""
    collected: Tensor = torch.einsum("bhnm,bnmhd->bhnd", weights, _vectors(x, weights.dtype))
    return collected


def _vectors(x: Lookup, dtype: torch.dtype) -> Tensor:
    """(b or 1, n, m, h or 1, d) the vector of each pair."""
    structures = max(len(x.rows), x.index.shape[0])
    index = x.places().flatten(1).expand(structures, -1)
    chosen = x.rows.expand(structures, -1).gather(1, index).long()
    found = x.table.to(dtype).index_select(0, chosen.flatten())
    return found.view(structures, *x.index.shape[1:], *x.table.shape[1:])
