"""Neighbours: the pairs of units whose nodes are joined by an edge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from structpe.encodings._units import pairs_inside, pairs_of_units
from structpe.encodings.base import WITHIN, Encoded, Encoding
from structpe.structure import Ids, Structure

__all__ = ["Neighbours"]

_AHEAD, _BACK, _ITSELF = 1, 2, 4


@dataclass(frozen=True)
class Neighbours(Encoding, name="neighbours"):
    """a_ts for the pairs that an edge joins in any direction; linear in the number of edges.

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
        pairs, values = _joined(structure)
        joined, which = pairs_of_units(structure, pairs)
        alone = np.arange(structure.unit_count)
        if not self.itself:
            source, target = structure.edges.T
            alone = alone[np.isin(structure.unit_owner, source[source == target])]
        inner = pairs_inside(structure)
        return Encoded.of_list(
            np.concatenate([joined, np.column_stack([alone, alone]), inner]),
            np.concatenate([values[which], np.full(len(alone), _ITSELF), WITHIN + inner[:, 1] - inner[:, 0]]),
            structure.unit_count,
        )


def _joined(structure: Structure) -> tuple[Ids, Ids]:
    """(e, 2) the pairs of different nodes that an edge joins, and (e,) the direction of the edges."""
    edges = structure.edges[structure.edges[:, 0] != structure.edges[:, 1]]
    back = _BACK if structure.directed else _AHEAD | _BACK
    ahead = _AHEAD if structure.directed else _AHEAD | _BACK
    pairs, place = np.unique(np.concatenate([edges, edges[:, ::-1]]), axis=0, return_inverse=True)
    values = np.zeros(len(pairs), dtype=np.int64)
    np.bitwise_or.at(values, place.reshape(-1), np.repeat([ahead, back], len(edges)))
    return pairs, values
