"""Random regular graphs in which every node is only a few steps from every other node.

Shapes: n nodes, m edges.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, eigsh

from structpe.structure import Ids

__all__ = ["GENERATORS", "Algorithm", "expander", "gap"]

Algorithm: TypeAlias = Literal["permutations", "permutation", "cycles"]

_COMPLETE = 10  # up to this number of nodes, the complete graph is used
_DENSE = 400
_LARGE = 20_000  # above this number of nodes, the gap is computed to about 0.002, which is precise enough


def _permutations(nodes: int, degree: int, generator: np.random.Generator) -> Ids:
    """Edges from node i to p_k(i), for each of ``degree`` permutations p_k."""
    ends = np.concatenate([generator.permutation(nodes) for _ in range(degree)])
    return np.stack([np.tile(np.arange(nodes), degree), ends], axis=1)


def _permutation(nodes: int, degree: int, generator: np.random.Generator) -> Ids:
    """Edges from each node, repeated ``degree`` times, to one permutation of these repetitions."""
    starts = np.tile(np.arange(nodes), degree)
    return np.stack([starts, generator.permutation(starts)], axis=1)


def _cycles(nodes: int, degree: int, generator: np.random.Generator) -> Ids:
    """``degree`` rings through all nodes."""
    rings = [generator.permutation(nodes) for _ in range(degree)]
    return np.concatenate([np.stack([ring, np.roll(ring, 1)], axis=1) for ring in rings])


GENERATORS: dict[Algorithm, Callable[[int, int, np.random.Generator], Ids]] = {
    "permutations": _permutations,
    "permutation": _permutation,
    "cycles": _cycles,
}
"""(nodes, degree, generator) -> (nodes * degree, 2) undirected edges, some of them loops or parallel."""


def expander(nodes: int, degree: int, algorithm: Algorithm, seed: int, attempts: int) -> Ids:
    """(m, 2) edges of the first drawn graph with a sufficient spectral gap, or else of the one with the largest gap.

    A gap of 2 degree - 2 sqrt(2 degree - 1) - 0.1 is sufficient, nearly the largest for a regular graph (Ramanujan).
    Graphs of up to 10 nodes are complete.
    """
    if nodes <= _COMPLETE:
        return np.stack(np.triu_indices(nodes, 1), axis=1)
    generator = np.random.default_rng(seed)
    degree = min(degree, nodes - 1)
    enough = max(0.0, 2 * degree - 2 * math.sqrt(2 * degree - 1) - 0.1)
    if enough == 0:  # any gap is sufficient, and that of a few long rings takes very long to compute
        return GENERATORS[algorithm](nodes, degree, generator)
    best, largest = np.zeros((0, 2), dtype=np.int64), -1.0
    for _ in range(attempts):
        edges = GENERATORS[algorithm](nodes, degree, generator)
        if (found := gap(edges, nodes)) > largest:
            best, largest = edges, found
        if found >= enough:
            break
    return best


def gap(edges: Ids, nodes: int) -> float:
    """Second lowest eigenvalue of D - A without the diagonal of A; D counts a loop twice, as in the authors' code."""
    degree = np.bincount(edges.ravel(), minlength=nodes)
    edges = edges[edges[:, 0] != edges[:, 1]]
    # Whole numbers below 2^24 are exact in float32, which halves memory and time for a large graph.
    precision = np.float32 if nodes > _LARGE else np.float64
    ends = np.concatenate([edges, edges[:, ::-1]]).T.astype(np.int32)
    adjacency = csr_array((np.ones(ends.shape[1], dtype=precision), ends), shape=(nodes, nodes))
    if nodes <= _DENSE:
        values: NDArray[np.float64] = np.linalg.eigvalsh(np.diag(degree) - adjacency.toarray())
        return float(values[1])
    most = 2 * int(degree.max())  # an upper bound of the eigenvalues: most - (D - A) turns the lowest into the largest
    mirrored = _plus_diagonal(adjacency, (most - degree).astype(precision))
    start = np.random.default_rng(0).standard_normal(nodes).astype(precision)
    tolerance = 1e-3 if nodes > _LARGE else 0.0
    found = eigsh(mirrored, 2, which="LA", v0=start, return_eigenvectors=False, tol=tolerance)
    return most - float(found.min())


def _plus_diagonal(adjacency: csr_array, diagonal: NDArray[np.floating[Any]]) -> LinearOperator:
    def times(vector: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
        product: NDArray[np.floating[Any]] = adjacency @ vector
        product += diagonal * vector
        return product

    return LinearOperator(adjacency.shape, matvec=times, dtype=adjacency.dtype)
