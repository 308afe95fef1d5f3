"""Lowest eigenpairs of the normalised Laplacians of many graphs, with signs that do not depend on the order of nodes.

Sylvester's law of inertia: if A - bound I = M D M^T with D diagonal, the number of negative entries of D is the number
of eigenvalues of A below the bound. This shows whether an iterative search has missed eigenvalues. Shapes: b graphs of
one size, c nodes each, m eigenvectors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array, diags_array, eye_array
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, SuperLU, eigsh, splu
from threadpoolctl import ThreadpoolController

from structpe.encodings import device
from structpe.encodings.base import Encoding, check_matrices
from structpe.encodings.columns import starts_of
from structpe.encodings.graphs import Graphs, chosen_device
from structpe.structure import Ids, Structure

__all__ = [
    "Elimination",
    "Factors",
    "NotConverged",
    "TooLong",
    "below",
    "canonical_signs",
    "eigenpairs",
    "laplacians",
    "lowest_dense",
    "lowest_sparse",
    "sparse_laplacian",
    "with_signs",
]


Floats = NDArray[np.float64]

_FEW = 0.02  # if a smaller share of the nodes are leaves, removing them is not worth the time
_LIGHT = 16
_PROBES = 3


@dataclass(frozen=True, eq=False)
class Elimination:
    """The order in which the rows of a symmetric matrix are eliminated, and the cost.

    Rows with one other entry, leaves of the graph, come first, since they add no entries; then the leaves of the rest.
    The remaining rows are in reverse Cuthill-McKee order.

    Attributes:
        order: (c,) rows.
        entries: an upper bound of the entries of the factor; nearly reached if all nodes are near to each other.
        light: whether this is not much more than the number of entries of the matrix.
    """

    order: Ids
    entries: int
    light: bool

    @classmethod
    def of(cls, matrix: csr_array) -> Self:
        """Find the order for a matrix."""
        rest = csr_array(abs(matrix) + eye_array(matrix.shape[0]))  # a row of zeros has an entry too
        rows, taken, entries = np.arange(matrix.shape[0]), [], 0
        while (leaves := np.diff(rest.indptr) <= 2).sum() > _FEW * len(leaves):
            taken.append(rows[leaves])
            entries += 2 * int(leaves.sum())
            rest, rows = csr_array(rest[~leaves][:, ~leaves]), rows[~leaves]
        if len(rows):
            last, more = _banded(rest)
            taken, entries = [*taken, rows[last]], entries + more
        return cls(np.concatenate(taken), entries, entries <= _LIGHT * (matrix.nnz + matrix.shape[0]))

    def factors(self, matrix: csr_array) -> Factors:
        """Decompose a matrix with this pattern, with pivots from its diagonal.

        Raises:
            RuntimeError: a pivot is exactly 0.
        """
        # SuperLU's own order has fewer entries, but takes quadratic time if one row has very many.
        kind = "NATURAL" if self.light else "MMD_AT_PLUS_A"
        sorted_rows = matrix[self.order][:, self.order].tocsc()
        found = splu(sorted_rows, permc_spec=kind, diag_pivot_thresh=0.0, options={"SymmetricMode": True})
        return Factors(sorted_rows, found, self.order)


@dataclass(frozen=True, eq=False)
class Factors:
    """L U of a symmetric matrix: U = D L^T.

    Attributes:
        matrix: the matrix, with rows in the order of elimination.
        found: the factors.
        order: (c,) rows.
    """

    matrix: csr_array
    found: SuperLU
    order: Ids

    def solve(self, x: Floats) -> Floats:
        """A^-1 x for (c,) x."""
        result = np.empty_like(x)
        result[self.order] = self.found.solve(x[self.order])
        return result

    def negative(self) -> int | None:
        """Number of negative pivots; None if some pivots were not taken from the diagonal and mean nothing."""
        pivots = self.found.U.diagonal()
        if (self.found.perm_r != self.found.perm_c).any() or not np.isfinite(pivots).all():
            return None
        return int((pivots < 0).sum())

    def error(self) -> float:
        """An estimate of |E|, E = A - L U, which bounds errors of eigenvalues: E |E x|^2 = |E|^2 for x ~ N(0, 1)."""
        drawn = np.random.default_rng(0).standard_normal((self.matrix.shape[0], _PROBES))
        made = (self.found.L @ (self.found.U @ drawn[np.argsort(self.found.perm_c)]))[self.found.perm_r]
        return float(np.linalg.norm(self.matrix @ drawn - made, axis=0).max())


def below(matrix: csr_array, elimination: Elimination, bound: float, margin: float) -> int | None:
    """Number of eigenvalues of a symmetric matrix below a bound that is at least ``margin`` from all of them.

    Returns:
        The number, or None if rounding errors of the decomposition exceed the margin.
    """
    try:
        factors = elimination.factors(csr_array(matrix - bound * eye_array(matrix.shape[0])))
    except RuntimeError:
        return None
    return factors.negative() if factors.error() < margin else None


def _banded(matrix: csr_array) -> tuple[Ids, int]:
    """An order in which entries are near the diagonal, and the number of places from the first entry of each row on."""
    order = reverse_cuthill_mckee(matrix, symmetric_mode=True).astype(np.int64)
    place = np.argsort(order)
    lowest = np.minimum.reduceat(place[matrix.indices], matrix.indptr[:-1])
    return order, int(np.maximum(place - lowest, 0).sum())


_SAME = 1e-6  # entries of eigenvectors that differ by less are equal: well above rounding
_RESIDUAL = 1e-5
_TOLERANCE = 3e-6
_SINGLE = 1e-6  # the smallest tolerance of iterations in float32
_TOLERANCE_INVERSE = 1e-10  # eigenvalues of long paths differ by as little, and the inverse finds them in few steps
_ROUGH = 1e-3  # of the search for eigenvectors that are missing, where it shows that the largest left is too small
_RESTARTS = 100
_ALONE = 32  # number of nodes up to which BLAS takes one thread anyhow
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


def laplacians(adjacency: NDArray[np.bool_], normalised: bool = True) -> Floats:
    """I - D^-1/2 A D^-1/2, or D - A, of each (c, c) adjacency of a batch; D^-1/2 is 1 for a node without an edge."""
    degree, one = adjacency.sum(axis=-1), np.eye(adjacency.shape[-1])
    if not normalised:
        plain: Floats = one * degree[..., None] - adjacency
        return plain
    scale = np.maximum(degree, 1) ** -0.5
    result: Floats = one - scale[..., :, None] * adjacency * scale[..., None, :]
    return result


def sparse_laplacian(edges: Ids, nodes: int, normalised: bool = True) -> csr_array:
    """The same of one large graph, from its (e, 2) undirected edges."""
    ends = np.concatenate([edges, edges[:, ::-1]]).T
    adjacency = csr_array((np.ones(ends.shape[1]), (ends[0], ends[1])), shape=(nodes, nodes))
    adjacency.data[:] = 1.0  # it was the number of parallel edges
    degree = np.diff(adjacency.indptr)
    if not normalised:
        return csr_array(diags_array(degree.astype(np.float64)) - adjacency)
    scale = np.maximum(degree, 1) ** -0.5
    adjacency.data = np.repeat(scale, degree) * scale[adjacency.indices]
    return csr_array(eye_array(nodes, format="csr") - adjacency)


@cache
def _blas() -> ThreadpoolController:
    """The BLAS libraries: on a busy machine, several threads are up to 27 times as slow as one for small matrices."""
    return ThreadpoolController()


def lowest_dense(matrices: NDArray[Any], count: int) -> tuple[Floats, NDArray[Any]]:
    """(b, m) lowest eigenvalues, ascending, and (b, c, m) eigenvectors of (b, c, c) matrices; m = min(count, c).

    The matrices are real and symmetric, or Hermitian, with complex eigenvectors.
    """
    size = matrices.shape[-1]
    if chosen_device():
        return device.lowest(matrices, count)
    with _blas().limit(limits=1, user_api="blas") if size > _ALONE else nullcontext():
        if size < _SOME or count > size // 4 or np.iscomplexobj(matrices):
            values, vectors = np.linalg.eigh(matrices)
            return values[..., :count], vectors[..., :count]
        found = [eigh(each, subset_by_index=(0, count - 1), check_finite=False) for each in matrices]
    return np.stack([values for values, _ in found]), np.stack([vectors for _, vectors in found])


def lowest_sparse(
    matrix: csr_array, count: int, seconds: float = math.inf, scale: float = 1.0
) -> tuple[Floats, Floats]:
    """The same (m,) and (c, m) of one large matrix with eigenvalues in 0..2, by Lanczos iterations from fixed starts.

    If a decomposition is small, the eigenvalues below the largest one found are also counted (:func:`below`), and
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
    vectors = None
    if not elimination.light:
        vectors = _mirrored(matrix, count, tolerance, attempt)
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


def _mirrored(matrix: csr_array, count: int, tolerance: float, attempt: int) -> Floats | None:
    """The same by iterations with 2 I - L, whose largest eigenvalues are the lowest of L; None if not found.

    The first attempt is in float32, in two thirds of the time, and counts if residuals in float64 are small enough.
    """
    mirrored = csr_array(2 * eye_array(matrix.shape[0], format="csr") - matrix)
    if attempt == 0 and tolerance >= _SINGLE:
        found = _dominant(_Product.of(mirrored.astype(np.float32)), count, _BASIS, tolerance, attempt)
        if found is not None:
            orthonormal: Floats = np.linalg.qr(found.astype(np.float64))[0]
            if _checked(matrix, orthonormal)[2] <= _RESIDUAL:
                return orthonormal
    return _dominant(_Product.of(mirrored), count, _BASIS, tolerance, attempt)


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
    """(b, c, m) eigenvectors with the signs of :func:`with_signs`, for graphs of one size and ranks (b, c)."""
    b, c, m = vectors.shape
    return with_signs(vectors.reshape(b * c, m), rank.reshape(-1), np.arange(b) * c).reshape(b, c, m)


def with_signs(vectors: Floats, rank: Ids, start: Ids) -> Floats:
    """(T, m) eigenvectors with signs that depend on their entries, not on the solver.

    The entries of v and those of -v are sorted in descending order. At the first difference, the vector with the
    larger entry is chosen: so the entry of largest magnitude is positive, and the next ones break ties. If v and -v
    have the same entries (an automorphism may exchange them, and then only labels could distinguish them), the first
    node by rank with a nonzero entry is positive.

    Args:
        vectors: of all graphs, one after the other.
        rank: (T,) of the nodes; different within a graph.
        start: (g,) the first node of each graph.
    """
    if not len(start):
        return vectors
    sizes = np.append(start[1:], len(vectors)) - start
    sign = np.maximum.reduceat(vectors, start) + np.minimum.reduceat(vectors, start)  # that tells of most
    graph, column = np.nonzero(np.abs(sign) <= _SAME)
    widths = np.frexp(sizes[graph] - 0.5)[1]  # of powers of 2
    for power in set(widths.tolist()):
        some, width = np.flatnonzero(widths == power), 1 << power  # zeros are added to v and -v alike
        mine, place = graph[some], np.arange(width)
        there = place < sizes[mine, None]
        rows = np.where(there, start[mine, None] + place, 0)
        entries = np.where(there, vectors[rows, column[some, None]], 0.0)
        sign[mine, column[some]] = _tied_signs(entries, rank[rows])
    return vectors * np.where(sign < 0, -1.0, 1.0).repeat(sizes, axis=0)


def _tied_signs(vectors: Floats, rank: Ids) -> Floats:
    """(t,) numbers with the signs of (t, c) vectors, by the rank (t, c) of nonzero entries if no other rule decides."""
    ascending = np.sort(vectors, axis=1)
    difference = ascending + ascending[:, ::-1]  # entries of v minus those of -v
    telling = np.abs(difference) > _SAME
    some, first = np.arange(len(vectors)), telling.argmax(axis=1)
    place = np.where(np.abs(vectors) > _SAME, rank, np.iinfo(np.int64).max).argmin(axis=1)
    result: Floats = np.where(telling[some, first], difference[some, first], vectors[some, place])
    return result


class _Product(LinearOperator):  # type: ignore[misc]  # SciPy has no types
    """A matrix known by its products with vectors, without LinearOperator's checks, which take as long as a product.

    Args:
        size: number of rows and of columns.
        dtype: of the vectors.
        product: from a vector to its product.
    """

    def __init__(self, size: int, dtype: Any, product: Callable[[Floats], Floats]) -> None:
        super().__init__(dtype, (size, size))
        self._product = product

    @classmethod
    def of(cls, matrix: csr_array) -> Self:
        """Of a square matrix."""
        return cls(matrix.shape[0], matrix.dtype, matrix.__matmul__)

    def matvec(self, x: Floats) -> Floats:
        return self._product(x)

    _matvec = matvec  # without it, scipy warns


def _dominant(operator: _Product, count: int, basis: int, tolerance: float, attempt: int) -> Floats | None:
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
    operator: _Product, count: int, basis: int, tolerance: float, starts: np.random.Generator
) -> tuple[Floats, Floats]:
    size = operator.shape[0]
    found: tuple[Floats, Floats] = eigsh(
        operator,
        count,
        which="LA",
        v0=starts.standard_normal(size).astype(operator.dtype),
        ncv=min(size, max(3 * count, basis)),
        maxiter=_RESTARTS,
        tol=tolerance,
    )
    return found


def _inverse(matrix: csr_array, elimination: Elimination) -> _Product:
    """(L + shift)^-1: the lowest eigenvalues become the largest, and well separated.

    The shift makes L regular. The lowest eigenvalues of a path of c nodes are about 1 / c^2. A much larger shift would
    not separate them, a much smaller one would lose digits.
    """
    shift = max(min(_SHIFT, 1e3 / matrix.shape[0] ** 2), 1e-9)
    factors = elimination.factors(csr_array(matrix + shift * eye_array(matrix.shape[0])))
    return _Product(matrix.shape[0], np.float64, factors.solve)


def _without(operator: _Product, values: Floats, vectors: Floats) -> _Product:
    """The operator with the eigenvalues of some of its eigenvectors made 0."""
    known, scaled = np.ascontiguousarray(vectors), np.ascontiguousarray((values * vectors).T)
    return _Product(operator.shape[0], operator.dtype, lambda x: operator.matvec(x) - known @ (scaled @ x))


_DENSE = 500  # number of nodes above which Lanczos iterations are faster than a full decomposition
_REGULAR = 0.1  # above, both vectors of a singular value are exact to a few roundings
_LEAST = 1e-12  # instead of smaller squares, which rounding may make negative
_SEARCHED = 256  # up to so many nodes, lists are searched in less time than a sparse matrix is made
_CELLS = 1 << 22  # of the matrices of a group


def eigenpairs(
    encoding: Encoding,
    structures: Sequence[Structure],
    graphs: Graphs,
    count: int,
    minutes: int,
    components: bool,
    normalised: bool = True,
) -> Iterator[tuple[Ids, Floats, Floats]]:
    """The ``count`` lowest eigenpairs (all, if there are fewer) of parts of the same size, some at a time.

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
    for group in _groups(graphs, components, count, normalised):
        size = group.nodes.shape[1]
        if not _is_large(size, count):
            check_matrices(encoding, size)
            yield group.nodes, *_decomposed(group, count, normalised)
            continue
        for nodes, edges in zip(group.nodes, group.edges(), strict=True):
            structure = structures[int(graphs.graph[nodes[0]])]
            matrix = sparse_laplacian(edges, size, normalised)
            values, vectors = _large(encoding, structure, matrix, count, minutes)
            yield nodes[None], values[None], vectors[None]


def _is_large(sizes: Any, count: int) -> Any:
    return (sizes > _DENSE) & (count < sizes // 4)


@dataclass(frozen=True, eq=False)
class _Group:
    """Parts of one size.

    Attributes:
        nodes: (b, c) their nodes, ascending; with two sides, those of the first side before those of the other.
        degree: (b, c) the same.
        first: number of nodes of the first side; 0 without sides.
        cells: (e,) places of the edges in flat (b, c, c) matrices, or with sides (b, first, c - first); ascending.
        weights: (e,) entries of D^-1/2 A D^-1/2, or of A.
    """

    nodes: Ids
    degree: Ids
    first: int
    cells: Ids
    weights: Floats

    def adjacency(self) -> Floats:
        """(b, c, c) weights, or with sides (b, first, c - first)."""
        count, size = self.nodes.shape
        result = np.zeros((count, self.first or size, size - self.first))
        result.reshape(-1)[self.cells] = self.weights
        return result if self.first else np.maximum(result, result.swapaxes(1, 2))

    def edges(self) -> list[Ids]:
        """(e, 2) edges of each part, without sides."""
        count, size = self.nodes.shape
        ends = np.searchsorted(self.cells, np.arange(1, count) * size**2)
        return [np.stack(np.divmod(mine % size**2, size), axis=1) for mine in np.split(self.cells, ends)]


def _groups(graphs: Graphs, connected: bool, count: int, normalised: bool) -> Iterator[_Group]:
    """Groups of connected parts, or of whole structures; for D^-1/2 A D^-1/2 some have sides of ``count`` or more."""
    if int(graphs.start[-1]) <= _SEARCHED:
        yield from _few_groups(graphs, connected, count, normalised)
        return
    nodes, start, first = _ordered(graphs, connected, count, normalised)
    sizes, place = np.diff(start), np.empty_like(nodes)
    place[nodes] = np.arange(len(nodes))
    part = np.repeat(np.arange(len(sizes)), sizes)[place]
    ends, which = place[graphs.edges.T], part[graphs.edges[:, 0]]
    source, target = np.minimum(*ends), np.maximum(*ends)
    width, begin = sizes - first, starts_of(np.where(first > 0, first, sizes) * (sizes - first))
    cells = begin[which] + (source - start[which]) * width[which] + target - (start[:-1] + first)[which]
    cells, edges = np.unique(cells, return_index=True)  # parallel edges count once
    source, target = source[edges], target[edges]
    degree = np.bincount(np.concatenate([source, target[source != target]]), minlength=len(nodes))
    scale = np.maximum(degree, 1) ** -0.5
    weights = scale[source] * scale[target] if normalised else np.ones(len(cells))
    borders = np.flatnonzero(np.diff(sizes, prepend=-1, append=-1) | np.diff(first, prepend=-1, append=-1)).tolist()
    for low, high in pairwise(borders):
        most = max(1, _CELLS // int(sizes[low]) ** 2)
        for a in range(low, high, most):
            b = min(a + most, high)
            inside = slice(*np.searchsorted(cells, begin[[a, b]]).tolist())
            of_nodes, degrees = (each[start[a] : start[b]].reshape(b - a, -1) for each in (nodes, degree))
            yield _Group(of_nodes, degrees, int(first[a]), cells[inside] - begin[a], weights[inside])


def _ordered(graphs: Graphs, connected: bool, count: int, normalised: bool) -> tuple[Ids, Ids, Ids]:
    """(T,) nodes in the order of groups and sides, (p + 1,) where each part begins, and (p,) its ``_Group.first``."""
    part, side = _sides(graphs)
    part = part if connected else graphs.graph
    sizes = np.bincount(part)
    other = np.bincount(part[side > 0], minlength=len(sizes))
    first = np.minimum(other, sizes - other)
    first[(first < count) | _is_large(sizes, count) | (not normalised)] = 0
    first[part[side < 0]] = 0
    after = ((side > 0) != (2 * other < sizes)[part]) & (first > 0)[part]
    order = np.argsort(sizes * (len(part) + 1) + first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return np.argsort(2 * rank[part] + after, kind="stable"), starts_of(sizes[order]), first[order]


def _sides(graphs: Graphs) -> tuple[Ids, Ids]:
    """(T,) the connected part of each node, and its side: each edge joins sides 0 and 1, or all are -1.

    The sides are the parts of a graph with two copies of each node, whose edges lead from one copy to the other: copies
    are connected by a cycle of odd length.
    """
    nodes = int(graphs.start[-1])
    ends = np.concatenate([graphs.edges, graphs.edges[:, ::-1]]).T + np.array([[0], [nodes]])
    cover = csr_array((np.ones(ends.shape[1], dtype=np.int8), (ends[0], ends[1])), shape=(2 * nodes, 2 * nodes))
    one, copy = connected_components(cover, directed=False)[1].reshape(2, nodes).astype(np.int64)
    lower = np.minimum(one, copy)
    numbers = np.cumsum(np.bincount(lower, minlength=2 * nodes) > 0) - 1
    return numbers[lower], np.where(one == copy, -1, one > copy)


def _searched(nodes: int, edges: list[list[int]]) -> tuple[list[list[int]], list[set[int]], list[int]]:
    """The connected parts, the neighbours of each node, and its side."""
    near: list[set[int]] = [set() for _ in range(nodes)]
    for source, target in edges:
        near[source].add(target)
        near[target].add(source)
    side, parts = [-2] * nodes, []
    for node in range(nodes):
        if side[node] == -2:
            side[node], reached, odd = 0, [node], False
            for at in reached:
                other = 1 - side[at]
                for to in near[at]:
                    if side[to] == -2:
                        side[to] = other
                        reached.append(to)
                    elif side[to] != other:
                        odd = True
            for at in reached if odd else ():
                side[at] = -1
            parts.append(reached)
    return parts, near, side


def _few_groups(graphs: Graphs, connected: bool, count: int, normalised: bool) -> Iterator[_Group]:
    """The same groups of few nodes, each of one part: NumPy's calls for the others take longer than lists."""
    total = int(graphs.start[-1])
    parts, near, side = _searched(total, graphs.edges.tolist())
    if not connected:
        start = graphs.start.tolist()
        parts = [list(range(begin, end)) for begin, end in pairwise(start)]
    scale = np.maximum(list(map(len, near)), 1) ** -0.5 if normalised else None
    for part in parts:
        of = [side[node] for node in part]
        other = sum(of)
        first = min(other, len(part) - other)
        if not normalised or -1 in of or first < count:
            part.sort()
            first = 0
        else:
            before = int(2 * other < len(part))
            part.sort(key=lambda node: (side[node] != before, node))
        yield _few(part, first, near, scale)


def _few(part: list[int], first: int, near: list[set[int]], scale: Floats | None) -> _Group:
    size = len(part)
    place = {node: number for number, node in enumerate(part)}
    pairs = [(place[node], other) for node in part for to in near[node] if (other := place[to]) >= place[node]]
    pairs.sort()
    source, target = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    nodes = np.array(part, dtype=np.int64)
    weights = np.ones(len(pairs))
    if scale is not None:
        scale = scale[nodes]
        weights = scale[source] * scale[target]
    cells = source * (size - first) + target - first
    degree = np.array([len(near[node]) for node in part], dtype=np.int64)
    return _Group(nodes[None], degree[None], first, cells, weights)


def _decomposed(group: _Group, count: int, normalised: bool) -> tuple[Floats, Floats]:
    """(b, m) lowest eigenvalues and (b, c, m) eigenvectors of a group by full decompositions."""
    steps = group.adjacency()
    one = np.eye(group.nodes.shape[1])
    if not group.first:
        return lowest_dense((one if normalised else one * group.degree[:, None]) - steps, count)
    values, vectors = _by_sides(steps, count)
    if (again := values[:, -1] > 1 - _REGULAR).any():
        whole = np.tile(one, (int(again.sum()), 1, 1))
        whole[:, : group.first, group.first :] = -steps[again]
        whole[:, group.first :, : group.first] = -steps[again].swapaxes(1, 2)
        values[again], vectors[again] = lowest_dense(whole, count)
    return values, vectors


def _by_sides(steps: Floats, count: int) -> tuple[Floats, Floats]:
    """The same of the steps (b, p, q) from one side to the other, p <= q, by matrices of p x p.

    If the edges of a graph join two sides only, S = D^-1/2 A D^-1/2 is [[0, B], [B^T, 0]]. Its eigenvalues are s and -s
    of the singular values of B, its eigenvectors (u, v) / sqrt(2) and (u, -v) / sqrt(2) with B B^T u = s^2 u and
    v = B^T u / s.
    """
    back = steps.swapaxes(1, 2)
    squares, vectors = lowest_dense(-(steps @ back), count)
    singular = np.sqrt(np.maximum(-squares, _LEAST))
    whole: Floats = np.concatenate([vectors, back @ (vectors / singular[:, None])], axis=1) * math.sqrt(0.5)
    return 1 - singular, whole


def _large(
    encoding: Encoding, structure: Structure, matrix: csr_array, count: int, minutes: int
) -> tuple[Floats, Floats]:
    # The solver needs eigenvalues from 0 to 2; those of D - A are at most twice the largest degree.
    largest = max(float(matrix.diagonal().max()), 1.0)
    try:
        values, vectors = lowest_sparse(matrix / largest, count, 60.0 * minutes, largest)
    except (NotConverged, TooLong) as problem:
        raise encoding.error(structure, _why(problem, matrix, count, minutes)) from problem
    return values * largest, vectors


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
