"""Arrays of NumPy, tensors of PyTorch, sparse matrices of SciPy and images of Pillow.

``as_structure(array, kind="adjacency")``, or any sparse matrix: each entry that is not zero is an edge from its row to
its column, in the order of rows. Numbers, but not booleans, are ``edge_weight``. The inverse, ``convert(structure,
"numpy")`` or ``"scipy"``, has the same dtype; labels, relations, order, root, units, other features and the name are
lost. ``as_structure(array, kind="edge_index")`` takes the sources and targets of edges.

``as_structure(array, kind="image", patch=16)``, or an image of Pillow, makes a grid. The inverse is an array,
``convert(structure, "numpy", kind="image", patch=16)``, for ``PIL.Image.fromarray``; labels, other edges and other
features are lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from structpe.formats.arrays import entries, from_entries, of_arrays, to_array
from structpe.formats.converting import ConversionError, add_converter
from structpe.formats.images import Channels, from_pixels, pixels
from structpe.structure import Structure

__all__ = ["from_array", "from_pillow", "from_scipy", "to_array_of", "to_scipy"]


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
    structure: Structure, kind: Kind = "adjacency", patch: int | Sequence[int] = 1, channels: Channels = "last"
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


def from_pillow(image: Any, patch: int | Sequence[int] = 1) -> Structure:
    """The grid of the current frame of a ``PIL.Image.Image``; rows from the top, columns from the left.

    Args:
        image: in any mode; its bands are the channels of ``x``. A palette is converted to ``RGBA``.
        patch: length of a patch in pixels on each axis, such as 16 or (16, 8), rows first.

    Raises:
        ConversionError: the file of the image is damaged, or a patch does not divide a length.
    """
    try:
        plain = image.convert("RGBA") if image.mode in ("P", "PA") else image
        found = np.asarray(plain)
    except (OSError, SyntaxError, ValueError) as error:
        raise ConversionError(f"the image cannot be read: {error}; restore its file") from None
    return from_pixels(found, patch)


add_converter("pillow", "PIL.Image", "images, as grids of pixels or patches", from_pillow)
