"""How many units a structure has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from structpe.encodings.base import Encoded, Encoding
from structpe.structure import Structure

__all__ = ["Size"]


@dataclass(frozen=True)
class Size(Encoding, name="size"):
    """L: the number of units of the structure, said at each of them.

    What depends on the length of a text takes it from here and not from a batch, whose rows are padded, or shared by
    several structures. A text that is being written has no length yet, so that no decoder may use it.
    """

    arity = 1

    def one(self, structure: Structure) -> Encoded:
        return Encoded(np.full(structure.unit_count, structure.unit_count))
