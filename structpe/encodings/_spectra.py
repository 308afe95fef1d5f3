"""Lowest eigenpairs of the normalised Laplacians of many graphs at once, with signs that do not depend on labels.

Shapes: b graphs of one size, c nodes each, m eigenvectors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, eye_array
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from threadpoolctl import ThreadpoolController

from structpe.encodings._inertia import Elimination, below
from structpe.structure import Ids

__all__ = [
    "NotConverged",
    "TooLong",
    "canonical_signs",
    "laplacians",
    "lowest_dense",
    "lowest_sparse",
    "plain_laplacians",
    "plain_sparse_laplacian",
    "sparse_laplacian",
]

Floats = NDArray[np.float64]

_SAME = 1e-6  # entries of eigenvectors that differ by less are equal: well above rounding
_RESIDUAL = 1e-6
_TOLERANCE = 1e-10
_RESTARTS = 100
_MOST_ENTRIES = 1 << 28  # of a decomposition: 2 GiB
_MARGINS = (1e-11, 1e-9, 1e-7)
_ATTEMPTS = 4
_COUNTED = 1 << 24  # largest number of entries of a decomposition that only counts eigenvalues: 128 MiB
_BASIS, _BASIS_INVERSE = 40, 20  # smallest number of vectors; the inverse needs fewer, as its eigenvalues are separated
_PASSES = 1000  # multiplications by the matrix until convergence
_SECONDS_ENTRY, _SECONDS_BASIS = 10e-9, 2e-9  # per multiplication: for an entry of the matrix, of a vector of the basis
_SHIFT = 1e-3  # makes the Laplacian regular; small, so that the inverse separates the lowest eigenvalues


class NotConverged(ArithmeticError):
    """An iterative solver did not find eigenvectors to the tolerance."""


class TooLong(Exception):
    """The computation would take longer than allowed."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


def laplacians(adjacency: NDArray[np.bool_]) -> Floats:
    """I - D^-1/2 A D^-1/2 of each (c, c) adjacency of a batch; a node without an edge has degree 1."""
    scale = np.maximum(adjacency.sum(axis=-1), 1) ** -0.5
    result: Floats = np.eye(adjacency.shape[-1]) - scale[..., :, None] * adjacency * scale[..., None, :]
    return result


def plain_laplacians(adjacency: NDArray[np.bool_]) -> Floats:
    """D - A of each."""
    result: Floats = np.eye(adjacency.shape[-1]) * adjacency.sum(axis=-1)[..., None] - adjacency
    return result


def sparse_laplacian(edges: Ids, nodes: int) -> csr_array:
    """I - D^-1/2 A D^-1/2 of one large graph, from its (e, 2) undirected edges."""
    adjacency, degree = _sparse_adjacency(edges, nodes)
    scale = diags_array(np.maximum(degree, 1) ** -0.5)
    return csr_array(eye_array(nodes) - scale @ adjacency @ scale)


def plain_sparse_laplacian(edges: Ids, nodes: int) -> csr_array:
    """D - A of one large graph."""
    adjacency, degree = _sparse_adjacency(edges, nodes)
    return csr_array(diags_array(degree.astype(np.float64)) - adjacency)


def _sparse_adjacency(edges: Ids, nodes: int) -> tuple[csr_array, Ids]:
    both = np.concatenate([edges, edges[:, ::-1]]).T
    adjacency = csr_array((np.ones(both.shape[1]), (both[0], both[1])), shape=(nodes, nodes))
    adjacency.data[:] = 1.0  # it was the number of parallel edges
    return adjacency, np.diff(adjacency.indptr)


@cache
def _blas() -> ThreadpoolController:
    """The BLAS libraries: on a busy machine, several threads are up to 27 times as slow as one for small matrices."""
    return ThreadpoolController()


def lowest_dense(matrices: NDArray[Any], count: int) -> tuple[Floats, NDArray[Any]]:
    """(b, m) lowest eigenvalues, ascending, and (b, c, m) eigenvectors of (b, c, c) matrices; m = min(count, c).

    The matrices are real and symmetric, or Hermitian, with complex eigenvectors.
    """
    with _blas().limit(limits=1, user_api="blas"):
        values, vectors = np.linalg.eigh(matrices)
    return values[..., :count], vectors[..., :count]


def lowest_sparse(matrix: csr_array, count: int, seconds: float = math.inf) -> tuple[Floats, Floats]:
    """The same (m,) and (c, m) of one large matrix with eigenvalues in 0..2, by Lanczos iterations from fixed starts.

    If a decomposition is small, the eigenvalues below the largest one found are also counted (:mod:`_inertia`), and
    the search is repeated with another start if some are missing.

    Raises:
        TooLong: by an estimate it takes more than ``seconds`` on one core.
        NotConverged: a residual |L v - lambda v| is above 1e-6; or iterations that converge would take too much
            memory; or eigenvalues are missing after several searches.
    """
    elimination = Elimination.of(matrix)
    if not elimination.light and (estimate := _estimate(matrix, count)) > seconds:
        raise TooLong(estimate)
    for attempt in range(_ATTEMPTS):
        values, vectors, residual = _checked(matrix, _search_all(matrix, elimination, count, attempt))
        if residual > _RESIDUAL:
            raise NotConverged(f"the largest residual is {residual:.0e}, it must be {_RESIDUAL:.0e} at most")
        if not _missing(matrix, elimination, values, residual):
            return values, vectors
    raise NotConverged(f"{_ATTEMPTS} searches from different starts missed some of the lowest eigenvalues")


def _estimate(matrix: csr_array, count: int) -> float:
    """An estimate of the seconds that iterations take on one core."""
    seconds = _SECONDS_ENTRY * int(matrix.nnz) + _SECONDS_BASIS * int(matrix.shape[0]) * max(4 * count, _BASIS)
    return _PASSES * seconds


def _search_all(matrix: csr_array, elimination: Elimination, count: int, attempt: int) -> Floats:
    """(c, count) eigenvectors of the lowest eigenvalues, by iterations with the matrix or with its inverse."""
    vectors = None if elimination.light else _dominant(_mirrored(matrix), count, _BASIS, attempt)
    if vectors is None:  # eigenvalues of long paths and rings are too close to each other; their inverses are not
        if elimination.entries > _MOST_ENTRIES:
            raise NotConverged(
                f"the lowest eigenvalues are too close to each other for iterations with the Laplacian, and its "
                f"inverse would take about {elimination.entries / 2**27:.0f} GiB"
            )
        vectors = _dominant(_inverse(matrix, elimination), count, _BASIS_INVERSE, attempt)
    if vectors is None:
        raise NotConverged("the iteration ended before the eigenvectors were found")
    return vectors


def _checked(matrix: csr_array, vectors: Floats) -> tuple[Floats, Floats, float]:
    """Eigenvalues, ascending, their vectors, and the largest residual."""
    image = matrix @ vectors
    values = np.einsum("cm,cm->m", vectors, image)
    residual = float(np.linalg.norm(image - vectors * values, axis=0).max())
    ascending = np.argsort(values, kind="stable")
    return values[ascending], vectors[:, ascending], residual


def _missing(matrix: csr_array, elimination: Elimination, values: Floats, residual: float) -> bool:
    """Whether eigenvalues below those of the last eigenspace are missing; False if unknown."""
    if elimination.entries > _COUNTED:
        return False
    for margin in _MARGINS:  # rounding errors grow near an eigenvalue
        steps = np.flatnonzero(np.diff(values) > 2 * margin)
        first = int(steps[-1]) + 1 if len(steps) else 0  # of the last eigenspace; any of its vectors suffices
        bound = values[first] - margin
        if residual < margin / 4 and bound > 0:
            counted = below(matrix, elimination, bound, margin / 2)
            if counted is not None:
                return counted > first
    return False


def canonical_signs(vectors: Floats, rank: Ids) -> Floats:
    """(b, c, m) eigenvectors with a sign that depends on their entries, not on the solver.

    The entries of v and those of -v are sorted in descending order. At the first difference, the vector with the
    larger entry is chosen: so the entry of largest magnitude is positive, and the next ones break ties. If v and -v
    have the same entries (an automorphism may exchange them, and then only labels could distinguish them), the first
    node by ``rank`` (b, c) with a nonzero entry is positive.
    """
    ascending = np.sort(vectors, axis=1)
    difference = ascending[:, ::-1] + ascending  # descending entries of v minus those of -v
    telling = _first(np.abs(difference) > _SAME, difference)
    place = np.where(np.abs(vectors) > _SAME, rank[:, :, None], np.iinfo(np.int64).max).argmin(axis=1)
    leading = np.take_along_axis(vectors, place[:, None], axis=1)[:, 0]
    return vectors * np.where(np.where(telling != 0, telling, leading) < 0, -1.0, 1.0)[:, None]


def _first(where: NDArray[np.bool_], values: Floats) -> Floats:
    """(b, m) the first value along axis 1 for which ``where`` is true, 0 without any."""
    place = where.argmax(axis=1)[:, None]
    return np.where(where.any(axis=1), np.take_along_axis(values, place, axis=1)[:, 0], 0.0)


def _dominant(operator: LinearOperator, count: int, basis: int, attempt: int) -> Floats | None:
    """(c, count) eigenvectors of the largest eigenvalues, all of which are positive; None if not found.

    A Krylov space has one vector of each eigenspace, the projection of its start. Copies of a repeated eigenvalue are
    found only by rounding errors, or missed. So the vectors found are projected out and the search is repeated from
    another start, until no larger eigenvalue is left.
    """
    starts = np.random.default_rng(attempt)
    try:
        values, vectors = _search(operator, count, basis, starts)
        while True:
            value, vector = _search(_without(operator, vectors), 1, basis, starts)
            if value[0] <= values.min() * (1 + _TOLERANCE):
                return vectors
            values, vectors = np.append(values, value), np.append(vectors, vector, axis=1)
            kept = np.argsort(-values, kind="stable")[:count]
            values, vectors = values[kept], vectors[:, kept]
    except ArpackNoConvergence:
        return None


def _search(operator: LinearOperator, count: int, basis: int, starts: np.random.Generator) -> tuple[Floats, Floats]:
    size = operator.shape[0]
    found: tuple[Floats, Floats] = eigsh(
        operator,
        count,
        which="LA",
        v0=starts.standard_normal(size),
        ncv=min(size, max(4 * count, basis)),
        maxiter=_RESTARTS,
        tol=_TOLERANCE,
    )
    return found


def _operator(size: int, apply: Callable[[Floats], Floats]) -> LinearOperator:
    return LinearOperator((size, size), matvec=apply, dtype=np.float64)


def _mirrored(matrix: csr_array) -> LinearOperator:
    """2 - L, whose largest eigenvalues are the lowest of L."""
    return _operator(matrix.shape[0], lambda x: 2 * x - matrix @ x)


def _inverse(matrix: csr_array, elimination: Elimination) -> LinearOperator:
    """(L + shift)^-1: the lowest eigenvalues become the largest, and well separated.

    The shift makes L regular. The lowest eigenvalues of a path of c nodes are about 1 / c^2. A much larger shift would
    not separate them, a much smaller one would lose digits.
    """
    shift = max(min(_SHIFT, 1e3 / matrix.shape[0] ** 2), 1e-9)
    factors = elimination.factors(csr_array(matrix + shift * eye_array(matrix.shape[0])))
    return _operator(matrix.shape[0], factors.solve)


def _without(operator: LinearOperator, vectors: Floats) -> LinearOperator:
    """The operator on the orthogonal complement of some of its eigenvectors, and zero on these."""

    def outside(x: Floats) -> Floats:
        remaining: Floats = x - vectors @ (vectors.T @ x)
        return remaining

    return _operator(operator.shape[0], lambda x: outside(operator @ outside(x)))
