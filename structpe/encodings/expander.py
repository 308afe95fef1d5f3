"""Sparse pairs: the edges, a random regular graph in which every node is a few steps away, and a virtual node.

Shapes: n nodes, m edges.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, eigsh

from structpe.encodings.base import Column, Encoding, check_sizes, flags
from structpe.encodings.columns import ranges, starts_of
from structpe.encodings.graphs import Graphs, ranks_of_all
from structpe.encodings.label_path_search import labels_of, numbers_of_edges
from structpe.errors import EncodingError
from structpe.structure import Ids, Structure

__all__ = ["GENERATORS", "Algorithm", "Expander", "expander", "gap"]


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


_RANDOM, _TO_VIRTUAL, _FROM_VIRTUAL, _ITSELF, _WITHIN, _FIRST = range(6)


@dataclass(frozen=True)
class Expander(Encoding, name="expander"):
    """Sparse pairs: the edges, a random expander, and a virtual node.

    The types of the pairs of the graph's edges, of a random regular graph over its nodes, and of its virtual node.

    ::

        0                a random edge
        1                the query is the virtual node
        2                the key is the virtual node
        3                a unit and itself
        4                two units of one node
        5, 6             an edge with an unknown label, from the query to the key, from the key to the query
        7 + 2i, 8 + 2i   an edge with label i, from the query to the key, from the key to the query

    Edges of an undirected structure have the first type of each two. Each pair is listed once; a pair with several
    types has the first of: virtual, label (the smallest), random. (Shirzad et al. 2023, section 3.) The authors' code
    lists a pair with several types or parallel edges several times, and each of them enters the softmax.

    The random graph is the union of ``degree`` permutations, or rings, so nodes have twice that number of neighbours.
    It is drawn up to ``attempts`` times until its spectral gap is nearly the largest possible; up to 10 nodes it is the
    complete graph. The authors' code tries to remove its loops but keeps them; here they are removed. Numpy's default
    generator starts from ``seed`` for each structure and draws over nodes in reading order; without an order, over
    nodes by number, so another numbering gives another sample.

    Virtual nodes (:func:`structpe.transforms.nodes.with_virtual_node`) are not part of the random graph.

    Args:
        labels: the known labels of edges; :meth:`fit` finds them.
        degree: number of permutations or rings.
        algorithm: ``permutations``, as by default in the code ("Random-d"); ``permutation``, one of ``degree`` copies
            of the nodes ("Random-d-2"); ``cycles`` ("Hamiltonian").
        itself: whether units attend to themselves; in the code only if loops are added to the data.
        seed: seed of the generator.
        attempts: largest number of graphs that are drawn.
    """

    arity = 2
    sparse = True
    version = 2

    labels: tuple[str, ...] = ()
    degree: int = 5
    algorithm: Algorithm = "permutations"
    itself: bool = False
    seed: int = 0
    attempts: int = 100

    def __post_init__(self) -> None:
        check_sizes(self, degree=self.degree, attempts=self.attempts)
        if self.seed < 0:
            raise EncodingError(f"encoding 'expander': the seed is {self.seed}; give 0 or more")

    @property
    def size(self) -> int:
        """Number of types: a learned table has as many rows."""
        return _FIRST + 2 * (len(self.labels) + 1)

    def fit(self, structures: Sequence[Structure]) -> Expander:
        return replace(self, labels=labels_of(structures))

    def many(self, structures: Sequence[Structure]) -> Column:
        graphs = Graphs.of(structures)
        marked = [np.zeros(0, dtype=np.bool_), *(flags(self, each, "virtual") for each in structures)]
        virtual = np.concatenate(marked)
        typed = [self._virtual(graphs, virtual), self._edges(graphs, structures)]
        typed += self._random(graphs, virtual, ranks_of_all(structures))
        return self._of_units(graphs, _first_of_each_pair(np.concatenate(typed), len(virtual), self.size))

    def _virtual(self, graphs: Graphs, virtual: NDArray[np.bool_]) -> Ids:
        """(e, 3) query, key, type."""
        here = np.flatnonzero(virtual)
        graph = graphs.graph[here]
        there = ranges(graphs.start[graph], graphs.sizes[graph])
        here = np.repeat(here, graphs.sizes[graph])
        joined = np.concatenate([np.column_stack([here, there]), np.column_stack([there, here])])
        joined = joined[joined[:, 0] != joined[:, 1]]
        return np.column_stack([joined, np.where(virtual[joined[:, 0]], _TO_VIRTUAL, _FROM_VIRTUAL)])

    def _edges(self, graphs: Graphs, structures: Sequence[Structure]) -> Ids:
        numbers = {label: i for i, label in enumerate(self.labels, start=1)}
        types = _FIRST + 2 * numbers_of_edges(structures, numbers, 0)
        here = np.column_stack([graphs.edges, types])
        directed = np.repeat(graphs.directed, np.diff(graphs.edge_start))
        back = np.column_stack([graphs.edges[:, ::-1], types + directed])
        return np.concatenate([here, back[graphs.edges[:, 0] != graphs.edges[:, 1]]])

    def _random(self, graphs: Graphs, virtual: NDArray[np.bool_], rank: Ids) -> Iterator[Ids]:
        """Graphs of the same size have the same random graph, over their nodes in reading order."""
        order = np.lexsort((rank, graphs.graph))
        real = order[~virtual[order]]
        counts = np.bincount(graphs.graph[real], minlength=len(graphs.sizes))
        first = starts_of(counts)
        for count in np.unique(counts):
            edges = expander(int(count), self.degree, self.algorithm, self.seed, self.attempts)
            edges = edges[edges[:, 0] != edges[:, 1]]
            both = np.concatenate([edges, edges[:, ::-1]])
            pairs = real[(first[:-1][counts == count][:, None, None] + both)].reshape(-1, 2)
            yield np.column_stack([pairs, np.full(len(pairs), _RANDOM)])

    def _of_units(self, graphs: Graphs, typed: Ids) -> Column:
        own = typed[:, 0] == typed[:, 1]
        between, which = graphs.lists_of_units(*typed[~own, :2].T)
        loops = np.full(int(graphs.start[-1]), _ITSELF if self.itself else -1)
        loops[typed[own, 0]] = typed[own, 2]
        of_units = graphs.of_units(loops)
        alone, inner = np.flatnonzero(of_units >= 0), graphs.pairs_inside()
        types, index = np.unique(
            np.concatenate([typed[~own, 2][which], of_units[alone], np.full(len(inner), _WITHIN)]), return_inverse=True
        )
        return graphs.listed(np.concatenate([between, np.column_stack([alone, alone]), inner]), types, index)


def _first_of_each_pair(typed: Ids, nodes: int, types: int) -> Ids:
    """Rows (e, 3) of query, key and type with each pair once, with its smallest type; type 0, random, comes last."""
    # Sorting one number per row is several times faster than sorting rows.
    numbers = (typed[:, 0] * nodes + typed[:, 1]) * types + (typed[:, 2] - 1) % types
    numbers.sort()
    pairs, kinds = np.divmod(numbers, types)
    first = np.diff(pairs, prepend=-1) > 0
    return np.column_stack([*np.divmod(pairs[first], nodes), (kinds[first] + 1) % types])
