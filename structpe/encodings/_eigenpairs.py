"""Lowest eigenpairs of the Laplacians of many structures, and from nodes numbered through to units of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from structpe.encodings._parts import adjacencies, parts
from structpe.encodings._spectra import (
    NotConverged,
    laplacians,
    lowest_dense,
    lowest_sparse,
    plain_laplacians,
    plain_sparse_laplacian,
    sparse_laplacian,
)
from structpe.encodings._trees import starts
from structpe.encodings._units import of_units
from structpe.encodings.base import Encoded, Encoding, check_matrices
from structpe.structure import Ids, Structure

__all__ = ["eigenpairs", "per_unit"]

Floats = NDArray[np.float64]

_DENSE = 500  # nodes from which on Lanczos iterations beat a full decomposition


def eigenpairs(
    encoding: Encoding, structures: Sequence[Structure], count: int, components: bool, normalised: bool = True
) -> Iterator[tuple[Ids, Floats, Floats]]:
    """The ``count`` lowest, or as many as there are, of one size of parts at a time.

    Args:
        encoding: who asks, for error messages.
        structures: the graphs.
        count: how many.
        components: of each connected part for itself, not of each structure.
        normalised: of I - D^-1/2 A D^-1/2, else of D - A.

    Yields:
        (b, c) nodes, numbered through over all structures; (b, m) eigenvalues; (b, c, m) eigenvectors.

    Raises:
        EncodingError: the iterations of a large graph do not converge.
    """
    for nodes, edges in parts(structures, components):
        size = nodes.shape[1]
        if size > _DENSE and count < size // 4:
            values, vectors = _large(encoding, structures, nodes, edges, count, normalised)
        else:
            check_matrices(encoding, size)
            matrices = (laplacians if normalised else plain_laplacians)(adjacencies(edges, *nodes.shape))
            values, vectors = lowest_dense(matrices, count)
        yield nodes, values, vectors


def per_unit(structures: Sequence[Structure], nodes: NDArray[np.floating]) -> list[Encoded]:
    """What nodes, numbered through, have, as float32 for the units of each structure."""
    start, narrow = starts(structures), nodes.astype(np.float32)
    return [Encoded(of_units(s, narrow[a:b])) for s, a, b in zip(structures, start, start[1:], strict=False)]


def _large(
    encoding: Encoding, structures: Sequence[Structure], nodes: Ids, edges: Ids, count: int, normalised: bool
) -> tuple[Floats, Floats]:
    found = []
    for row, members in enumerate(nodes):
        inside = edges[edges[:, 0] == row, 1:]
        matrix = (sparse_laplacian if normalised else plain_sparse_laplacian)(inside, len(members))
        # The solver wants eigenvalues of 0 to 2; those of D - A reach to twice the largest degree.
        largest = 1.0 if normalised else max(float(matrix.diagonal().max()), 1.0)
        try:
            values, vectors = lowest_sparse(matrix / largest, count)
        except NotConverged as problem:
            which = int(np.searchsorted(starts(structures), members[0], side="right")) - 1
            raise encoding.error(
                structures[which],
                f"{problem} (a part of {len(members)} nodes, {count} eigenvectors); give another k, or "
                "choose 'random-walk'",
            ) from problem
        found.append((values * largest, vectors))
    return np.stack([values for values, _ in found]), np.stack([vectors for _, vectors in found])
