"""Laplacian eigenvectors of the graph, and the eigenvalues that belong to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from structpe.encodings._eigenpairs import eigenpairs, per_unit
from structpe.encodings._nearby import ranks_of_all
from structpe.encodings._spectra import canonical_signs
from structpe.encodings.base import Encoded, Encoding, check_sizes
from structpe.errors import EncodingError
from structpe.structure import Structure

__all__ = ["Eigenvalues", "Laplacian"]


@dataclass(frozen=True)
class Laplacian(Encoding, name="laplacian"):
    """V_u: the unit's entries of the k lowest non-trivial eigenvectors of L = I - D^-1/2 A D^-1/2: float32 (k).

    (Dwivedi & Bresson 2020; survey, section 4.3.2.) A_ij = 1 where an edge leads from i to j or from j to i, parallel
    edges and self-loops counting once; D its row sum, at least 1. Eigenvalues ascend, vectors have length 1. Columns
    that a graph of few nodes does not have are zero, which adds nothing to a linear map of the columns; the encoding
    :class:`Eigenvalues` with the same options says which columns are there. All units of a node have its entries.

    Parts: eigenvectors are those of each connected part for itself, its trivial one (eigenvalue 0) dropped, so column j
    holds the j-th vector of every part. Dwivedi & Bresson's code takes the graph as a whole and drops the first vector
    only, so that in a graph of several parts an arbitrary basis of their other trivial ones stays in:
    ``components=False``.

    Sign: the entry of largest magnitude is positive; if two are as large, the next ones decide. What no rule can settle
    stays open: where v and -v have the same entries (every second vector of a path), the first node in reading order,
    or by number, with an entry other than 0 is positive; and of a repeated eigenvalue only the space is determined,
    its basis is the solver's. Models that must not depend on either use an invariant (SignNet, SPE).

    Computed in float64; above 500 nodes by Lanczos iterations from a fixed start, residuals checked.

    Args:
        k: number of eigenvectors.
        components: each connected part for itself.
        skip: how many of the lowest are dropped; 0 keeps the trivial one, as SAN and GraphGPS do.

    Raises:
        EncodingError: the iterations of a large graph do not converge.
    """

    arity = 1
    real = True
    version = 2

    k: int = 8
    components: bool = True
    skip: int = 1

    def __post_init__(self) -> None:
        _check(self)

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> list[Encoded]:
        result = np.zeros((sum(s.size for s in structures), self.k))
        rank = ranks_of_all(structures)
        for nodes, _, vectors in eigenpairs(self, structures, self.skip + self.k, self.components):
            kept = canonical_signs(vectors[..., self.skip :], rank[nodes])
            result[nodes, : kept.shape[-1]] = kept
        return per_unit(structures, result)


@dataclass(frozen=True)
class Eigenvalues(Encoding, name="eigenvalues"):
    """lambda_u: eigenvalues of the vectors that :class:`Laplacian` has for the unit's part: float32 (k).

    From 0 to 2, ascending; -1 where there is no vector, so ``values >= 0`` is the mask of the columns. (An isolated
    node has D = 1 and so the eigenvalue 1, as in Dwivedi & Bresson's code; as the only one of its part, it is dropped
    by ``skip`` 1.)

    Args:
        k, components, skip: as for :class:`Laplacian`.

    Raises:
        EncodingError: the iterations of a large graph do not converge.
    """

    arity = 1
    real = True
    version = 2

    k: int = 8
    components: bool = True
    skip: int = 1

    def __post_init__(self) -> None:
        _check(self)

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> list[Encoded]:
        result = np.full((sum(s.size for s in structures), self.k), -1.0)
        for nodes, values, _ in eigenpairs(self, structures, self.skip + self.k, self.components):
            kept = np.clip(values[:, self.skip :], 0.0, 2.0)  # rounding may leave the range
            result[nodes, : kept.shape[-1]] = kept[:, None]
        return per_unit(structures, result)


def _check(encoding: Laplacian | Eigenvalues) -> None:
    if encoding.k < 1 or encoding.skip < 0:
        raise EncodingError(
            f"encoding {encoding.name!r}: k must be 1 or more and skip 0 or more; they are k {encoding.k}, "
            f"skip {encoding.skip}"
        )
    check_sizes(encoding, k=encoding.k)
