"""Electrostatic potentials between a node and all nodes, in both directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from structpe.encodings._graphs import Graphs
from structpe.encodings._lowest_eigenpairs import per_unit
from structpe.encodings._parts import adjacencies, parts
from structpe.encodings._spectra import lowest_dense, plain_laplacians
from structpe.encodings.base import Column, Encoded, Encoding, check_matrices
from structpe.structure import Structure

__all__ = ["Electrostatic"]

Floats = NDArray[np.float64]

_ZERO = 1e-8


@dataclass(frozen=True)
class Electrostatic(Encoding, name="electrostatic"):
    """Electrostatic potentials between a node and all nodes, in both directions.

    Ten statistics of E_ij = G_ij - G_jj, with G the pseudo-inverse of L = D - A: float32 (10).

    ::

        of column u:  min_i E_iu,  max_i E_iu,  mean_i E_iu,  std_i E_iu
        of row u:     min_j E_uj,  max_i E_iu,  mean_j E_uj,  std_j E_uj
        of edges:     sum_i (P o E)_iu,  sum_j (P o E)_uj        P = D^-1 A

    (ElstaticSE of GraphGPS, Rampasek et al. 2022; after Kreuzer et al. 2021.) The sixth repeats the second: the code
    uses the column where it means the row. Standard deviations are those of a sample, divided by n - 1. Directions of
    edges are ignored, parallel edges count once and self-loops do not count. The graph is decomposed as a whole. Signs
    and bases of eigenvectors do not matter.

    The values are 0 where the code has NaN: the rows of P of isolated nodes, and the deviations of a single node. The
    code computes in float32 and also inverts the rounding error of the eigenvalue 0 (down to 1e-15 of the largest
    eigenvalue), which adds a constant of about 1e7 to G; it cancels in E, but digits are lost. Here that eigenvalue is
    left out. A full decomposition takes cubic time in the number of nodes.
    """

    arity = 1
    real = True

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        graphs = Graphs.of(structures)
        result = np.zeros((int(graphs.start[-1]), 10), dtype=np.float32)
        for nodes, edges in parts(graphs, connected=False):
            check_matrices(self, nodes.shape[1])
            linked = adjacencies(edges, *nodes.shape)
            linked[:, np.arange(nodes.shape[1]), np.arange(nodes.shape[1])] = False
            result[nodes] = _statistics(linked)
        return per_unit(graphs, result)


def _statistics(linked: NDArray[np.bool_]) -> Floats:
    """(b, c, 10) of the (b, c, c) adjacencies without loops."""
    laplacian = plain_laplacians(linked)
    values, vectors = lowest_dense(laplacian, laplacian.shape[-1])
    inverse = np.where(values > _ZERO, 1 / np.maximum(values, _ZERO), 0.0)
    green = vectors * inverse[:, None] @ vectors.swapaxes(1, 2)
    field = green - np.diagonal(green, axis1=1, axis2=2)[:, None]
    near = linked / np.maximum(linked.sum(axis=2, keepdims=True), 1) * field
    spread = int(field.shape[1] > 1)
    highest = field.max(axis=1)
    column = [field.min(axis=1), highest, field.mean(axis=1), field.std(axis=1, ddof=spread)]
    row = [field.min(axis=2), highest, field.mean(axis=2), field.std(axis=2, ddof=spread)]
    return np.stack([*column, *row, near.sum(axis=1), near.sum(axis=2)], axis=-1)
