"""Motifs: in how many ways small graphs with a root can be laid on the graph so that their root is at a node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from structpe.encodings.base import check_matrices
from structpe.encodings.graphs import Graphs, OfNodes
from structpe.errors import EncodingError
from structpe.structure import Structure

__all__ = ["Motif", "Motifs", "elimination", "motif", "rooted_counts", "width"]


Motif: TypeAlias = tuple[tuple[int, int], ...]
"""Edges between the vertices 0, 1, ...; 0 is the root."""
Floats = NDArray[np.float64]
Factor: TypeAlias = tuple[tuple[int, ...], Floats]
"""Vertices, and an array (b, n, ...) with one axis for each."""

_MOST_VERTICES = 12


def motif(name: str) -> Motif | None:
    """Of a name: ``cycle-K``, ``path-K`` (from an end), ``star-K`` (from its middle) or ``clique-K``, K vertices each.

    A cycle of two vertices is an edge. None for any other name.
    """
    kind, _, size = name.partition("-")
    if not size.isdecimal() or not 2 <= (k := int(size)) <= _MOST_VERTICES:
        return None
    path = [(i, i + 1) for i in range(k - 1)]
    made = {
        "cycle": path if k == 2 else [*path, (0, k - 1)],
        "path": path,
        "star": [(0, i) for i in range(1, k)],
        "clique": list(combinations(range(k), 2)),
    }
    return tuple(made[kind]) if kind in made else None


def elimination(edges: Motif) -> list[tuple[int, int]]:
    """The vertices but the root in the order in which they are summed over, each with its number of neighbours then.

    The one with the fewest neighbours is the next.
    """
    near = {v: {b for e in edges for b in e if v in e and b != v} for e in edges for v in e}
    order = []
    while len(near) > 1:
        v = min((each for each in near if each), key=lambda each: (len(near[each]), each))
        around = near.pop(v)
        order.append((v, len(around)))
        for each in around:
            near[each] = (near[each] | around) - {v, each}
    return order


def width(edges: Motif) -> int:
    """How many axes of n the largest array has that counting needs."""
    return max(size for _, size in elimination(edges))


def rooted_counts(edges: Motif, adjacency: Floats, weights: Floats | None) -> Floats:
    """(b, n) how many homomorphisms, each weighed by the product of the weights of its images, map the root to a node.

    Args:
        edges: of the motif.
        adjacency: (b, n, n) A, symmetric.
        weights: (b, n); None for 1.
    """
    factors: list[Factor] = [(edge, adjacency) for edge in edges]
    if weights is not None:
        factors += [((v,), weights) for v in {v for edge in edges for v in edge}]
    for v, _ in elimination(edges):
        those = [factor for factor in factors if v in factor[0]]
        factors = [factor for factor in factors if v not in factor[0]]
        factors.append(_summed(v, those))
    counts: Floats = reduce(np.multiply, (array for _, array in factors))
    return counts


def _summed(v: int, factors: Sequence[Factor]) -> Factor:
    """The product of the factors, summed over a vertex that all of them have."""
    left = tuple(sorted({each for scope, _ in factors for each in scope} - {v}))
    if any(len(scope) > 2 for scope, _ in factors):
        letters = {vertex: chr(ord("a") + i) for i, vertex in enumerate((v, *left))}
        terms = ["z" + "".join(letters[each] for each in scope) for scope, _ in factors]
        expression = f"{','.join(terms)}->z{''.join(letters[each] for each in left)}"
        return left, np.einsum(expression, *(array for _, array in factors))
    single = [array for scope, array in factors if len(scope) == 1]
    towards: dict[int, Floats] = {}  # products of matrices by their other vertex, v last
    for scope, array in factors:
        if len(scope) == 2:
            a, turned = (scope[0], array) if scope[1] == v else (scope[1], array.swapaxes(1, 2))
            towards[a] = towards[a] * turned if a in towards else turned
    first = towards[left[0]]
    if single:
        first = first * reduce(np.multiply, single)[:, None]
    if len(left) == 1:
        return left, first.sum(axis=2)
    if len(left) == 2:
        return left, first @ towards[left[1]].swapaxes(1, 2)
    a, b, c = left
    return (c, a, b), (first[:, None] * towards[c][:, :, None]) @ towards[b].swapaxes(1, 2)[:, None]


_WIDEST = 3
_CELLS = 1 << 22
_DIAMONDS = (((0, 1), (0, 2), (0, 3), (1, 2), (2, 3)), ((0, 1), (0, 2), (1, 2), (1, 3), (2, 3)))
"""Two triangles with an edge in common, from an end of that edge, and from another vertex."""


@dataclass(frozen=True)
class Motifs(OfNodes, name="motifs"):
    """Motifs: in how many ways small graphs can be laid on the graph so that their root is at a node.

    [number of homomorphisms of F into the graph that map the root of F to u, for each motif F]: float64.

    A homomorphism maps vertices of F to nodes so that every edge of F is mapped to an edge; several vertices may be
    mapped to one node. (MoSE; Bao et al. 2025, section 3. Their counts for cycles are closed walks, those for stars
    powers of degrees.) With ``by_degree`` each homomorphism counts as the product of 1/degree of the images of all
    vertices: then the cycles of K vertices give the random walks that are back after K steps, as ``random-walk`` does.

    A motif is ``cycle-K``, ``path-K`` with the root at an end, ``star-K`` with the root in the middle, ``clique-K``, of
    K vertices each, or a list of edges between the vertices 0, 1, ..., whose root is 0. Edges of the graph have no
    direction here, and parallel ones count once. Counts are by sums over one vertex of the motif after another, which
    takes n^3 steps per sum for the n nodes of a graph, or n^4 and memory n^3 where a vertex has three neighbours when
    its turn comes, as in ``clique-4``. Numbers above 2^53 are rounded. All units of a node have its vector.

    Args:
        motifs: names, or tuples of edges.
        by_degree: whether homomorphisms are weighed by degrees.

    Raises:
        EncodingError: no motif, one that is not connected, has a loop, or needs an array with more than three axes of
            n, as ``clique-5`` does; or more nodes than memory has room for, 20,000 in general.
    """

    real = True

    motifs: tuple[str | Motif, ...] = (*(f"cycle-{k}" for k in range(3, 9)), *_DIAMONDS)
    by_degree: bool = False

    def __post_init__(self) -> None:
        given = tuple(each if isinstance(each, str) else _edges(each) for each in self.motifs)
        object.__setattr__(self, "motifs", given)
        if not given:
            raise EncodingError(f"encoding {self.name!r} needs one motif or more, such as 'cycle-6'; none is given")
        for each, edges in zip(given, self._all(), strict=True):
            _check(each, edges)

    def of_nodes(self, graphs: Graphs, structures: Sequence[Structure]) -> Floats:
        motifs = self._all()
        most, widest = int(graphs.sizes.max(initial=0)), max(map(width, motifs))
        check_matrices(self, most, most if widest == _WIDEST else 1)
        counts = np.empty((int(graphs.start[-1]), len(motifs)), dtype=np.float64)
        for members, linked in graphs.adjacencies():
            n = linked.shape[1]
            block = max(1, _CELLS // n**widest)
            for first in range(0, len(members), block):
                adjacency = linked[first : first + block].astype(np.float64)
                weights = 1 / np.maximum(adjacency.sum(axis=2), 1) if self.by_degree else None
                nodes = graphs.start[members[first : first + block]][:, None] + np.arange(n)
                for i, edges in enumerate(motifs):
                    counts[nodes, i] = rooted_counts(edges, adjacency, weights)
        return counts

    def _all(self) -> list[Motif]:
        """The edges of each motif."""
        return [motif(each) or () if isinstance(each, str) else each for each in self.motifs]


def _edges(given: Motif) -> Motif:
    """Edges as sorted pairs of numbers, each once."""
    return tuple(sorted({(min(pair), max(pair)) for pair in given}))


def _check(given: str | Motif, edges: Motif) -> None:
    if not edges:
        raise EncodingError(
            f"encoding 'motifs' has no motif {given!r}; give cycle-K, path-K, star-K or clique-K with K from 2 to 12, "
            f"or the edges"
        )
    vertices, reached = {v for edge in edges for v in edge}, {0}
    for _ in vertices:
        reached |= {v for edge in edges for v in edge if reached & set(edge)}
    if vertices != set(range(len(vertices))) or reached != vertices or any(a == b for a, b in edges):
        raise EncodingError(
            f"encoding 'motifs': the edges {given!r} must connect the vertices 0, 1, ... with one another, and "
            f"have no loop"
        )
    if (wide := width(edges)) > _WIDEST:
        raise EncodingError(
            f"encoding 'motifs': counting {given!r} takes an array with n^{wide} numbers for n nodes; at most "
            f"n^{_WIDEST} is allowed, as for 'clique-4'"
        )
