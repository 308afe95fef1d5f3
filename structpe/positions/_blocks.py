"""What position models share that bring an attention of their own."""

from __future__ import annotations

import torch
from torch import Tensor

from structpe.errors import UnsupportedTerm
from structpe.terms import Terms

__all__ = ["allowed"]

_HEEDED = frozenset({"mask", "pairs", "causal"})


def allowed(model: str, terms: Terms, x: Tensor) -> Tensor:
    """(b or 1, h or 1, n, n) which pairs of the units x (b, n, d) attend, if the terms say nothing else than that.

    Raises:
        UnsupportedTerm: they do.
    """
    if lost := terms.used() - _HEEDED:
        raise UnsupportedTerm(
            f"position model {model!r} brings an attention of its own, which has no place for "
            f"{', '.join(sorted(lost))}; it goes with models that act at the input, or by {', '.join(sorted(_HEEDED))}"
        )
    b, n, _ = x.shape
    result = torch.ones(1, 1, n, n, dtype=torch.bool, device=x.device)
    for mask in (*terms.mask, *(pairs.dense(b, n, n) for pairs in terms.pairs)):
        result = result & mask
    return result.tril() if terms.causal else result
