"""Lowest eigenpairs of the normalised Laplacians of many graphs at once, with signs that do not depend on labels.

Shapes: b graphs of one size, c nodes each, m eigenvectors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array, diags_array, eye_array
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from threadpoolctl import ThreadpoolController

from structpe.encodings import _device
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
Operator: TypeAlias = LinearOperator | csr_array

_SAME = 1e-6  # entries of eigenvectors that differ by less are equal: well above rounding
_RESIDUAL = 1e-5
_TOLERANCE = 3e-6
_TOLERANCE_INVERSE = 1e-10  # eigenvalues of long paths differ by as little, and the inverse finds them in few steps
_ROUGH = 1e-3  # of the search for eigenvectors that are missing, where it shows that the largest left is too small
_RESTARTS = 100
_SOME = 64  # number of nodes from which on a few eigenvectors are found faster than all
_MOST_ENTRIES = 1 << 28  # of a decomposition: 2 GiB
_MARGINS = (1e-11, 1e-9, 1e-7, 1e-5)
_ATTEMPTS = 4
_COUNTED = 1 << 27  # most multiplications of a decomposition that only counts eigenvalues: some 20 ms
_BASIS, _BASIS_INVERSE = 24, 20  # smallest number of vectors; the inverse needs fewer, as its eigenvalues are separated
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
    scale = np.maximum(degree, 1) ** -0.5
    adjacency.data = np.repeat(scale, degree) * scale[adjacency.indices]
    return csr_array(eye_array(nodes, format="csr") - adjacency)


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
    size = matrices.shape[-1]
    if _device.chosen():
        return _device.lowest(matrices, count)
    with _blas().limit(limits=1, user_api="blas"):
        if size < _SOME or count > size // 4 or np.iscomplexobj(matrices):
            values, vectors = np.linalg.eigh(matrices)
            return values[..., :count], vectors[..., :count]
        found = [eigh(each, subset_by_index=(0, count - 1), check_finite=False) for each in matrices]
    return np.stack([values for values, _ in found]), np.stack([vectors for _, vectors in found])


def lowest_sparse(
    matrix: csr_array, count: int, seconds: float = math.inf, scale: float = 1.0
) -> tuple[Floats, Floats]:
    """The same (m,) and (c, m) of one large matrix with eigenvalues in 0..2, by Lanczos iterations from fixed starts.

    If a decomposition is small, the eigenvalues below the largest one found are also counted (:mod:`_inertia`), and
    the search is repeated with another start if some are missing.

    The residuals of ``scale`` times the matrix are as small as those of a matrix that was not divided.

    Raises:
        TooLong: by an estimate it takes more than ``seconds`` on one core.
        NotConverged: a residual |L v - lambda v| is above 1e-5; or iterations that converge would take too much
            memory; or eigenvalues are missing after several searches.
    """
    elimination = Elimination.of(matrix)
    if not elimination.light and (estimate := _estimate(matrix, count)) > seconds:
        raise TooLong(estimate)
    for attempt in range(_ATTEMPTS):
        values, vectors, residual = _checked(
            matrix, _search_all(matrix, elimination, count, _TOLERANCE / scale, attempt)
        )
        if residual > _RESIDUAL:
            raise NotConverged(f"the largest residual is {residual:.0e}, it must be {_RESIDUAL:.0e} at most")
        if not _missing(matrix, elimination, values, residual):
            return values, vectors
    raise NotConverged(f"{_ATTEMPTS} searches from different starts missed some of the lowest eigenvalues")


def _estimate(matrix: csr_array, count: int) -> float:
    """An estimate of the seconds that iterations take on one core."""
    seconds = _SECONDS_ENTRY * int(matrix.nnz) + _SECONDS_BASIS * int(matrix.shape[0]) * max(3 * count, _BASIS)
    return _PASSES * seconds


def _search_all(matrix: csr_array, elimination: Elimination, count: int, tolerance: float, attempt: int) -> Floats:
    """(c, count) eigenvectors of the lowest eigenvalues, by iterations with the matrix or with its inverse."""
    vectors = None if elimination.light else _dominant(_mirrored(matrix), count, _BASIS, tolerance, attempt)
    if vectors is None:  # eigenvalues of long paths and rings are too close to each other; their inverses are not
        if elimination.entries > _MOST_ENTRIES:
            raise NotConverged(
                f"the lowest eigenvalues are too close to each other for iterations with the Laplacian, and its "
                f"inverse would take about {elimination.entries / 2**27:.0f} GiB"
            )
        vectors = _dominant(_inverse(matrix, elimination), count, _BASIS_INVERSE, _TOLERANCE_INVERSE, attempt)
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
    if elimination.entries**2 > _COUNTED * matrix.shape[0]:
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


def _dominant(operator: Operator, count: int, basis: int, tolerance: float, attempt: int) -> Floats | None:
    """(c, count) eigenvectors of the largest eigenvalues, all of which are positive; None if not found.

    A Krylov space has one vector of each eigenspace, the projection of its start. Copies of a repeated eigenvalue are
    found only by rounding errors, or missed. So the vectors found are taken out and the search is repeated from another
    start, until no larger eigenvalue is left.
    """
    starts = np.random.default_rng(attempt)
    try:
        values, vectors = _search(operator, count, basis, tolerance, starts)
        while True:
            rest = _without(operator, values, vectors)
            value, vector = _search(rest, 1, _BASIS_INVERSE, _ROUGH, starts)
            if value[0] * (1 + _ROUGH) < values.min():  # the error is at most the residual
                return vectors
            value, vector = _search(rest, 1, basis, tolerance, starts)
            if value[0] <= values.min() * (1 + tolerance):
                return vectors
            vector -= vectors @ (vectors.T @ vector)
            values = np.append(values, value)
            vectors = np.append(vectors, vector / np.linalg.norm(vector), axis=1)
            kept = np.argsort(-values, kind="stable")[:count]
            values, vectors = values[kept], vectors[:, kept]
    except ArpackNoConvergence:
        return None


def _search(
    operator: Operator, count: int, basis: int, tolerance: float, starts: np.random.Generator
) -> tuple[Floats, Floats]:
    size = operator.shape[0]
    found: tuple[Floats, Floats] = eigsh(
        operator,
        count,
        which="LA",
        v0=starts.standard_normal(size),
        ncv=min(size, max(3 * count, basis)),
        maxiter=_RESTARTS,
        tol=tolerance,
    )
    return found


def _operator(size: int, apply: Callable[[Floats], Floats]) -> LinearOperator:
    return LinearOperator((size, size), matvec=apply, dtype=np.float64)


def _mirrored(matrix: csr_array) -> csr_array:
    """2 - L, whose largest eigenvalues are the lowest of L."""
    return csr_array(2 * eye_array(matrix.shape[0], format="csr") - matrix)


def _inverse(matrix: csr_array, elimination: Elimination) -> LinearOperator:
    """(L + shift)^-1: the lowest eigenvalues become the largest, and well separated.

    The shift makes L regular. The lowest eigenvalues of a path of c nodes are about 1 / c^2. A much larger shift would
    not separate them, a much smaller one would lose digits.
    """
    shift = max(min(_SHIFT, 1e3 / matrix.shape[0] ** 2), 1e-9)
    factors = elimination.factors(csr_array(matrix + shift * eye_array(matrix.shape[0])))
    return _operator(matrix.shape[0], factors.solve)


def _without(operator: Operator, values: Floats, vectors: Floats) -> LinearOperator:
    """The operator with the eigenvalues of some of its eigenvectors made 0."""
    known, scaled = np.ascontiguousarray(vectors), np.ascontiguousarray((values * vectors).T)
    return _operator(operator.shape[0], lambda x: operator @ x - known @ (scaled @ x))
