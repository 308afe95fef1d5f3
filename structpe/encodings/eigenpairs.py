"""Eigenvectors and eigenvalues of the graph together, with the number of the eigenspace of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from structpe.encodings._graphs import Graphs
from structpe.encodings._lowest_eigenpairs import eigenpairs, per_unit
from structpe.encodings._nearby import ranks_of_all
from structpe.encodings._norms import NORMS, Norm
from structpe.encodings._spectra import canonical_signs
from structpe.encodings.base import Column, Encoded, Encoding, check_sizes
from structpe.errors import EncodingError
from structpe.structure import Structure

__all__ = ["Eigenpairs"]

Floats = NDArray[np.float64]

_SAME = 1e-7  # eigenvalues that differ by less are equal: more than the solvers' errors, less than gaps of long paths


@dataclass(frozen=True)
class Eigenpairs(Encoding, name="eigenpairs"):
    """Eigenvectors and eigenvalues of the graph together, with the number of the eigenspace of each.

    (v_uj, lambda_j, e_j) for the k lowest eigenvectors: float32 (k, 3).

    v_uj is the unit's entry of the j-th eigenvector of L, lambda_j its eigenvalue, and e_j = 0, 1, ... the number of
    the eigenspace: vectors with the same eigenvalue have the same number, and any orthonormal basis of them is
    equivalent. If there is no j-th vector, the three are 0, -1, -1. The graph is decomposed as a whole, and its lowest
    vectors are kept, as in SAN (Kreuzer et al. 2021), GraphGPS (Rampasek et al. 2022), SignNet and BasisNet (Lim et al.
    2023) and SPE (Huang et al. 2024). Signs are fixed as in the encoding ``laplacian``.

    Eigenvalues of L = I - D^-1/2 A D^-1/2 are 0 to 2, an isolated node has 1. Those of L = D - A are 0 to 2 max D.

    Args:
        k: number of eigenvectors.
        skip: how many of the lowest are dropped.
        normalised: L = I - D^-1/2 A D^-1/2, else L = D - A.
        norm: how the vectors are scaled; see :data:`Norm`.
        whole: leave out the last eigenspace if k cuts it. Its remaining vectors would be the solver's choice, so that
            every function of them would depend on the basis.
        minutes: time limit for one graph, by an estimate; does not change values.

    Raises:
        EncodingError: k or skip is too small; the iterations for a large graph do not converge, or would take too long
            by an estimate.
    """

    arity = 1
    real = True
    version = 2

    k: int = 8
    skip: int = 0
    normalised: bool = True
    norm: Norm = "L2"
    whole: bool = False
    minutes: int = 1

    def __post_init__(self) -> None:
        if self.k < 1 or self.skip < 0:
            raise EncodingError(
                f"encoding {self.name!r}: k must be 1 or more and skip 0 or more; they are k {self.k}, skip {self.skip}"
            )
        check_sizes(self, k=self.k, minutes=self.minutes)

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        graphs = Graphs.of(structures)
        result = np.tile(np.array([0, -1, -1], dtype=np.float32), (int(graphs.start[-1]), self.k, 1))
        rank, count = ranks_of_all(structures), self.skip + self.k
        found = eigenpairs(self, structures, graphs, count + self.whole, self.minutes, False, self.normalised)
        for nodes, values, vectors in found:
            values = np.maximum(values, 0.0)  # rounding may exceed the range
            numbers = _numbers(values)
            there = slice(self.skip, min(count, values.shape[1]))
            kept = NORMS[self.norm](canonical_signs(vectors[..., there], rank[nodes]), values[:, there])
            first = numbers[:, self.skip : self.skip + 1]  # numbers begin at 0 after skipping
            of_all = values[:, None, there], (numbers[:, there] - first)[:, None]
            pairs = np.stack([kept, *(np.broadcast_to(each, kept.shape) for each in of_all)], axis=-1)
            if values.shape[1] > count:
                cut = numbers[:, None, there] == numbers[:, None, count:]
                pairs[np.broadcast_to(cut, kept.shape)] = (0, -1, -1)
            result[nodes, : pairs.shape[2]] = pairs
        return per_unit(graphs, result)


def _numbers(values: Floats) -> NDArray[np.int64]:
    """(b, m) number of the eigenspace of each eigenvalue, ascending."""
    return np.cumsum(np.diff(values, axis=1, prepend=values[:, :1]) > _SAME, axis=1)
