"""A batch: units, positions and edges of several structures, padded to the largest, and what is to be written."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from structpe.data.edges import Edges
from structpe.positions.base import Positions

__all__ = ["Batch"]


@dataclass(frozen=True, eq=False)
class Batch:
    """b structures of up to n units, and texts of up to m units.

    Attributes:
        units: (b, n) ids of the units; ``present`` says which are real.
        present: (b, n).
        positions: what the encodings say.
        edges: for message passing; None where no model asks.
        target: (b, m) ids of the text, beginning with <s> and ending with </s>, padded; None when there is none.
    """

    units: Int[Tensor, "b n"]
    present: Bool[Tensor, "b n"]
    positions: Positions
    edges: Edges | None = None
    target: Int[Tensor, "b m"] | None = None

    def to(self, device: torch.device) -> Batch:
        """The same on another device."""
        return Batch(
            self.units.to(device),
            self.present.to(device),
            self.positions.to(device),
            None if self.edges is None else self.edges.to(device),
            None if self.target is None else self.target.to(device),
        )
