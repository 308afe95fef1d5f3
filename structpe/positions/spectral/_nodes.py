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
        shares: (b, n) the weight of a unit in a sum over nodes: its share of its node; 0 for padding.
    """

    present: Tensor
    shares: Tensor

    @classmethod
    def of(cls, positions: Positions, unit_count: UnitCount, dtype: torch.dtype) -> Nodes:
        """Those of a batch that was encoded by ``unit_count``."""
        counts: Tensor = positions[unit_count]
        present = torch.ones_like(counts, dtype=torch.bool) if positions.present is None else positions.present
        return cls(present, torch.where(present, 1 / counts.clamp(min=1).to(dtype), 0))

    @property
    def weights(self) -> Tensor:
        """(b, n, n) the weights of units in a sum over nodes, for each unit; 0 for padding."""
        return self.present[:, :, None] * self.shares[:, None]

    def total(self, x: Tensor) -> Tensor:
        """(b, 1, ...) the sum of x (b, n, ...) over the nodes of each structure."""
        summed: Tensor = (self.shares[:, None] @ x.flatten(2)).view(len(x), 1, *x.shape[2:])
        return summed

    def sums(self, x: Tensor) -> Tensor:
        """(b, n, ...) for each unit the sum of x (b, n, ...) over the nodes of its structure; 0 for padding."""
        return self.total(x) * _like(self.present, x)

    def means(self, x: Tensor) -> Tensor:
        """(b, n, ...) the mean over nodes; 0 for padding."""
        return self.sums(x) / _like(self.count, x)

    @property
    def count(self) -> Tensor:
        """(b, 1) number of nodes, at least 1."""
        return self.shares.sum(-1, keepdim=True).clamp(min=1)

    def neighbours(self, positions: Positions, adjacency: Adjacency) -> Tensor:
        """(b, n, n) weights of a sum over those nodes that an edge joins with a unit's node, either way."""
        codes: Lookup = positions[adjacency]
        joined = codes.map(lambda code: (code >= _EDGE_TO) & (code <= _BOTH_WAYS)).dense()
        return torch.where(joined, self.weights, 0)


def _like(of_units: Tensor, x: Tensor) -> Tensor:
    """(b, n, 1, ...) with as many dimensions as x (b, n, ...)."""
    return of_units.view(*of_units.shape, *[1] * (x.ndim - 2))
