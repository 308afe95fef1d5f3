"""PyTorch's fused attention. All terms but vectors at the values fold into its query, key or additive mask."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from structpe.attention._folded import folded
from structpe.attention._gather import disallow
from structpe.attention.base import kernel
from structpe.terms import Terms

__all__ = ["sdpa"]


@kernel("sdpa", supports="maps factors bias mask key query scale causal projection", cost=lambda call: 4.0 * call.cells)
def sdpa(q: Tensor, k: Tensor, v: Tensor, terms: Terms, dropout: float = 0.0) -> Tensor:
    """``scaled_dot_product_attention`` with one additive mask, or without one where no term needs it.

    With a projection time and memory are linear in the number of keys.
    """
    q, k, v, added, masks, scale, alone = folded(q, k, v, terms)
    mask = disallow(added, masks)
    if mask is not None:
        mask = mask.expand(q.shape[0], *mask.shape[1:])
    c, d = q.shape[-1], v.shape[-1]
    if c != d:
        # With different widths PyTorch computes all n m weights; its kernels for GPUs also need a multiple of 8.
        wide = -(-max(c, d) // 8) * 8
        q, k = (
            functional.pad(x, (0, wide - c)) for x in (q, k)
        )  # different widths of q and k from a map stay an error
        v = functional.pad(v, (0, wide - d))
    out = functional.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, dropout_p=dropout, is_causal=alone, scale=scale
    )
    return out[..., :d]
