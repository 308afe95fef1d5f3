"""Eigenvectors of the magnetic Laplacian, whose phases follow the direction of edges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from structpe.encodings._graphs import Graphs
from structpe.encodings._lowest_eigenpairs import per_unit
from structpe.encodings._nearby import ranks_of_all
from structpe.encodings._parts import parts
from structpe.encodings._spectra import canonical_signs, laplacians, lowest_dense, plain_laplacians
from structpe.encodings.base import Column, Encoded, Encoding, check_matrices, check_sizes
from structpe.errors import EncodingError
from structpe.structure import Ids, Structure

__all__ = ["MagneticLaplacian"]

Floats = NDArray[np.float64]
Complex = NDArray[np.complex128]

_SAME = 1e-6  # entries that differ by less are equal: well above rounding


@dataclass(frozen=True)
class MagneticLaplacian(Encoding, name="magnetic-laplacian"):
    """Eigenvectors of the magnetic Laplacian, whose phases follow the direction of edges.

    (Re v_uj, Im v_uj, lambda_j) for the k lowest eigenvectors of L = I - D^-1/2 B D^-1/2: float32 (k, 3).

    B_uw = exp(2 pi i q' (A_uw - A_wu)) if an edge joins u and w in any direction, else 0; A_uw = 1 if an edge leads
    from u to w; D is the row sum of |B|, at least 1. (Geisler et al. 2023, section 3; Furutani et al. 2020.) L is
    Hermitian: eigenvalues are real, eigenvectors complex. Along an edge of a graph without cycles the phase decreases
    by 2 pi q', and by another half turn if the vector changes sign. The charge is q' = q / max(min(m, n), 1), for m
    edges with one direction only and n nodes, so that phases make at most q turns. Without such edges L is the ordinary
    Laplacian and the imaginary parts are 0. If there is no j-th vector, the three are 0, 0, -1.

    Phase: a multiple of an eigenvector by a complex number of length 1 is also an eigenvector. Each vector is first
    rotated so that its entry of largest magnitude is positive. Then the node with the largest imaginary part in the
    first vector is chosen, and all vectors with an entry there are rotated so that it is positive. (The authors'
    convention, except for the first step, which removes the phase from the solver.) Ties are broken by the entries
    themselves: in the first step by the imaginary, then the real part of p_u^j conj(sum_w |v_w|^2 p_w^j), p_u = v_u /
    |v_u|, j = 1, 2, 3; in the second by the real part, and then by the other vectors. What is left is a symmetry, and
    the first in reading order, or by number, is taken. If no edge has one direction only, signs are those of
    ``laplacian``. The solver chooses the basis for a repeated eigenvalue.

    Args:
        k: number of eigenvectors.
        q: range of the phases; 0 for the ordinary Laplacian. The authors use 0.1 and 0.25.
        normalised: L as above, else L = D - B.

    Raises:
        EncodingError: k is too small.
    """

    arity = 1
    real = True
    version = 2

    k: int = 8
    q: float = 0.25
    normalised: bool = True

    def __post_init__(self) -> None:
        check_sizes(self, k=self.k)
        if not math.isfinite(self.q):
            raise EncodingError(f"encoding {self.name!r}: q is {self.q}; give a finite number")

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        graphs, rank = Graphs.of(structures), ranks_of_all(structures)
        result = np.empty((int(graphs.start[-1]), self.k, 3), dtype=np.float32)
        for nodes, edges in parts(graphs, connected=False):
            check_matrices(self, nodes.shape[1])
            leads = _leads(edges, nodes.shape[1], ~graphs.directed[graphs.graph[nodes[:, 0]]])
            charged = (leads != leads.swapaxes(1, 2)).any(axis=(1, 2)) & (self.q != 0)
            # The real solver for a real matrix: the complex one may add a phase that the rules do not remove.
            for some in (charged, ~charged):
                if some.any():
                    result[nodes[some]] = self._pairs(leads[some], rank[nodes[some]])
        return per_unit(graphs, result)

    def _pairs(self, leads: NDArray[np.bool_], rank: Ids) -> NDArray[np.float32]:
        """(b, c, k, 3) of (b, c, c) directed adjacencies, all or none with one-way edges; (b, c) ranks."""
        b, c, _ = leads.shape
        joined = leads | leads.swapaxes(1, 2)
        matrices = (laplacians if self.normalised else plain_laplacians)(joined)
        turned = self._turns(leads)
        charged = bool(turned.imag.any())
        values, found = lowest_dense(matrices * turned if charged else matrices, self.k)
        vectors = _phased(found.astype(np.complex128), rank) if charged else canonical_signs(found, rank)
        pairs = np.tile(np.array([0, 0, -1], dtype=np.float32), (b, c, self.k, 1))
        pairs[:, :, : values.shape[1]] = np.stack(
            np.broadcast_arrays(vectors.real, vectors.imag, np.maximum(values, 0.0)[:, None]), axis=-1
        )
        return pairs

    def _turns(self, leads: NDArray[np.bool_]) -> Complex:
        """(b, c, c) exp(2 pi i q' (A - A^T))."""
        way = leads.astype(np.float64) - leads.swapaxes(1, 2)
        edges = np.abs(way).sum(axis=(1, 2)) / 2
        charge = self.q / np.maximum(np.minimum(edges, leads.shape[1]), 1)
        result: Complex = np.exp(2j * np.pi * charge[:, None, None] * way)
        return result


def _leads(edges: Ids, size: int, both: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(b, size, size) whether an edge leads from one node to another; (b,) which parts have no directions."""
    result = np.zeros((len(both), size, size), dtype=np.bool_)
    part, source, target = edges.T
    result[part, source, target] = True
    mirrored = both[part]
    result[part[mirrored], target[mirrored], source[mirrored]] = True
    return result


def _phased(vectors: Complex, rank: Ids) -> Complex:
    """(b, c, m) eigenvectors rotated so that one node of each graph is real in all; the rank (b, c) breaks ties."""
    sizes = np.abs(vectors)
    phases = np.where(sizes > _SAME, vectors / np.maximum(sizes, _SAME), 0.0)
    turns = [phases**p * (sizes**2 * phases**p).sum(axis=1, keepdims=True).conj() for p in (1, 2, 3)]
    vectors = vectors * _back(vectors, _first_largest([sizes, *_parts(turns)], rank))
    columns = np.split(vectors, vectors.shape[2], axis=2)
    return vectors * _back(vectors, _first_largest(_parts(columns), rank))


def _parts(values: Sequence[Complex]) -> list[Floats]:
    """The imaginary and the real part of each."""
    return [part for each in values for part in (each.imag, each.real)]


def _first_largest(values: Sequence[Floats], rank: Ids) -> Ids:
    """(b, 1, m) the node with the largest of (b, c, m) values; the next values break ties, and at last the rank."""
    candidates = np.ones(values[0].shape, dtype=np.bool_)
    for each in values:
        left = np.where(candidates, each, -np.inf)
        candidates = left > left.max(axis=1, keepdims=True) - _SAME
    first: Ids = np.where(candidates, rank[:, :, None], np.iinfo(np.int64).max).argmin(axis=1)[:, None]
    return first


def _back(vectors: Complex, nodes: Ids) -> Complex:
    """(b, 1, m) factors that rotate the entries of some nodes to the positive real axis; 1 for an entry of 0."""
    entries = np.take_along_axis(vectors, np.broadcast_to(nodes, (*nodes.shape[:2], vectors.shape[2])), axis=1)
    sizes = np.abs(entries)
    return np.where(sizes > _SAME, entries.conj() / np.maximum(sizes, _SAME), 1.0)
