"""Arrays of NumPy and tensors of PyTorch: adjacency matrices, edges, or images and videos. ``kind`` is required.

``as_structure(array, kind="adjacency")`` and ``convert(structure, "numpy")`` are as for sparse matrices of SciPy:
labels, relations, order, root, units, other features than ``edge_weight`` and the name are lost.
``as_structure(array, kind="image", patch=16)`` makes a grid, ``convert(structure, "numpy", kind="image", patch=16)``
is the inverse; labels, other edges and other features are lost. ``as_structure(array, kind="edge_index")`` takes the
sources and targets of edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from structpe.converters._adjacency import entries, from_entries
from structpe.converters._images import Channels, from_pixels, pixels
from structpe.converters.base import ConversionError, add_converter
from structpe.readers._edge_index import of_arrays
from structpe.readers._tensors import to_array
from structpe.structure import Structure

__all__ = ["from_array", "to_array_of"]

Kind = Literal["adjacency", "image"]
MOST = 1 << 15
"""The largest number of nodes of a dense adjacency matrix, which would take gigabytes."""


def from_array(
    array: Any,
    kind: str | None = None,
    directed: bool | None = None,
    patch: int | Sequence[int] = 1,
    channels: Channels = "last",
    size: int | None = None,
) -> Structure:
    """The structure of an array or tensor.

    Args:
        array: a matrix (n, n); sources and targets of edges (2, m); or pixels, see ``channels``.
        kind: ``adjacency`` (an entry that is not zero is an edge from its row to its column; numbers are
            ``edge_weight``, booleans are not), ``edge_index``, or ``image`` (a grid, with a node per pixel or patch).
        directed: for ``adjacency`` and ``edge_index``: whether the graph is directed; None: unless every edge has its
            reverse.
        patch: for ``image``: length of a patch in pixels on each axis.
        channels: for ``image``: ``last`` for (H, W, C) and (T, H, W, C), ``first`` for (C, H, W) and (T, C, H, W),
            ``none`` for (T, H, W); (H, W) is always one channel.
        size: for ``edge_index``: number of nodes; None: the largest number of an edge, and one.

    Raises:
        ConversionError: ``kind`` is missing, or does not fit the array.
        StructureError: there is no node, there are too many pixels, or NaN or infinity.
    """
    given = to_array(array, "the array")
    if kind == "image":
        return from_pixels(given, patch, channels)
    if kind == "edge_index":
        most = int(given.max(initial=-1)) + 1 if given.dtype.kind in "iu" else 0
        return of_arrays({"edge_index": given}, most if size is None else size, directed, None, None, "array")
    if kind != "adjacency":
        asked = "does not say what it is" if kind is None else f"cannot be of kind {kind!r}"
        raise ConversionError(
            f"an array of shape {given.shape} {asked}; give kind='adjacency' for an adjacency matrix, "
            "kind='edge_index' for sources and targets of edges, kind='image' for pixels of an image or video"
        )
    if given.ndim != 2 or given.dtype.kind not in "biuf":
        return from_entries(np.zeros((0, 2), dtype=np.int64), given.reshape(-1)[:0], given.shape, directed)
    ends = np.argwhere(given != 0)
    return from_entries(ends, given[ends[:, 0], ends[:, 1]], given.shape, directed)


def to_array_of(
    structure: Structure,
    kind: Kind = "adjacency",
    patch: int | Sequence[int] = 1,
    channels: Channels = "last",
) -> NDArray[Any]:
    """The structure as an adjacency matrix (n, n), or as the pixels of a grid.

    Args:
        structure: the graph.
        kind: ``adjacency``, of weights, or of booleans if edges have no weights; ``image``, of the features ``x`` and
            ``coordinates``.
        patch: for ``image``: length of a patch in pixels on each axis.
        channels: for ``image``: the axis of the channels.

    Raises:
        ConversionError: there are too many nodes for a dense matrix, parallel edges, or the grid is not complete.
    """
    if kind == "image":
        return pixels(structure, patch, channels)
    if kind != "adjacency":
        raise ConversionError(f"the kind of an array is {kind!r}; give 'adjacency' or 'image'")
    if structure.size > MOST:
        raise ConversionError(f"a dense matrix of {structure.size} nodes is too large; {MOST} at most, use 'scipy'")
    ends, values = entries(structure)
    matrix = np.zeros((structure.size, structure.size), values.dtype)
    matrix[ends[:, 0], ends[:, 1]] = values
    return matrix


add_converter("numpy", "numpy.ndarray torch.Tensor", "adjacency matrices or images, and back", from_array, to_array_of)
