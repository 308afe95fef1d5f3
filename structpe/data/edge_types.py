"""Numbers for edge labels, and the edges among units, for message passing in text models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from structpe.data.adjacency import EdgeIndex
from structpe.structure import Ids, Structure

__all__ = ["EdgeTypes"]


@dataclass(frozen=True)
class EdgeTypes:
    """Numbers for edge labels: each relation in both directions, and the links between the units of one node.

    ``2 i`` is relation i, ``2 i + 1`` its reverse; the last relation is for labels not seen in training. After them
    come the link from a unit to the next one of its node, and the link back.

    Args:
        relations: the known labels.
    """

    relations: tuple[str, ...] = ()

    @classmethod
    def fit(cls, structures: Sequence[Structure]) -> EdgeTypes:
        """Collect the labels of a training set."""
        return cls(tuple(sorted({relation for s in structures for relation in (s.relations or ("",))})))

    @property
    def size(self) -> int:
        """Number of edge labels."""
        return 2 * (len(self.relations) + 1) + 2

    def of(self, structure: Structure) -> tuple[Ids, Ids]:
        """(2, E) edges among units, both ways, and (E,) their labels. Every unit of a node has the node's edges."""
        known = {relation: 2 * i for i, relation in enumerate(self.relations)}
        labels = [known.get(structure.relation(e), 2 * len(self.relations)) for e in range(len(structure.edges))]
        source, target, which = _among_units(structure)
        forward = np.asarray(labels, dtype=np.int64)[which]
        inner = np.flatnonzero(np.diff(structure.unit_owner) == 0)
        index = np.stack(
            [np.concatenate([source, target, inner, inner + 1]), np.concatenate([target, source, inner + 1, inner])]
        )
        within = np.full(len(inner), self.size - 2)
        return index, np.concatenate([forward, forward + 1, within, within + 1])

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
