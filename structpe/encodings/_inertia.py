"""Decompositions of large sparse symmetric matrices, and the number of eigenvalues below a bound, from their pivots.

Sylvester's law of inertia: if A - bound I = M D M^T with D diagonal, the number of negative entries of D is the number
of eigenvalues of A below the bound. This shows whether an iterative search has missed eigenvalues.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import SuperLU, splu

from structpe.structure import Ids

__all__ = ["Elimination", "Factors", "below"]

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
