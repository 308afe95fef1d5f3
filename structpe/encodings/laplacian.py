"""Laplacian eigenvectors of the graph, and their eigenvalues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from structpe.encodings._graphs import Graphs
from structpe.encodings._lowest_eigenpairs import eigenpairs, per_unit
from structpe.encodings._nearby import ranks_of_all
from structpe.encodings._spectra import canonical_signs
from structpe.encodings.base import Column, Encoded, Encoding, check_sizes
from structpe.errors import EncodingError
from structpe.structure import Structure

__all__ = ["Eigenvalues", "Laplacian"]

_EQUAL = 1e-7  # more than the solvers' errors, less than the gaps of long paths


@dataclass(frozen=True)
class Laplacian(Encoding, name="laplacian"):
    """Eigenvectors of the Laplacian of the graph.

    V_u: the unit's entries of the k lowest non-trivial eigenvectors of L = I - D^-1/2 A D^-1/2: float32 (k).

    (Dwivedi & Bresson 2020; survey, section 4.3.2.) A_ij = 1 if an edge leads from i to j or from j to i, where
    parallel edges and self-loops count once; D is its row sum, at least 1. Eigenvalues ascend, vectors have length 1.
    Missing columns of a small graph are zero, which adds nothing to a linear map of the columns; the encoding
    :class:`Eigenvalues` with the same options marks them. All units of a node have its entries.

    Parts: each connected part is decomposed separately and its trivial eigenvector (eigenvalue 0) is dropped, so column
    j has the j-th vector of every part. Dwivedi & Bresson's code decomposes the whole graph and drops the first vector
    only (``components=False``), so that with several parts an arbitrary basis of the other trivial vectors remains.

    Sign: the entry of largest magnitude is positive, and the next ones break ties. If v and -v have the same entries
    (every second vector of a path), the first node in reading order, or by number, with a nonzero entry is positive.
    For a repeated eigenvalue only the space is determined, and the solver chooses its basis; :meth:`repeated` says
    where. Models that must not depend on signs or bases use an invariant (SignNet, SPE).

    Computed in float64; above 500 nodes by Lanczos iterations from fixed starts. Residuals are checked and, if it is
    cheap, eigenvalues are counted, so that no copy of a repeated one is missed. If the computation would take longer
    than ``minutes``, by an estimate for one core, an error is raised before it begins: from about 500,000 nodes on,
    except for trees, paths and graphs that are nearly one.

    Args:
        k: number of eigenvectors.
        components: decompose each connected part separately.
        skip: how many of the lowest are dropped; 0 keeps the trivial one, as SAN and GraphGPS do.
        minutes: time limit for one part of a graph, by an estimate; does not change values.

    Raises:
        EncodingError: the iterations for a large graph do not converge, or would take too long by an estimate.
    """

    arity = 1
    real = True
    version = 2

    k: int = 8
    components: bool = True
    skip: int = 1
    minutes: int = 1

    def __post_init__(self) -> None:
        _check(self)

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        graphs = Graphs.of(structures)
        result = np.zeros((int(graphs.start[-1]), self.k), dtype=np.float32)
        rank = ranks_of_all(structures)
        for nodes, _, vectors in eigenpairs(
            self, structures, graphs, self.skip + self.k, self.minutes, self.components
        ):
            kept = canonical_signs(vectors[..., self.skip :], rank[nodes])
            result[nodes, : kept.shape[-1]] = kept
        return per_unit(graphs, result)

    def repeated(self, structure: Structure) -> NDArray[np.bool_]:
        """(u, k) whether the eigenvalue of an entry is repeated, so that the solver has chosen the eigenvector.

        Eigenvalues that differ by less than 1e-7 are equal. The first one that is left out counts too: k may cut
        through an eigenspace.

        Raises:
            EncodingError: as for :meth:`one`.
        """
        graphs, count = Graphs.of([structure]), self.skip + self.k
        found = np.zeros((int(graphs.start[-1]), self.k))
        for nodes, values, _ in eigenpairs(self, [structure], graphs, count + 1, self.minutes, self.components):
            equal = np.pad(np.diff(values) < _EQUAL, ((0, 0), (1, 1)))
            kept = (equal[:, :-1] | equal[:, 1:])[:, self.skip : count]
            found[nodes, : kept.shape[-1]] = kept[:, None]
        return per_unit(graphs, found).values > 0


@dataclass(frozen=True)
class Eigenvalues(Encoding, name="eigenvalues"):
    """Eigenvalues of the Laplacian of the graph.

    lambda_u: eigenvalues of the vectors of :class:`Laplacian` for the unit's part: float32 (k).

    From 0 to 2, ascending; -1 without a vector, so ``values >= 0`` is the mask of the columns. (An isolated node has
    D = 1 and so the eigenvalue 1, as in Dwivedi & Bresson's code; ``skip=1`` drops it, as the only one of its part.)

    Args:
        k, components, skip, minutes: as for :class:`Laplacian`.

    Raises:
        EncodingError: as for :class:`Laplacian`.
    """

    arity = 1
    real = True
    version = 2

    k: int = 8
    components: bool = True
    skip: int = 1
    minutes: int = 1

    def __post_init__(self) -> None:
        _check(self)

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        graphs = Graphs.of(structures)
        result = np.full((int(graphs.start[-1]), self.k), -1.0, dtype=np.float32)
        count = self.skip + self.k
        for nodes, values, _ in eigenpairs(self, structures, graphs, count, self.minutes, self.components):
            kept = np.clip(values[:, self.skip :], 0.0, 2.0)  # rounding may exceed the range
            result[nodes, : kept.shape[-1]] = kept[:, None]
        return per_unit(graphs, result)


def _check(encoding: Laplacian | Eigenvalues) -> None:
    if encoding.k < 1 or encoding.skip < 0:
        raise EncodingError(
            f"encoding {encoding.name!r}: k must be 1 or more and skip 0 or more; they are k {encoding.k}, "
            f"skip {encoding.skip}"
        )
    check_sizes(encoding, k=encoding.k, minutes=encoding.minutes)
