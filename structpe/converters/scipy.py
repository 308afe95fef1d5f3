"""SciPy: sparse matrices and arrays as adjacency matrices, and back.

A stored entry that is not zero is an edge from its row to its column. Numbers, but not booleans, are ``edge_weight``,
with the same dtype in the inverse. A matrix cannot store labels, relations, order, root, units, other features and the
name, which are lost; edges are in the order of rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from structpe.converters._adjacency import entries, from_entries
from structpe.converters.base import ConversionError, add_converter
from structpe.structure import Structure

__all__ = ["from_scipy", "to_scipy"]


def from_scipy(matrix: Any, directed: bool | None = None) -> Structure:
    """The structure of a sparse matrix or array of any format; repeated entries are added.

    Args:
        matrix: square, (n, n).
        directed: whether the graph is directed; None: unless the matrix is symmetric.

    Raises:
        ConversionError: it is not square or not of real numbers, or ``directed`` is False and it is not symmetric.
        StructureError: there is no node, or NaN or infinity.
    """
    if matrix.ndim != 2:
        raise ConversionError(f"the array has shape {matrix.shape}; an adjacency matrix is square, (n, n)")
    whole = matrix.tocoo(copy=True)
    whole.sum_duplicates()
    whole.eliminate_zeros()
    ends = np.stack([whole.row, whole.col], axis=1).astype(np.int64)
    return from_entries(ends, whole.data, whole.shape, directed)


def to_scipy(structure: Structure) -> Any:
    """The adjacency matrix as a ``scipy.sparse.csr_array``, of booleans if edges have no weights.

    Raises:
        ConversionError: there are parallel edges, a weight is zero, or weights are not one number per edge.
    """
    from scipy import sparse

    ends, values = entries(structure)
    return sparse.csr_array((values, (ends[:, 0], ends[:, 1])), shape=(structure.size, structure.size))


add_converter("scipy", "scipy.sparray scipy.spmatrix", "sparse adjacency matrices, and back", from_scipy, to_scipy)
