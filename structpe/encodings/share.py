"""What part of its node a unit is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from structpe.encodings._units import of_units
from structpe.encodings.base import Encoded, Encoding
from structpe.structure import Structure

__all__ = ["Share"]


@dataclass(frozen=True)
class Share(Encoding, name="share"):
    """w_u = 1 / number of units of the node of unit u: float32.

    A sum over units, each weighed by its share, is a sum over nodes: what is defined on the nodes of a graph, such as a
    network over its eigenvectors, does not change when a label is split into subwords.
    """

    arity = 1

    def one(self, structure: Structure) -> Encoded:
        counts = np.bincount(structure.unit_owner, minlength=structure.size)
        return Encoded(of_units(structure, (1.0 / np.maximum(counts, 1)).astype(np.float32)))
