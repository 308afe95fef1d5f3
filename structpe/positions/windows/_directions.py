"""Masks of direction."""

from __future__ import annotations

from torch import Tensor

__all__ = ["visible"]


def visible(direction: str, queries: Tensor, keys: Tensor) -> Tensor:
    """(b, n, m) which keys are strictly before the query (``forward``), after it (``backward``), or elsewhere."""
    t, s = queries[..., None], keys[:, None]
    return s < t if direction == "forward" else s > t if direction == "backward" else s != t
