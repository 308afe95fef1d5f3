"""Lowest eigenpairs of the Laplacians of many structures, whose nodes are numbered consecutively over all of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from structpe.encodings._graphs import Graphs
from structpe.encodings._parts import adjacencies, parts
from structpe.encodings._spectra import (
    NotConverged,
    TooLong,
    laplacians,
    lowest_dense,
    lowest_sparse,
    plain_laplacians,
    plain_sparse_laplacian,
    sparse_laplacian,
)
from structpe.encodings.base import Column, Encoding, check_matrices
from structpe.structure import Ids, Structure

__all__ = ["eigenpairs", "per_unit"]

Floats = NDArray[np.float64]

_DENSE = 500  # number of nodes above which Lanczos iterations are faster than a full decomposition


def eigenpairs(
    encoding: Encoding,
    structures: Sequence[Structure],
    graphs: Graphs,
    count: int,
    minutes: int,
    components: bool,
    normalised: bool = True,
) -> Iterator[tuple[Ids, Floats, Floats]]:
    """The ``count`` lowest eigenpairs (all, if there are fewer) of parts of the same size, one size at a time.

    Args:
        encoding: the encoding, for errors.
        structures: the graphs, for errors.
        graphs: the same.
        count: number of eigenpairs.
        minutes: time limit for one part, by an estimate.
        components: decompose each connected part separately, not the whole structure.
        normalised: decompose I - D^-1/2 A D^-1/2, else D - A.

    Yields:
        (b, c) nodes; (b, m) eigenvalues; (b, c, m) eigenvectors.

    Raises:
        EncodingError: the iterations for a large graph do not converge, or would take too long by an estimate.
    """
    for nodes, edges in parts(graphs, components):
        size = nodes.shape[1]
        if size > _DENSE and count < size // 4:
            made = _laplacians(nodes, edges, normalised)
            values, vectors = _large(encoding, structures, graphs, nodes, made, count, minutes)
        else:
            check_matrices(encoding, size)
            matrices = (laplacians if normalised else plain_laplacians)(adjacencies(edges, *nodes.shape))
            values, vectors = lowest_dense(matrices, count)
        yield nodes, values, vectors


def per_unit(graphs: Graphs, nodes: NDArray[np.floating]) -> Column:
    """Values of all nodes, as float32 for their units."""
    return Column.of_units(graphs.units, graphs.of_units(nodes.astype(np.float32, copy=False)))


def _laplacians(nodes: Ids, edges: Ids, normalised: bool) -> Iterator[csr_array]:
    """The sparse Laplacian of each part of a group."""
    make = sparse_laplacian if normalised else plain_sparse_laplacian
    for row, members in enumerate(nodes):
        yield make(edges[edges[:, 0] == row, 1:], len(members))


def _large(
    encoding: Encoding,
    structures: Sequence[Structure],
    graphs: Graphs,
    nodes: Ids,
    laplacians_of: Iterable[csr_array],
    count: int,
    minutes: int,
) -> tuple[Floats, Floats]:
    found = []
    for members, matrix in zip(nodes, laplacians_of, strict=True):
        # The solver needs eigenvalues from 0 to 2; those of D - A are at most twice the largest degree.
        largest = max(float(matrix.diagonal().max()), 1.0)
        try:
            values, vectors = lowest_sparse(matrix / largest, count, 60.0 * minutes, largest)
        except (NotConverged, TooLong) as problem:
            which = int(graphs.graph[members[0]])
            raise encoding.error(structures[which], _why(problem, matrix, count, minutes)) from problem
        found.append((values * largest, vectors))
    return np.stack([values for values, _ in found]), np.stack([vectors for _, vectors in found])


def _why(problem: NotConverged | TooLong, matrix: csr_array, count: int, minutes: int) -> str:
    nodes = matrix.shape[0]
    if isinstance(problem, NotConverged):
        return f"{problem} (a part of {nodes} nodes, {count} eigenvectors); give another k, or choose 'random-walk'"
    takes = math.ceil(problem.seconds / 60)
    return (
        f"{count} eigenvectors of a part of {nodes} nodes and {(matrix.nnz - nodes) // 2} edges take about {takes} "
        f"minutes, and {minutes} {'is' if minutes == 1 else 'are'} allowed; encode parts of the graph "
        f"(structpe.transforms.subgraph), choose an encoding that is linear in its size, such as 'degree', or give "
        f"minutes: {takes} to allow it"
    )
