"""How many units the node of a unit has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from structpe.encodings._graphs import Graphs
from structpe.encodings.base import Column, Encoded, Encoding
from structpe.structure import Structure

__all__ = ["UnitCount"]


@dataclass(frozen=True)
class UnitCount(Encoding, name="unit-count"):
    """How many units the node of a unit has.

    c_u: the number of units of the node of unit u, itself included.

    A sum over units, each divided by c_u, is a sum over nodes: so a function of the nodes of a graph, such as a network
    over its eigenvectors, does not change when a label is split into subwords.
    """

    arity = 1

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        graphs = Graphs.of(structures)
        count = np.ones(len(graphs.graph), dtype=np.int64)
        if graphs.owner is not None:
            count = np.bincount(graphs.owner, minlength=len(count))
        return Column.of_units(graphs.units, graphs.of_units(count))
