"""Learned numbers per layer and head that stay within bounds, for biases that fall with distance."""

from __future__ import annotations

import torch
from torch import Tensor

from structpe.positions import Dims, Positions
from structpe.positions._tables import Sharing, Table
from structpe.positions.decay._distances import DistanceModel
from structpe.terms import Lookup

__all__ = ["Bounded", "BoundedDecay"]


class Bounded(Table):
    """One number per layer and head, from U(0, most), never below ``least`` or above ``greatest``.

    Args:
        dims: sizes of the Transformer.
        sharing: which layers and heads have the same number.
        most: of the numbers that it starts from.
        greatest: upper bound; None for no bound.
    """

    least = 0.01

    def __init__(self, dims: Dims, sharing: Sharing, most: float, greatest: float | None = None) -> None:
        super().__init__(dims, 1, sharing)
        self.greatest = greatest
        torch.nn.init.uniform_(self.weight, 0, most)

    def within(self, layer: int) -> Tensor:
        """(h or 1,) the numbers of a layer, clamped to the bounds; gradients ignore the clamping."""
        row: Tensor = self.at(layer)[0]
        return row + (row.clamp(self.least, self.greatest) - row).detach()

    def project(self) -> None:
        """Clamp the parameters themselves to the bounds, before a training step."""
        with torch.no_grad():
            self.weight.clamp_(self.least, self.greatest)


class BoundedDecay(DistanceModel):
    """A bias that falls with distance, whose learned numbers are :class:`Bounded`."""

    def prepare(self, positions: Positions) -> Lookup:
        """The distance of each distinct value; each training step first clamps the numbers to their bounds."""
        if self.training:
            for number in self.children():
                if isinstance(number, Bounded):
                    number.project()
        return super().prepare(positions)
