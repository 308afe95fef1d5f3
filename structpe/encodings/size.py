"""How many units a structure has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from structpe.encodings._graphs import Graphs
from structpe.encodings.base import Column, Encoded, Encoding
from structpe.structure import Structure

__all__ = ["Size"]


@dataclass(frozen=True)
class Size(Encoding, name="size"):
    """How many units a structure has.

    L: the number of units of the structure, for each of its units.

    Models that depend on the length of a text use this encoding, because rows of a batch are padded. A text that is
    being generated has no length yet, so a decoder cannot use it.
    """

    arity = 1

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        graphs = Graphs.of(structures)
        return Column.of_units(graphs.units, np.repeat(graphs.units, graphs.units))
