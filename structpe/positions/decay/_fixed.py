"""Biases that are fixed functions of distance."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.positions import Dims, PositionModel, Positions, Site
from structpe.positions._checks import of_arity, offsets
from structpe.positions.decay._distances import distances
from structpe.precision import wide
from structpe.terms import Lookup, Terms

__all__ = ["FixedDecay"]


class FixedDecay(PositionModel):
    """A bias of each head that depends on the distance of two units and is not learned.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
    """

    like: Tensor

    def __init__(self, dims: Dims, encoding: Encoding) -> None:
        super().__init__(dims, [of_arity(self.name, encoding, 2)])
        # Follows the model to float64, so that the bias does; what it is computed from would be rounded there.
        self.register_buffer("like", torch.empty(0), persistent=False)

    @abstractmethod
    def fall(self, far: Tensor) -> Tensor:
        """(R, h) float64 the bias at the distances (R, 1)."""

    def prepare(self, positions: Positions) -> Lookup:
        """The bias of each distinct value and head, the same for all layers."""
        of_pairs = offsets(self.name, self.encodings[0], positions[self.encodings[0]])
        return of_pairs.map(self._bias).share()

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        return Terms(bias=(prepared,))

    def _bias(self, values: Tensor) -> Tensor:
        return self.fall(distances(self.name, self.encodings[0], values)[:, None]).to(wide(self.like).dtype)
