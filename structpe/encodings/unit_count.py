"""How many units the node of a unit has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from structpe.encodings._units import of_units
from structpe.encodings.base import Encoded, Encoding
from structpe.structure import Structure

__all__ = ["UnitCount"]


@dataclass(frozen=True)
class UnitCount(Encoding, name="unit-count"):
    """c_u: the number of units of the node of unit u, itself included.

    A sum over units, each divided by c_u, is a sum over nodes: so a function of the nodes of a graph, such as a network
    over its eigenvectors, does not change when a label is split into subwords.
    """

    arity = 1

    def one(self, structure: Structure) -> Encoded:
        return Encoded(of_units(structure, np.bincount(structure.unit_owner, minlength=structure.size)))
