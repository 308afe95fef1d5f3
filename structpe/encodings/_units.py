"""From values of nodes to values of their units."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.encodings.base import WITHIN
from structpe.structure import Ids, Structure

__all__ = ["of_units", "pairs_inside", "pairs_of_units", "places_by", "within"]


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


def pairs_of_units(structure: Structure, pairs: Ids) -> tuple[Ids, Ids]:
    """From (e, 2) pairs of nodes to all (e', 2) pairs of their units, and (e',) the index of the pair of nodes."""
    numbers = np.arange(len(pairs))
    if structure.owner is None:
        return pairs, numbers
    count = np.bincount(structure.owner, minlength=structure.size)
    first = np.cumsum(count) - count
    query, key = pairs.T
    many = count[query] * count[key]
    which = np.repeat(numbers, many)
    inside = np.arange(len(which)) - np.repeat(np.cumsum(many) - many, many)
    wide = count[key][which]
    return np.column_stack([first[query[which]] + inside // wide, first[key[which]] + inside % wide]), which


def pairs_inside(structure: Structure) -> Ids:
    """(e, 2) the pairs of different units of the same node."""
    nodes = np.repeat(np.arange(structure.size)[:, None], 2, axis=1)
    pairs, _ = pairs_of_units(structure, nodes)
    different: Ids = pairs[pairs[:, 0] != pairs[:, 1]]
    return different


def places_by(structure: Structure, rank: NDArray[Any]) -> Ids:
    """(u,) the place of each unit if nodes are read in the order of a rank (n,), and units of a node in their order."""
    places = np.argsort(np.argsort(of_units(structure, rank), kind="stable"), kind="stable")
    return places.astype(np.int64)
