"""Sums over the nodes of a unit's own structure, for models that read a whole graph before attention does."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from structpe.encodings.adjacency import Adjacency
from structpe.encodings.unit_count import UnitCount
from structpe.positions import Positions
from structpe.terms import Lookup

__all__ = ["Nodes"]

_EDGE_TO, _BOTH_WAYS = 1, 3


@dataclass(frozen=True)
class Nodes:
    """The nodes of each structure of a batch, in the shape of its units.

    Attributes:
        present: (b, n) which units are real.
        weights: (b, n, n) the weights of units in a sum over nodes: the share of its node if both belong to one
            structure, else 0.
    """

    present: Tensor
    weights: Tensor

    @classmethod
    def of(cls, positions: Positions, unit_count: UnitCount, dtype: torch.dtype) -> Nodes:
        """Those of a batch that was encoded by ``unit_count``."""
        counts: Tensor = positions[unit_count]
        shares = 1 / counts.clamp(min=1).to(dtype)
        present = torch.ones_like(counts, dtype=torch.bool) if positions.present is None else positions.present
        together = present[:, :, None] & present[:, None]
        return cls(present, torch.where(together, shares[:, None], 0))

    def sums(self, x: Tensor) -> Tensor:
        """(b, n, ...) for each unit the sum of x (b, n, ...) over the nodes of its structure."""
        return _product(self.weights, x)

    def means(self, x: Tensor) -> Tensor:
        """(b, n, ...) the mean over nodes."""
        counts = self.weights.sum(-1).clamp(min=1)
        return self.sums(x) / counts.view(*counts.shape, *[1] * (x.ndim - 2))

    def neighbours(self, positions: Positions, adjacency: Adjacency) -> Tensor:
        """(b, n, n) weights of a sum over those nodes that an edge joins with a unit's node, either way."""
        codes: Lookup = positions[adjacency]
        joined = codes.map(lambda code: (code >= _EDGE_TO) & (code <= _BOTH_WAYS)).dense()
        return torch.where(joined, self.weights, 0)


def _product(weights: Tensor, x: Tensor) -> Tensor:
    result: Tensor = (weights @ x.flatten(2)).view(x.shape)
    return result
