"""Motifs: in how many ways small graphs can be laid on the graph so that their root is at a node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from structpe.encodings import _motifs
from structpe.encodings._graphs import Graphs
from structpe.encodings._parts import squares
from structpe.encodings.base import Column, Encoded, Encoding, check_matrices
from structpe.errors import EncodingError
from structpe.structure import Structure

__all__ = ["Motifs"]

_WIDEST = 3
_CELLS = 1 << 22
_DIAMONDS = (((0, 1), (0, 2), (0, 3), (1, 2), (2, 3)), ((0, 1), (0, 2), (1, 2), (1, 3), (2, 3)))
"""Two triangles with an edge in common, from an end of that edge, and from another vertex."""


@dataclass(frozen=True)
class Motifs(Encoding, name="motifs"):
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

    arity = 1
    real = True

    motifs: tuple[str | _motifs.Motif, ...] = (*(f"cycle-{k}" for k in range(3, 9)), *_DIAMONDS)
    by_degree: bool = False

    def __post_init__(self) -> None:
        given = tuple(each if isinstance(each, str) else _edges(each) for each in self.motifs)
        object.__setattr__(self, "motifs", given)
        if not given:
            raise EncodingError(f"encoding {self.name!r} needs one motif or more, such as 'cycle-6'; none is given")
        for each, edges in zip(given, self._all(), strict=True):
            _check(each, edges)

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        graphs, motifs = Graphs.of(structures), self._all()
        most, widest = int(graphs.sizes.max(initial=0)), max(map(_motifs.width, motifs))
        check_matrices(self, most, most if widest == _WIDEST else 1)
        counts = np.empty((int(graphs.start[-1]), len(motifs)), dtype=np.float64)
        for members, linked in squares(graphs):
            n = linked.shape[1]
            block = max(1, _CELLS // n**widest)
            for first in range(0, len(members), block):
                adjacency = linked[first : first + block].astype(np.float64)
                weights = 1 / np.maximum(adjacency.sum(axis=2), 1) if self.by_degree else None
                nodes = graphs.start[members[first : first + block]][:, None] + np.arange(n)
                for i, edges in enumerate(motifs):
                    counts[nodes, i] = _motifs.rooted_counts(edges, adjacency, weights)
        return Column.of_units(graphs.units, graphs.of_units(counts))

    def _all(self) -> list[_motifs.Motif]:
        """The edges of each motif."""
        return [_motifs.motif(each) or () if isinstance(each, str) else each for each in self.motifs]


def _edges(given: _motifs.Motif) -> _motifs.Motif:
    """Edges as sorted pairs of numbers, each once."""
    return tuple(sorted({(min(pair), max(pair)) for pair in given}))


def _check(given: str | _motifs.Motif, edges: _motifs.Motif) -> None:
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
    if (width := _motifs.width(edges)) > _WIDEST:
        raise EncodingError(
            f"encoding 'motifs': counting {given!r} takes an array with n^{width} numbers for n nodes; at most "
            f"n^{_WIDEST} is allowed, as for 'clique-4'"
        )
