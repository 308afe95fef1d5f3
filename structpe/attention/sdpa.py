"""PyTorch's fused attention; whatever is no vector at the values folds into its query, key or additive mask."""

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
    """``scaled_dot_product_attention`` with one additive mask; without bias or vectors fused kernels stay in use.

    With a projection time and memory are linear in the number of keys.
    """
    q, k, v, added, masks, scale, alone = folded(q, k, v, terms)
    mask = disallow(added, masks)
    if mask is not None:
        mask = mask.expand(q.shape[0], *mask.shape[1:])
    c, d = q.shape[-1], v.shape[-1]
    if c != d:
        # Of several widths PyTorch writes out all n m weights; its kernels for GPUs ask for a multiple of 8 as well.
        wide = -(-max(c, d) // 8) * 8
        q, k = (functional.pad(x, (0, wide - c)) for x in (q, k))  # a map that gives them two widths is not padded away
        v = functional.pad(v, (0, wide - d))
    out = functional.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, dropout_p=dropout, is_causal=alone, scale=scale
    )
    return out[..., :d]
