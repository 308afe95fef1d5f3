"""Numbers for the labels of edges, and the edges among units, for message passing in models of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from structpe.data.adjacency import EdgeIndex
from structpe.structure import Ids, Structure

__all__ = ["EdgeTypes"]


@dataclass(frozen=True)
class EdgeTypes:
    """Numbers for edge labels: each relation along its edge and against it, and the link between units of one node.

    ``2 i`` is relation i along, ``2 i + 1`` against; the last relation stands for labels not seen in training. After
    them come the link from a unit to the next of its node, and the link back.

    Args:
        relations: the labels that have a number of their own.
    """

    relations: tuple[str, ...] = ()

    @classmethod
    def fit(cls, structures: Sequence[Structure]) -> EdgeTypes:
        """From the labels of a training set."""
        return cls(tuple(sorted({relation for s in structures for relation in (s.relations or ("",))})))

    @property
    def size(self) -> int:
        """How many edge labels there are."""
        return 2 * (len(self.relations) + 1) + 2

    def of(self, structure: Structure) -> tuple[Ids, Ids]:
        """(2, E) edges among units, both ways, and (E,) their labels. Every unit of a node has the node's edges."""
        known = {relation: 2 * i for i, relation in enumerate(self.relations)}
        labels = [known.get(structure.relation(e), 2 * len(self.relations)) for e in range(len(structure.edges))]
        source, target, which = _among_units(structure)
        along = np.asarray(labels, dtype=np.int64)[which]
        inner = np.flatnonzero(np.diff(structure.unit_owner) == 0)
        index = np.stack(
            [np.concatenate([source, target, inner, inner + 1]), np.concatenate([target, source, inner + 1, inner])]
        )
        within = np.full(len(inner), self.size - 2)
        return index, np.concatenate([along, along + 1, within, within + 1])

    def messages(self, structure: Structure) -> tuple[EdgeIndex, Ids]:
        """The messages among units, and (E, 1) their labels as features of edges."""
        (source, target), types = self.of(structure)
        order = np.lexsort((source, target))
        source, target = source[order], target[order]
        reverse = np.zeros(len(order), dtype=np.bool_)  # the label tells the direction
        by_source = np.argsort(source, kind="stable")
        return EdgeIndex(source, target, np.arange(len(order)), reverse, by_source), types[order][:, None]


def _among_units(structure: Structure) -> tuple[Ids, Ids, Ids]:
    """Source unit, target unit and number of the edge, for every pair of units that an edge joins."""
    numbers = np.arange(len(structure.edges))
    if structure.owner is None:
        return structure.edges[:, 0], structure.edges[:, 1], numbers
    first = np.searchsorted(structure.owner, np.arange(structure.size + 1))
    count = np.diff(first)
    sources, targets = structure.edges[:, 0], structure.edges[:, 1]
    pairs = count[sources] * count[targets]
    which = np.repeat(numbers, pairs)
    inside = np.arange(len(which)) - np.repeat(np.cumsum(pairs) - pairs, pairs)
    wide = count[targets][which]
    return first[sources[which]] + inside // wide, first[targets[which]] + inside % wide, which
