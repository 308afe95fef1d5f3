"""The degree of each node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from structpe.encodings._units import of_units
from structpe.encodings.base import Encoded, Encoding
from structpe.errors import EncodingError
from structpe.structure import Structure

__all__ = ["Degree"]


@dataclass(frozen=True)
class Degree(Encoding, name="degree"):
    """deg(u): number of nodes to which edges of the unit's node lead (``out``), from which they come (``in``), or both.

    Parallel edges count once, and so does a self-loop, as in a matrix of zeros and ones (Ying et al. 2021). In an
    undirected structure all three are equal. All units of a node have its degree.

    Args:
        direction: which edges count: ``out``, ``in`` or ``both``.
    """

    arity = 1

    direction: Literal["out", "in", "both"] = "both"

    def __post_init__(self) -> None:
        if self.direction not in ("out", "in", "both"):
            raise EncodingError(f"encoding 'degree': direction is {self.direction!r}; give 'out', 'in' or 'both'")

    def one(self, structure: Structure) -> Encoded:
        out, into = structure.edges.T
        if self.direction == "both" or not structure.directed:
            out, into = np.concatenate([out, into]), np.concatenate([into, out])
        start, end = (into, out) if self.direction == "in" else (out, into)
        pairs = np.unique(start * structure.size + end)
        return Encoded(of_units(structure, np.bincount(pairs // structure.size, minlength=structure.size)))
