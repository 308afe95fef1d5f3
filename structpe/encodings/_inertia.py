"""Decompositions of large sparse symmetric matrices, and how many eigenvalues lie below a bound, by their pivots.

Sylvester's law of inertia: if A - bound I = M D M^T with D diagonal, as many entries of D are negative as A has
eigenvalues below the bound. This shows what a search missed.
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

_FEW = 0.02  # a share of the nodes: where no more are leaves, taking them away is not worth the time
_LIGHT = 16
_PROBES = 3


@dataclass(frozen=True, eq=False)
class Elimination:
    """In which order the rows of a symmetric matrix are eliminated, and what this takes.

    Rows with one other entry, leaves of the graph, come first, since they add nothing, then those that are leaves
    without them. What is left is put into reverse Cuthill-McKee order.

    Attributes:
        order: (c,) rows.
        entries: how many the factor has at the most; it has fewer, but in a graph in which all is near to all nearly
            as many.
        light: whether these are not many more than those of the matrix.
    """

    order: Ids
    entries: int
    light: bool

    @classmethod
    def of(cls, matrix: csr_array) -> Self:
        """That of a matrix."""
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
        """The decomposition of a matrix with these entries, pivots from its diagonal.

        Raises:
            RuntimeError: a pivot is exactly 0.
        """
        # SuperLU's own order has fewer entries, but takes quadratic time to find where one row has very many.
        kind = "NATURAL" if self.light else "MMD_AT_PLUS_A"
        sorted_rows = matrix[self.order][:, self.order].tocsc()
        found = splu(sorted_rows, permc_spec=kind, diag_pivot_thresh=0.0, options={"SymmetricMode": True})
        return Factors(sorted_rows, found, self.order)


@dataclass(frozen=True, eq=False)
class Factors:
    """L U of a symmetric matrix: U = D L^T.

    Attributes:
        matrix: with its rows in the order of elimination.
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
        """How many pivots are; None if some were not taken from the diagonal, so that they say nothing."""
        pivots = self.found.U.diagonal()
        if (self.found.perm_r != self.found.perm_c).any() or not np.isfinite(pivots).all():
            return None
        return int((pivots < 0).sum())

    def error(self) -> float:
        """About the Frobenius norm of A - L U, which moves no eigenvalue by more: E |E x|^2 = |E|^2 for x ~ N(0, 1)."""
        drawn = np.random.default_rng(0).standard_normal((self.matrix.shape[0], _PROBES))
        made = (self.found.L @ (self.found.U @ drawn[np.argsort(self.found.perm_c)]))[self.found.perm_r]
        return float(np.linalg.norm(self.matrix @ drawn - made, axis=0).max())


def below(matrix: csr_array, elimination: Elimination, bound: float, margin: float) -> int | None:
    """How many eigenvalues of a symmetric matrix are less than a bound that is at least ``margin`` from all of them.

    Returns:
        None if it cannot be told, since rounding errors of the decomposition exceed the margin.
    """
    try:
        factors = elimination.factors(csr_array(matrix - bound * eye_array(matrix.shape[0])))
    except RuntimeError:
        return None
    return factors.negative() if factors.error() < margin else None


def _banded(matrix: csr_array) -> tuple[Ids, int]:
    """An order in which entries lie near the diagonal, and how many places there are from the first of each row on."""
    order = reverse_cuthill_mckee(matrix, symmetric_mode=True).astype(np.int64)
    place = np.argsort(order)
    lowest = np.minimum.reduceat(place[matrix.indices], matrix.indptr[:-1])
    return order, int(np.maximum(place - lowest, 0).sum())
