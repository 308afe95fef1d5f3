"""Sparse pairs: the edges, a random expander, and a virtual node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from structpe.encodings._nearby import ranks
from structpe.encodings._path_labels import labels_of
from structpe.encodings._regular_graphs import GENERATORS, Algorithm, expander
from structpe.encodings._units import pairs_inside, pairs_of_units
from structpe.encodings.base import Encoded, Encoding, check_sizes, flags
from structpe.errors import EncodingError
from structpe.structure import Ids, Structure

__all__ = ["Expander"]

_RANDOM, _TO_VIRTUAL, _FROM_VIRTUAL, _ITSELF, _WITHIN, _FIRST = range(6)


@dataclass(frozen=True)
class Expander(Encoding, name="expander"):
    """The types of the pairs of the graph's edges, of a random regular graph over its nodes, and of its virtual node.

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
    nodes by number, so that another numbering gives another sample.

    Virtual nodes (:func:`structpe.transforms.virtual.with_virtual_node`) are not part of the random graph.

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
        object.__setattr__(self, "labels", tuple(self.labels))
        if self.degree < 1 or self.attempts < 1:
            raise EncodingError(
                f"encoding 'expander': degree {self.degree}, attempts {self.attempts}; give 1 or more of both"
            )
        check_sizes(self, degree=self.degree, attempts=self.attempts)
        if self.seed < 0:
            raise EncodingError(f"encoding 'expander': the seed is {self.seed}; give 0 or more")
        if self.algorithm not in GENERATORS:
            known = ", ".join(map(repr, GENERATORS))
            raise EncodingError(f"encoding 'expander': algorithm is {self.algorithm!r}; give one of {known}")

    @property
    def size(self) -> int:
        """Number of types: a learned table has as many rows."""
        return _FIRST + 2 * (len(self.labels) + 1)

    def fit(self, structures: Sequence[Structure]) -> Expander:
        return replace(self, labels=labels_of(structures))

    def one(self, structure: Structure) -> Encoded:
        virtual = flags(self, structure, "virtual")
        typed = np.concatenate([self._virtual(virtual), self._edges(structure), self._random(structure, virtual)])
        return self._of_units(structure, _first_of_each_pair(typed, structure.size, self.size))

    def _virtual(self, virtual: NDArray[np.bool_]) -> Ids:
        """(e, 3) query, key, type."""
        ends = np.meshgrid(np.flatnonzero(virtual), np.arange(len(virtual)), indexing="ij")
        here = np.stack(ends, axis=-1).reshape(-1, 2)
        joined = np.concatenate([here, here[:, ::-1]])
        joined = joined[joined[:, 0] != joined[:, 1]]
        return np.column_stack([joined, np.where(virtual[joined[:, 0]], _TO_VIRTUAL, _FROM_VIRTUAL)])

    def _edges(self, structure: Structure) -> Ids:
        numbers = {label: i for i, label in enumerate(self.labels, start=1)}
        known = [numbers.get(label, 0) for label in structure.relations or [""] * len(structure.edges)]
        types = _FIRST + 2 * np.array(known, dtype=np.int64)
        here = np.column_stack([structure.edges, types])
        back = np.column_stack([structure.edges[:, ::-1], types + structure.directed])
        return np.concatenate([here, back[structure.edges[:, 0] != structure.edges[:, 1]]])

    def _random(self, structure: Structure, virtual: NDArray[np.bool_]) -> Ids:
        real = np.flatnonzero(~virtual)
        real = real[np.argsort(ranks(structure)[real])]
        edges = real[expander(len(real), self.degree, self.algorithm, self.seed, self.attempts)]
        edges = edges[edges[:, 0] != edges[:, 1]]
        both = np.concatenate([edges, edges[:, ::-1]])
        return np.column_stack([both, np.full(len(both), _RANDOM)])

    def _of_units(self, structure: Structure, typed: Ids) -> Encoded:
        own = typed[:, 0] == typed[:, 1]
        between, which = pairs_of_units(structure, typed[~own, :2])
        loops = np.full(structure.size, _ITSELF if self.itself else -1)
        loops[typed[own, 0]] = typed[own, 2]
        of_units = loops[structure.unit_owner]
        alone = np.flatnonzero(of_units >= 0)
        inner = pairs_inside(structure)
        return Encoded.of_list(
            np.concatenate([between, np.column_stack([alone, alone]), inner]),
            np.concatenate([typed[~own, 2][which], of_units[alone], np.full(len(inner), _WITHIN)]),
            structure.unit_count,
        )


def _first_of_each_pair(typed: Ids, nodes: int, types: int) -> Ids:
    """Rows (e, 3) of query, key and type with each pair once, with its smallest type; type 0, random, comes last."""
    # Sorting one number per row is several times faster than sorting rows.
    numbers = (typed[:, 0] * nodes + typed[:, 1]) * types + (typed[:, 2] - 1) % types
    numbers.sort()
    pairs, kinds = np.divmod(numbers, types)
    first = np.diff(pairs, prepend=-1) > 0
    return np.column_stack([*np.divmod(pairs[first], nodes), (kinds[first] + 1) % types])
