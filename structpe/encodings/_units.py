"""From values of nodes to values of the units that they own."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.encodings.base import WITHIN
from structpe.structure import Structure

__all__ = ["of_units", "within"]


def of_units(structure: Structure, nodes: NDArray[Any]) -> NDArray[Any]:
    """From values per node to values per unit: each unit has its node's."""
    return nodes if structure.owner is None else nodes[structure.owner]


def within(structure: Structure, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """From values per pair of nodes to values per pair of units: two units of one node have ``WITHIN + k``."""
    if structure.owner is None:
        return nodes
    owner = structure.owner
    places = np.arange(len(owner))
    offset = places[None, :] - places[:, None]
    same = (owner[:, None] == owner[None, :]) & (offset != 0)
    return np.where(same, WITHIN + offset, nodes[owner[:, None], owner[None, :]])
