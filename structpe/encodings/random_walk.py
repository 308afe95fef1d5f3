"""Random walks: the probability of a return after 1, 2, ... steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array

from structpe.encodings._units import of_units
from structpe.encodings.base import Encoded, Encoding, check_sizes
from structpe.structure import Structure

__all__ = ["RandomWalk"]

_DENSE = 500  # up to this number of nodes, powers of a dense matrix are faster than walks from blocks of nodes
_BLOCK = 256
_CELLS = 1 << 22
_SECONDS = 1e-9
"""Per start, edge (or node) and step on a large graph: 0.5 to 1.0 on random graphs of 5,000 to 20,000 nodes."""


@dataclass(frozen=True)
class RandomWalk(Encoding, name="random-walk"):
    """p_u = [(P)_uu, (P^2)_uu, ..., (P^steps)_uu] with P = D^-1 A: float32 (steps).

    (Dwivedi et al. 2022, LSPE; Rampasek et al. 2022, GraphGPS.) A counts edges, each of several parallel ones and each
    self-loop once; D is its row sum, the out-degree in a directed graph. Rows of nodes without an outgoing edge are
    zero, and so are the values of isolated nodes. LSPE writes A D^-1, whose powers have the same diagonals if A is
    symmetric. All units of a node have its vector.

    Walks begin at each node and follow all edges, so a large graph takes time nodes x edges x steps. If this would take
    longer than ``minutes``, by an estimate for one core, an error is raised before it begins.

    All values of a directed graph without cycles are zero, unless directions are ignored. Nodes that an automorphism
    exchanges have the same vector.

    Args:
        steps: number of steps; computed in float64.
        undirected: ignore directions: max(A, A^T) instead of A.
        minutes: time limit for one graph, by an estimate; does not change values.
    """

    arity = 1
    real = True

    steps: int = 16
    undirected: bool = False
    minutes: int = 10

    def __post_init__(self) -> None:
        check_sizes(self, steps=self.steps, minutes=self.minutes)

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> list[Encoded]:
        if self.undirected:
            structures = [_both_ways(s) for s in structures]
        for structure in structures:
            self._check_time(structure)
        result: dict[int, NDArray[np.float64]] = {}
        small = sorted((s.size, i) for i, s in enumerate(structures) if s.size <= _DENSE)
        for size, group in groupby(small, key=lambda item: item[0]):
            members = [i for _, i in group]
            most = max(1, _CELLS // size**2)
            for chunk in (members[a : a + most] for a in range(0, len(members), most)):
                result |= zip(chunk, _returns(np.stack([_walk(structures[i]) for i in chunk]), self.steps), strict=True)
        for i, structure in enumerate(structures):
            if structure.size > _DENSE:
                result[i] = _sparse_returns(structure, self.steps)
        return [Encoded(of_units(s, result[i].astype(np.float32))) for i, s in enumerate(structures)]

    def _check_time(self, structure: Structure) -> None:
        edges = len(structure.edges) * (1 if structure.directed else 2)
        minutes = _SECONDS / 60 * structure.size * (structure.size + edges) * self.steps
        if minutes > self.minutes:
            raise self.error(
                structure,
                f"{self.steps} steps from each of {structure.size} nodes along {edges} edges take about "
                f"{math.ceil(minutes)} minutes, and {self.minutes} are allowed; take fewer steps, encode parts of the "
                f"graph (structpe.transforms.subgraph), or give minutes: {math.ceil(minutes)} to allow it",
            )


def _both_ways(structure: Structure) -> Structure:
    """The structure with max(A, A^T) instead of the adjacency matrix A."""
    if not structure.directed or not len(structure.edges):
        return structure
    edges, counts = np.unique(structure.edges, axis=0, return_counts=True)
    both = np.concatenate([edges, edges[:, ::-1]])
    pairs, where = np.unique(both, axis=0, return_inverse=True)
    most = np.zeros(len(pairs), dtype=np.int64)
    np.maximum.at(most, where.reshape(-1), np.tile(counts, 2))
    return replace(structure, edges=np.repeat(pairs, most, axis=0), relations=(), features={})


def _walk(structure: Structure) -> NDArray[np.float64]:
    """P = D^-1 A, rows without an edge zero."""
    counts = structure.adjacency()
    walk: NDArray[np.float64] = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    return walk


def _returns(walk: NDArray[np.float64], steps: int) -> NDArray[np.float64]:
    """(b, n, steps) diagonals of the powers of (b, n, n), from half of the powers.

    diag(P^(a+b)) is the row sum of the elementwise product of P^a and the transpose of P^b.
    """
    half = -(-steps // 2)
    powers = [walk]
    while len(powers) < half:
        powers.append(powers[-1] @ walk)
    near = [np.einsum("bii->bi", power) for power in powers]
    far = [np.einsum("bij,bji->bi", powers[-1], power) for power in powers[: steps - half]]
    return np.stack([*near, *far], axis=-1)


def _sparse_returns(structure: Structure, steps: int) -> NDArray[np.float64]:
    """(n, steps) the same for one large graph, a block of target nodes at a time."""
    n, walk = structure.size, _sparse_walk(structure)
    result = np.empty((n, steps))
    for first in range(0, n, _BLOCK):
        nodes = np.arange(first, min(first + _BLOCK, n))
        arrive = eye_array(n, format="csc")[:, nodes].toarray()
        for step in range(steps):
            arrive = walk @ arrive
            result[nodes, step] = arrive[nodes, np.arange(len(nodes))]
    return result


def _sparse_walk(structure: Structure) -> csr_array:
    source, target = structure.edges.T
    if not structure.directed:
        apart = source != target
        source, target = np.concatenate([source, target[apart]]), np.concatenate([target, source[apart]])
    degree = np.bincount(source, minlength=structure.size)
    return csr_array((1.0 / degree[source], (source, target)), shape=(structure.size, structure.size))
