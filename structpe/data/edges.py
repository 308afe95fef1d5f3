"""The edges of a structure among its units, for message passing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from structpe.data.neighbours import Directions, Neighbours
from structpe.structure import Ids, Structure

__all__ = ["EdgeTypes", "Edges"]


@dataclass(frozen=True, eq=False)
class Edges:
    """The edges of a batch, over its units.

    Attributes:
        near: the messages along them, among the places of the flattened (b * n) batch.
        types: (E,) label of each message.
    """

    near: Neighbours
    types: Int[Tensor, "E"]

    @classmethod
    def of(cls, index: Ids, types: Ids, places: int) -> Edges:
        """From (2, E) source and target of messages in any order, their labels, and the number of places."""
        order = np.lexsort(index)
        (source, target), forward = index[:, order], np.zeros(len(order), dtype=np.bool_)
        directions = Directions(source, target, order, forward, np.argsort(source, kind="stable"))
        return cls(Neighbours.join([directions], [places]), torch.from_numpy(types[order]))

    def to(self, device: torch.device) -> Edges:
        """The same on another device."""
        return Edges(self.near.to(device), self.types.to(device))


@dataclass(frozen=True)
class EdgeTypes:
    """Numbers for edge labels: each relation along its edge and against it, and the link between units of one node.

    ``2 i`` is relation i along, ``2 i + 1`` against; the last relation stands for labels not seen in training. After
    them come the link from a unit to the next of its node, and the link back.

    Args:
        relations: the labels that are told apart.
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

    def join(self, structures: Sequence[Structure], most: int) -> Edges:
        """The edges of a batch whose rows have room for ``most`` units."""
        each = [self.of(structure) for structure in structures]
        index = np.concatenate([edges + row * most for row, (edges, _) in enumerate(each)], axis=1)
        return Edges.of(index, np.concatenate([types for _, types in each]), len(each) * most)


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
