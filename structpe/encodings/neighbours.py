"""Neighbours: the pairs of units whose nodes are joined by an edge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from structpe.encodings._graphs import Graphs
from structpe.encodings._links import links, listed, lists_of_units, pairs_inside
from structpe.encodings.base import WITHIN, Column, Encoded, Encoding
from structpe.structure import Structure

__all__ = ["Neighbours"]

_ITSELF = 4


@dataclass(frozen=True)
class Neighbours(Encoding, name="neighbours"):
    """Neighbours: the pairs of units whose nodes are joined by an edge.

    a_ts for the pairs that an edge joins in any direction; linear in the number of edges.

    With query t and key s, as in :class:`Adjacency`::

        WITHIN + k    t and s belong to one node, s being its k-th unit after t, k != 0
        4             t is s: all units with ``itself``, otherwise those whose node has a self-loop
        3             edges in both directions, or an undirected edge
        2             an edge leads s -> t
        1             an edge leads t -> s

    Parallel edges count as one.

    Args:
        itself: whether each unit is its own neighbour.
    """

    arity = 2
    causal = True
    sparse = True
    codes = ("within",)

    itself: bool = False

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        graphs = Graphs.of(structures)
        first, second, directions = links(graphs)
        joined, which = lists_of_units(graphs, first, second)
        itself = np.full(int(graphs.start[-1]), self.itself)
        itself[graphs.edges[graphs.edges[:, 0] == graphs.edges[:, 1], 0]] = True
        alone, inside = np.flatnonzero(graphs.of_units(itself)), pairs_inside(graphs)
        inner, number = np.unique(inside[:, 1] - inside[:, 0], return_inverse=True)
        return listed(
            graphs,
            np.concatenate([joined, np.column_stack([alone, alone]), inside]),
            np.concatenate([np.arange(1, _ITSELF + 1), WITHIN + inner]),
            np.concatenate([directions[which].astype(np.int64), np.full(len(alone), _ITSELF), _ITSELF + 1 + number])
            - 1,
        )
