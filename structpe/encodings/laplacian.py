"""Laplacian eigenvectors of the graph, and the eigenvalues that belong to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from structpe.encodings._parts import adjacencies, parts
from structpe.encodings._spectra import (
    NotConverged,
    canonical_signs,
    laplacians,
    lowest_dense,
    lowest_sparse,
    sparse_laplacian,
)
from structpe.encodings._trees import starts
from structpe.encodings._units import of_units
from structpe.encodings.base import Encoded, Encoding
from structpe.errors import EncodingError
from structpe.structure import Ids, Structure

__all__ = ["Eigenvalues", "Laplacian"]

Floats = NDArray[np.float64]

_DENSE = 500  # nodes from which on Lanczos iterations beat a full decomposition


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

    k: int = 8
    components: bool = True
    skip: int = 1

    def __post_init__(self) -> None:
        _check(self)

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> list[Encoded]:
        result = np.zeros((sum(s.size for s in structures), self.k))
        rank = np.concatenate([*map(_reading, structures), np.zeros(0, dtype=np.int64)])
        for nodes, _, vectors in _eigenpairs(self, structures):
            result[nodes, : vectors.shape[-1]] = canonical_signs(vectors, rank[nodes])
        return _per_unit(structures, result)


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

    k: int = 8
    components: bool = True
    skip: int = 1

    def __post_init__(self) -> None:
        _check(self)

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> list[Encoded]:
        result = np.full((sum(s.size for s in structures), self.k), -1.0)
        for nodes, values, _ in _eigenpairs(self, structures):
            result[nodes, : values.shape[-1]] = np.clip(values, 0.0, 2.0)[:, None]  # rounding may leave the range
        return _per_unit(structures, result)


def _eigenpairs(
    encoding: Laplacian | Eigenvalues, structures: Sequence[Structure]
) -> Iterator[tuple[Ids, Floats, Floats]]:
    """Parts of one size at a time: (b, c) their nodes, (b, m) eigenvalues, (b, c, m) eigenvectors."""
    count = encoding.skip + encoding.k
    for nodes, edges in parts(structures, encoding.components):
        size = nodes.shape[1]
        if size > _DENSE and count < size // 4:
            values, vectors = _large(encoding, structures, nodes, edges, count)
        else:
            values, vectors = lowest_dense(laplacians(adjacencies(edges, *nodes.shape)), count)
        yield nodes, values[:, encoding.skip :], vectors[..., encoding.skip :]


def _large(
    encoding: Laplacian | Eigenvalues, structures: Sequence[Structure], nodes: Ids, edges: Ids, count: int
) -> tuple[Floats, Floats]:
    found = []
    for row, members in enumerate(nodes):
        matrix = sparse_laplacian(edges[edges[:, 0] == row, 1:], len(members))
        try:
            found.append(lowest_sparse(matrix, count))
        except NotConverged as problem:
            which = int(np.searchsorted(starts(structures), members[0], side="right")) - 1
            raise encoding.error(
                structures[which],
                f"{problem} (a part of {len(members)} nodes, k = {encoding.k}); give another k, or "
                "choose 'random-walk'",
            ) from problem
    return np.stack([values for values, _ in found]), np.stack([vectors for _, vectors in found])


def _per_unit(structures: Sequence[Structure], nodes: Floats) -> list[Encoded]:
    start, narrow = starts(structures), nodes.astype(np.float32)
    return [Encoded(of_units(s, narrow[a:b])) for s, a, b in zip(structures, start, start[1:], strict=False)]


def _check(encoding: Laplacian | Eigenvalues) -> None:
    if encoding.k < 1 or encoding.skip < 0:
        raise EncodingError(
            f"encoding {encoding.name!r}: k must be 1 or more and skip 0 or more; they are k {encoding.k}, "
            f"skip {encoding.skip}"
        )


def _reading(structure: Structure) -> Ids:
    return np.arange(structure.size) if structure.order is None else structure.order
