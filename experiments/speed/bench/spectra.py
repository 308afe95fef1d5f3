"""Of the Laplacian: eigenvectors, resistances, heat."""

from __future__ import annotations

from typing import Any

import networkx
import numpy as np
from numpy.typing import NDArray
from peers import networkx_graph, pyg_data, scipy_matrix
from quantities import Peer, Quantity, from_rows
from scipy.linalg import eigh, expm
from scipy.sparse import csgraph, csr_array
from scipy.sparse.linalg import eigsh
from torch_geometric.transforms import AddLaplacianEigenvectorPE

from structpe.encodings import Encoded, HeatKernel, Laplacian, Resistance
from structpe.structure import Structure

__all__ = ["SPECTRA"]

Floats = NDArray[np.float64]
VECTORS, LARGE = 8, 100
TIMES = HeatKernel().times


def _told(structure: Structure, given: Any) -> Floats:
    """What holds of eigenvectors (n, k) whatever their signs and, in a repeated eigenvalue, their basis.

    Their eigenvalues v^T L v, how far L v is from them, and all products of two. If the first agree with those of
    another solver, the second are 0 and the third those of an orthonormal basis, both span the same eigenspaces.
    """
    vectors = np.asarray(given, dtype=np.float64)
    image = csgraph.laplacian(scipy_matrix(structure), normed=True) @ vectors
    values = np.einsum("nk,nk->k", vectors, image)
    off = np.linalg.norm(image - vectors * values, axis=0)
    return np.concatenate([values, off, (vectors.T @ vectors).ravel()])


def _by_scipy(matrix: csr_array) -> Floats:
    laplacian = csgraph.laplacian(matrix, normed=True)
    if matrix.shape[0] <= LARGE:
        vectors: Floats = eigh(laplacian.toarray(), subset_by_index=[1, VECTORS])[1]
        return vectors
    values, vectors = eigsh(laplacian, VECTORS + 1, which="SA")
    return vectors[:, np.argsort(values)[1:]]


PYG = AddLaplacianEigenvectorPE(VECTORS, is_undirected=True)


def _ours(structure: Structure, encoded: Encoded) -> Floats:
    return _told(structure, encoded.values)


def _ohms(_: Structure, encoded: Encoded) -> Floats:
    return encoded.pairs()


def _heat(_: Structure, encoded: Encoded) -> Floats:
    return encoded.values


def _expm(matrix: csr_array) -> Floats:
    laplacian = csgraph.laplacian(matrix).toarray()
    return np.stack([np.diagonal(expm(-time * laplacian)) for time in TIMES], axis=1)


SPECTRA = (
    # The graph as a whole, as theirs do. DGL's lap_pe asks its solver for two digits only, and would not pass.
    Quantity(
        Laplacian(VECTORS, components=False),
        _ours,
        (
            Peer("scipy", scipy_matrix, _by_scipy, _told),
            Peer(
                "PyG",
                pyg_data,
                PYG,
                lambda s, data: _told(s, data.laplacian_eigenvector_pe),
                named="PyG, is_undirected=True",
            ),
        ),
        ("larger molecules", "larger AMR graphs", "drawn graphs", "one drawn graph"),
        close=1e-4,  # PyG's entries are of float32
    ),
    Quantity(
        Resistance(),
        _ohms,
        (
            Peer(
                "networkx",
                networkx_graph,
                networkx.resistance_distance,
                lambda s, rows: from_rows(s.size, rows.items(), np.inf),
            ),
        ),
        ("larger molecules", "drawn graphs"),
        close=1e-8,
    ),
    Quantity(
        HeatKernel(),
        _heat,
        # Ours leaves out the constant eigenvector, which adds 1 / n in a connected graph.
        (Peer("scipy", scipy_matrix, _expm, lambda s, heat: heat - 1 / s.size),),
        ("larger molecules", "drawn graphs"),
        close=1e-6,
    ),
)
