"""How far heads look: means over pairs, by their distance in the structure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import shortest_path

from structpe.pictures.places import form_of
from structpe.structure import Structure

__all__ = ["Curve", "by_distance", "distances"]


@dataclass(frozen=True, eq=False)
class Curve:
    """Means by distance.

    Attributes:
        distance: (k,) the distances that occur, in order.
        mean: (..., k) means of each head, NaN for a distance without numbers.
        signed: whether distances have a sign: the key after (+) or before (-) the query in reading order.
    """

    distance: NDArray[np.float64]
    mean: NDArray[np.float64]
    signed: bool


def distances(structure: Structure) -> tuple[NDArray[np.float64], bool]:
    """(u, u) the distance of each key from each query, and whether it has a sign.

    On a sequence it is the offset of the key's node; on other structures the number of edges on a shortest path between
    the two nodes, ignoring directions, NaN without a path.
    """
    owner = structure.unit_owner
    if form_of(structure) == "sequence" and structure.order is not None:
        place = structure.order[owner].astype(np.float64)
        return place[None, :] - place[:, None], True
    ones = np.ones(len(structure.edges))
    graph = csr_matrix((ones, (structure.edges[:, 0], structure.edges[:, 1])), shape=(structure.size,) * 2)
    ways = np.asarray(shortest_path(graph, directed=False, unweighted=True))
    ways[~np.isfinite(ways)] = np.nan
    return ways[np.ix_(owner, owner)], False


def by_distance(quantity: NDArray[np.float64], structure: Structure) -> Curve:
    """The mean over all pairs of each distance.

    Args:
        quantity: (..., u, u) a number for each pair of units, query and key; NaN for pairs without one.
        structure: the structure of the units.
    """
    apart, signed = distances(structure)
    occurring = np.unique(apart[np.isfinite(apart)])
    means = [_mean(quantity[..., apart == distance]) for distance in occurring]
    return Curve(occurring, np.stack(means, axis=-1), signed)


def _mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean over the last axis, without NaN."""
    there = np.isfinite(values)
    count = there.sum(axis=-1)
    total = np.where(there, values, 0.0).sum(axis=-1)
    mean: NDArray[np.float64] = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return mean
