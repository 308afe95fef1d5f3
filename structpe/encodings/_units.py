"""From values of nodes to values of their units."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.encodings.base import WITHIN
from structpe.structure import Ids, Structure

__all__ = ["of_units", "places_by", "within"]


def of_units(structure: Structure, nodes: NDArray[Any]) -> NDArray[Any]:
    """From values per node to values per unit: each unit has the value of its node."""
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


def places_by(structure: Structure, rank: NDArray[Any]) -> Ids:
    """(u,) the place of each unit if nodes are read in the order of a rank (n,), and units of a node in their order."""
    places = np.argsort(np.argsort(of_units(structure, rank), kind="stable"), kind="stable")
    return places.astype(np.int64)
