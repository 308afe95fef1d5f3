"""Diffusion of heat: how much remains at its node after some time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from structpe.encodings._graphs import Graphs
from structpe.encodings._lowest_eigenpairs import per_unit
from structpe.encodings._parts import adjacencies, parts
from structpe.encodings._spectra import lowest_dense, plain_laplacians
from structpe.encodings.base import Column, Encoded, Encoding, check_matrices
from structpe.errors import EncodingError
from structpe.structure import Structure

__all__ = ["HeatKernel"]

_ZERO = 1e-8


@dataclass(frozen=True)
class HeatKernel(Encoding, name="heat-kernel"):
    """Diffusion of heat: how much remains at its node after some time.

    h_u(t) = sum over j with lambda_j >= 1e-8 of exp(-t lambda_j) v_uj^2, for each time t: float32 (times).

    lambda and v are the eigenvalues and eigenvectors of L = D - A; directions of edges are ignored, and parallel ones
    count once. (HKdiagSE of GraphGPS, Rampasek et al. 2022.) This is the diagonal of exp(-tL) minus its limit, 1 / size
    of the connected part, because the code leaves out the eigenvalue 0. An isolated node has zeros. Signs and bases of
    eigenvectors do not matter. A full decomposition takes cubic time in the number of nodes of a part.

    Args:
        times: t, each above 0.
    """

    arity = 1
    real = True

    times: tuple[float, ...] = tuple(range(1, 17))

    def __post_init__(self) -> None:
        if not self.times or not all(0 < time < math.inf for time in self.times):
            raise EncodingError(f"encoding {self.name!r}: times are {self.times}; give one or more, each above 0")

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        graphs = Graphs.of(structures)
        result = np.zeros((int(graphs.start[-1]), len(self.times)), dtype=np.float32)
        for nodes, edges in parts(graphs, connected=True):
            check_matrices(self, nodes.shape[1])
            values, vectors = lowest_dense(plain_laplacians(adjacencies(edges, *nodes.shape)), nodes.shape[1])
            decay = np.exp(-values[..., None] * np.array(self.times)) * (values >= _ZERO)[..., None]
            result[nodes] = np.square(vectors) @ decay
        return per_unit(graphs, result)
