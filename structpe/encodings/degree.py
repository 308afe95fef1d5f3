"""The degree of each node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from structpe.encodings._graphs import Graphs
from structpe.encodings._links import steps
from structpe.encodings.base import Column, Encoded, Encoding
from structpe.structure import Structure

__all__ = ["Degree"]


@dataclass(frozen=True)
class Degree(Encoding, name="degree"):
    """The degree of each node.

    deg(u): number of nodes to which edges of the unit's node lead (``out``), from which they come (``in``), or both.

    Parallel edges count once, and so does a self-loop, as in a matrix of zeros and ones (Ying et al. 2021). In an
    undirected structure all three are equal. All units of a node have its degree.

    Args:
        direction: which edges count: ``out``, ``in`` or ``both``.
    """

    arity = 1

    direction: Literal["out", "in", "both"] = "both"

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        graphs = Graphs.of(structures)
        there = steps(graphs, onward=self.direction != "in", back=self.direction != "out")
        return Column.of_units(graphs.units, graphs.of_units(np.diff(there.indptr).astype(np.int64)))
