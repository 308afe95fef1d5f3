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

_SAME = 1e-6  # entries of eigenvectors nearer than this are equal: well above rounding
_RESIDUAL = 1e-6
_TOLERANCE = 1e-10
_RESTARTS = 100
_MOST_ENTRIES = 1 << 28  # of a decomposition: 2 GiB
_MARGINS = (1e-11, 1e-9, 1e-7)
_ATTEMPTS = 4
_COUNTED = 1 << 24  # entries of a decomposition that is made only to count eigenvalues: 128 MiB
_BASIS, _BASIS_INVERSE = 40, 20  # vectors, at least; few are enough where eigenvalues are far apart
_PASSES = 1000  # multiplications by the matrix, of what converges
_SECONDS_ENTRY, _SECONDS_BASIS = 10e-9, 2e-9  # of each, for an entry of the matrix, and of a vector of the basis
_SHIFT = 1e-3  # keeps the Laplacian plus it regular; small, so that its inverse sets the lowest eigenvalues far apart


class NotConverged(ArithmeticError):
    """An iterative solver did not find eigenvectors to the tolerance."""


class TooLong(Exception):
    """What was asked would take more seconds than are allowed."""

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
    """I - D^-1/2 A D^-1/2 of one large graph, from its (e, 2) edges, each walked both ways."""
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
    adjacency.data[:] = 1.0  # parallel edges, whose sum this was
    return adjacency, np.diff(adjacency.indptr)


@cache
def _blas() -> ThreadpoolController:
    """Small decompositions by several BLAS threads take up to 27 times as long on a busy machine as by one."""
    return ThreadpoolController()


def lowest_dense(matrices: NDArray[Any], count: int) -> tuple[Floats, NDArray[Any]]:
    """(b, m) eigenvalues and (b, c, m) eigenvectors, ascending, m = count or as many as there are.

    Of (b, c, c) real symmetric matrices, or Hermitian ones, whose eigenvectors are complex.
    """
    with _blas().limit(limits=1, user_api="blas"):
        values, vectors = np.linalg.eigh(matrices)
    return values[..., :count], vectors[..., :count]


def lowest_sparse(matrix: csr_array, count: int, seconds: float = math.inf) -> tuple[Floats, Floats]:
    """The same (m,) and (c, m) of one large matrix with eigenvalues in 0..2, by Lanczos iterations from fixed starts.

    Where a decomposition is small, the eigenvalues below the largest that was found are counted too (:mod:`_inertia`),
    and the search starts again elsewhere if some are missing.

    Raises:
        TooLong: by an estimate it takes more than so many seconds on one core.
        NotConverged: a residual |L v - lambda v| above 1e-6; or what would converge takes too much memory; or
            eigenvalues are missing, again and again.
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
    """About how many seconds iterations take on one core."""
    seconds = _SECONDS_ENTRY * int(matrix.nnz) + _SECONDS_BASIS * int(matrix.shape[0]) * max(4 * count, _BASIS)
    return _PASSES * seconds


def _search_all(matrix: csr_array, elimination: Elimination, count: int, attempt: int) -> Floats:
    """(c, count) eigenvectors of the lowest eigenvalues, by iterations with the matrix or with its inverse."""
    vectors = None if elimination.light else _dominant(_mirrored(matrix), count, _BASIS, attempt)
    if vectors is None:  # eigenvalues too near one another, as those of long paths and rings; their inverses are not
        if elimination.entries > _MOST_ENTRIES:
            raise NotConverged(
                f"the lowest eigenvalues are too near one another for iterations with the Laplacian, and its inverse "
                f"would take some {elimination.entries / 2**27:.0f} GiB"
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
    """Whether the matrix has eigenvalues below those of the last eigenspace found that were not; False if unknown."""
    if elimination.entries > _COUNTED:
        return False
    for margin in _MARGINS:  # the nearer to an eigenvalue, the larger rounding errors are
        steps = np.flatnonzero(np.diff(values) > 2 * margin)
        first = int(steps[-1]) + 1 if len(steps) else 0  # of the last eigenspace: any of its vectors will do
        bound = values[first] - margin
        if residual < margin / 4 and bound > 0:
            counted = below(matrix, elimination, bound, margin / 2)
            if counted is not None:
                return counted > first
    return False


def canonical_signs(vectors: Floats, rank: Ids) -> Floats:
    """(b, c, m) eigenvectors with a sign that is a matter of their entries, not of the solver.

    Entries are sorted down, those of v and those of -v; where the two lists first differ, the larger wins: so the
    entry of largest magnitude is positive, and of two that are equally large the next ones decide. If v and -v have
    the same entries (an automorphism may exchange them, and then no rule can tell them apart without looking at
    labels), the first node by ``rank`` (b, c) with an entry other than 0 is positive.
    """
    ascending = np.sort(vectors, axis=1)
    difference = ascending[:, ::-1] + ascending  # sorted down, entries of v minus entries of -v
    telling = _first(np.abs(difference) > _SAME, difference)
    place = np.where(np.abs(vectors) > _SAME, rank[:, :, None], np.iinfo(np.int64).max).argmin(axis=1)
    leading = np.take_along_axis(vectors, place[:, None], axis=1)[:, 0]
    return vectors * np.where(np.where(telling != 0, telling, leading) < 0, -1.0, 1.0)[:, None]


def _first(where: NDArray[np.bool_], values: Floats) -> Floats:
    """(b, m) the first value along axis 1 at which ``where`` holds, 0 if there is none."""
    place = where.argmax(axis=1)[:, None]
    return np.where(where.any(axis=1), np.take_along_axis(values, place, axis=1)[:, 0], 0.0)


def _dominant(operator: LinearOperator, count: int, basis: int, attempt: int) -> Floats | None:
    """(c, count) eigenvectors of the largest eigenvalues, all of which are positive; None if not found.

    A Krylov space holds one vector of each eigenspace, the part of its start there: copies of a repeated eigenvalue are
    found by luck of rounding, or missed. So what was found is taken out and the rest searched again, each time from
    another start, since nothing is left of the part of the last one; until nothing larger is left.
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
    """2 - L: the lowest eigenvalues become the largest."""
    return _operator(matrix.shape[0], lambda x: 2 * x - matrix @ x)


def _inverse(matrix: csr_array, elimination: Elimination) -> LinearOperator:
    """(L + shift)^-1: the lowest become the largest and move far apart.

    The shift keeps L regular. The lowest eigenvalues of a path of c nodes are of the size of 1 / c^2, and a shift much
    above them would leave them together; one much below would cost digits.
    """
    shift = max(min(_SHIFT, 1e3 / matrix.shape[0] ** 2), 1e-9)
    factors = elimination.factors(csr_array(matrix + shift * eye_array(matrix.shape[0])))
    return _operator(matrix.shape[0], factors.solve)


def _without(operator: LinearOperator, vectors: Floats) -> LinearOperator:
    """The operator on what is orthogonal to its eigenvectors; on these, zero."""

    def outside(x: Floats) -> Floats:
        remaining: Floats = x - vectors @ (vectors.T @ x)
        return remaining

    return _operator(operator.shape[0], lambda x: outside(operator @ outside(x)))
