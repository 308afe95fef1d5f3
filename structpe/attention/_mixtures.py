"""Keys and values that are mixtures of others (Linformer)."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from structpe.terms import Terms

__all__ = ["mixed"]


def mixed(k: Tensor, v: Tensor, terms: Terms) -> tuple[Tensor, Tensor, Terms]:
    """Keys and values after the projection of the terms, and the remaining terms."""
    if terms.projection is None:
        return k, v, terms
    keys, values = terms.projection.keys.to(k.dtype), terms.projection.values.to(v.dtype)
    for mask in terms.mask:  # (b or 1, h or 1, 1, m): a masked key has no part in any mixture
        keys, values = keys * mask, values * mask
    return keys @ k, values @ v, replace(terms, projection=None, mask=())
