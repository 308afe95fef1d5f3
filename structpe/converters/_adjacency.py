"""Adjacency matrices, dense or sparse, to structures and back: the entry in row u and column v is the edge u -> v."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.converters.base import ConversionError
from structpe.readers._both_ways import both_ways, one_way
from structpe.structure import Ids, Structure

__all__ = ["entries", "from_entries"]


def from_entries(ends: Ids, values: NDArray[Any], shape: tuple[int, ...], directed: bool | None) -> Structure:
    """The structure of a matrix, from its entries that are not zero.

    Args:
        ends: (m, 2) row and column of each entry.
        values: (m,) the entries; booleans, or numbers, which are also the feature ``edge_weight``.
        shape: shape of the matrix.
        directed: whether the graph is directed; None: unless the matrix is symmetric. The two entries of an undirected
            edge are one edge.

    Raises:
        ConversionError: the matrix is not square or not of numbers, or ``directed`` is False and it is not symmetric.
    """
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ConversionError(f"the matrix has shape {shape}; an adjacency matrix is square, a row and column per node")
    if values.dtype.kind not in "biuf":
        raise ConversionError(f"the matrix has dtype {values.dtype}; give truth values, or real numbers as weights")
    order = np.lexsort((ends[:, 1], ends[:, 0]))
    ends, values = ends[order], values[order]
    rows, way = one_way(ends, [values], directed)
    features = {} if values.dtype.kind == "b" else {"edge_weight": values[rows]}
    return Structure(("",) * shape[0], ends[rows], directed=way, features=features)


def entries(structure: Structure) -> tuple[Ids, NDArray[Any]]:
    """(m, 2) row and column, and (m,) value of the entries that are not zero: weights, or True without weights.

    Raises:
        ConversionError: there are parallel edges, a weight is zero, or weights are not one number per edge.
    """
    ends, edge = both_ways(structure)
    values = np.asarray(structure.features.get("edge_weight", np.ones(len(structure.edges), dtype=bool)))
    if values.ndim != 1:
        raise ConversionError(f"the feature 'edge_weight' has shape {values.shape}; give one number per edge")
    if len(wrong := np.flatnonzero(values == 0)):
        raise ConversionError(f"edge {wrong[0]} has the weight 0, which says in a matrix that there is none; remove it")
    different, times = np.unique(ends, axis=0, return_counts=True)
    if (times > 1).any():
        source, target = different[int(times.argmax())]
        raise ConversionError(
            f"there are {times.max()} edges {source} -> {target}; a matrix has room for one, join them"
        )
    return ends, values[edge]
