"""Vectors of nodes and edges from their features."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from structpe.data.features import Categories, Features, Numbers

__all__ = ["FeatureEmbedding"]


class FeatureEmbedding(nn.Module):
    """A vector of width d for each node or edge.

    Categories: the sum of one embedding per column. Numbers: a linear map. No features: one learned vector.

    Args:
        features: kind of the features.
        width: d.
    """

    def __init__(self, features: Features, width: int) -> None:
        super().__init__()
        sizes = features.sizes if isinstance(features, Categories) else () if isinstance(features, Numbers) else (1,)
        self.linear = nn.Linear(features.columns, width) if isinstance(features, Numbers) else None
        if self.linear is not None:
            nn.init.xavier_uniform_(self.linear.weight)
            nn.init.zeros_(self.linear.bias)
        # All columns share one table: one lookup then sums their rows.
        self.table = nn.EmbeddingBag(sum(sizes), width, mode="sum") if sizes else None
        if self.table is not None:
            nn.init.xavier_uniform_(self.table.weight)
        first = torch.tensor([sum(sizes[:i]) for i in range(len(sizes))])
        self.register_buffer("first", first, persistent=False)

    first: Tensor

    def forward(self, x: Tensor | None, count: int) -> Float[Tensor, "N d"]:
        """(N, k) features, or None, to (N, d) vectors; ``count`` is N."""
        if self.linear is not None:
            assert x is not None
            mapped: Tensor = self.linear(x.to(self.linear.weight.dtype))
            return mapped
        assert self.table is not None
        embedded: Tensor = self.table(self.first.expand(count, 1) if x is None else x + self.first)
        return embedded
