"""The reference: the equation written out, with dense tensors for all quantities of pairs. Slow on purpose."""

from __future__ import annotations

import torch
from torch import Tensor

from structpe.attention.attend import kernel
from structpe.attention.reference import all_weights, mixed_keys, vectors
from structpe.dropout import dropout as dropped
from structpe.precision import wide
from structpe.terms import Terms

__all__ = ["dense"]


@kernel(
    "dense",
    supports="maps factors bias gate mask key query product value act scale pairs causal feature_map projection",
    cost=lambda call: call.time(600_000, 100.0, 10.0, gathered=(0.0, 0.0)),
)
def dense(q: Tensor, k: Tensor, v: Tensor, terms: Terms, dropout: float = 0.0) -> Tensor:
    """Supports every field. The output is 0 for a query that attends to nothing.

    Half precision is computed in float32.
    """
    dtype, v = v.dtype, wide(v)
    each = dropped(all_weights(q, k, terms).to(v.dtype), dropout)
    if terms.projection is not None:
        v = mixed_keys(terms.projection, v, terms.mask, values=True)
    out = torch.einsum("bhnm,bhmd->bhnd", each, v)
    for x in terms.value:
        out = out + torch.einsum("bhnm,bhnmd->bhnd", each, vectors(x, wide(q), v.shape[2]))
    return out.to(dtype)
