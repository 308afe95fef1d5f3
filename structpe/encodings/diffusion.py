"""Heat, potentials and resistance: functions of all eigenpairs of the Laplacian."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from structpe.encodings.base import UNREACHABLE, Column, Encoding, check_all_pairs, check_matrices
from structpe.encodings.columns import to_grid
from structpe.encodings.graphs import Graphs, OfNodes, OwnValues, adjacency_matrices
from structpe.encodings.spectra import laplacians, lowest_dense
from structpe.errors import EncodingError
from structpe.structure import Structure

__all__ = ["Electrostatic", "HeatKernel", "Resistance"]


Floats = NDArray[np.float64]

_ZERO = 1e-8
_ERRORS = 64
_LEAST = 2.0**-38  # rounds to 10 decimals


@dataclass(frozen=True)
class Resistance(Encoding, name="resistance"):
    """Resistance between two nodes, with edges as wires.

    R_ts = G_tt + G_ss - 2 G_ts, float64, with G the pseudo-inverse of L = D - A; UNREACHABLE between parts.

    (Klein and Randic 1993; as a position in attention, Zhang et al. 2023.) The effective resistance between the nodes
    of two units if every undirected edge is a wire of resistance 1, where parallel ones count once. It is at most the
    length of a shortest path, and decreases with the number of paths. Units of one node have 0. Each pair of nodes of
    one part has its own row, rounded to more than the errors of the decomposition, so equivalent pairs have the
    same number: to 10 decimals in small graphs, and to fewer in long ones, whose errors are larger. A full
    decomposition takes cubic time in the number of nodes.

    Raises:
        EncodingError: more than 20,000 nodes.
    """

    arity = 2
    real = True
    version = 2
    codes = ("unreachable",)

    def many(self, structures: Sequence[Structure]) -> Column:
        check_all_pairs(self, structures)
        graphs = Graphs.of(structures)
        found = OwnValues(graphs, np.array(float(UNREACHABLE)))
        for members, linked in graphs.adjacencies():
            found.add(members, *_ohms(linked))
        return found.column()


def _ohms(linked: NDArray[np.bool_]) -> tuple[Floats, NDArray[np.bool_]]:
    """(b, n, n) resistances, and which nodes are of one part."""
    values, vectors = lowest_dense(laplacians(linked, normalised=False), linked.shape[1])
    zero = values < _ZERO
    inverse = np.where(zero, 0.0, 1 / np.where(zero, 1.0, values))
    green = vectors * inverse[:, None] @ vectors.swapaxes(1, 2)
    together = vectors * zero[:, None] @ vectors.swapaxes(1, 2) >= _ZERO
    own = np.diagonal(green, axis1=1, axis2=2)
    ohms = np.where(together, own[:, :, None] + own[:, None] - 2 * green, 0.0)
    # The error of an eigenvalue is about eps times the largest one, that of its inverse this over its square.
    spread = values[:, -1] * inverse.max(axis=1)
    errors = np.maximum(_LEAST, _ERRORS * np.finfo(np.float64).eps * spread * ohms.max(axis=(1, 2)))
    return np.maximum(to_grid(ohms, errors[:, None, None]), 0.0), together


@dataclass(frozen=True)
class HeatKernel(OfNodes, name="heat-kernel"):
    """Diffusion of heat: how much remains at its node after some time.

    h_u(t) = sum over j with lambda_j >= 1e-8 of exp(-t lambda_j) v_uj^2, for each time t: float32 (times).

    lambda and v are the eigenvalues and eigenvectors of L = D - A; directions of edges are ignored, and parallel ones
    count once. (HKdiagSE of GraphGPS, Rampasek et al. 2022.) This is the diagonal of exp(-tL) minus its limit, 1 / size
    of the connected part, because the code leaves out the eigenvalue 0. An isolated node has zeros. Signs and bases of
    eigenvectors do not matter. A full decomposition takes cubic time in the number of nodes of a part.

    Args:
        times: t, each above 0.
    """

    real = True

    times: tuple[float, ...] = tuple(range(1, 17))

    def __post_init__(self) -> None:
        if not self.times or not all(0 < time < math.inf for time in self.times):
            raise EncodingError(f"encoding {self.name!r}: times are {self.times}; give one or more, each above 0")

    def of_nodes(self, graphs: Graphs, structures: Sequence[Structure]) -> NDArray[np.float32]:
        result = np.zeros((int(graphs.start[-1]), len(self.times)), dtype=np.float32)
        for nodes, edges in graphs.parts(connected=True):
            check_matrices(self, nodes.shape[1])
            laplacian = laplacians(adjacency_matrices(edges, *nodes.shape), normalised=False)
            values, vectors = lowest_dense(laplacian, nodes.shape[1])
            decay = np.exp(-values[..., None] * np.array(self.times)) * (values >= _ZERO)[..., None]
            result[nodes] = np.square(vectors) @ decay
        return result


@dataclass(frozen=True)
class Electrostatic(OfNodes, name="electrostatic"):
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

    real = True

    def of_nodes(self, graphs: Graphs, structures: Sequence[Structure]) -> NDArray[np.float32]:
        result = np.zeros((int(graphs.start[-1]), 10), dtype=np.float32)
        for nodes, edges in graphs.parts(connected=False):
            check_matrices(self, nodes.shape[1])
            linked = adjacency_matrices(edges, *nodes.shape)
            linked[:, np.arange(nodes.shape[1]), np.arange(nodes.shape[1])] = False
            result[nodes] = _statistics(linked)
        return result


def _statistics(linked: NDArray[np.bool_]) -> Floats:
    """(b, c, 10) of the (b, c, c) adjacencies without loops."""
    laplacian = laplacians(linked, normalised=False)
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
