"""Edges for message passing: grouped by target, and by source for the gradient; numbers for their labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from structpe.structure import Ids, Structure

__all__ = ["CSRAdjacency", "EdgeIndex", "EdgeTypes"]


@dataclass(frozen=True, eq=False)
class EdgeIndex:
    """The messages along the edges of one structure, in both directions, grouped by target.

    Attributes:
        source: (E,) the node that sends each message.
        target: (E,) the node that receives it, sorted.
        edge: (E,) number of the edge in the structure.
        reverse: (E,) whether it goes against the edge's direction; False in an undirected structure.
        by_source: (E,) the permutation that groups messages by source.
        degrees: (n,) for a sample, the number of messages to each node in the full graph; otherwise None.
    """

    source: Ids
    target: Ids
    edge: Ids
    reverse: np.ndarray
    by_source: Ids
    degrees: Ids | None = None

    @classmethod
    def of(cls, structure: Structure) -> EdgeIndex:
        """The messages of a structure. A self-loop carries one message if the structure is undirected, else two."""
        edges, numbers = structure.edges, np.arange(len(structure.edges))
        back = numbers if structure.directed else numbers[edges[:, 0] != edges[:, 1]]
        source = np.concatenate([edges[:, 0], edges[back, 1]])
        target = np.concatenate([edges[:, 1], edges[back, 0]])
        edge = np.concatenate([numbers, back])
        reverse = np.arange(len(edge)) >= (len(numbers) if structure.directed else len(edge))
        order = np.lexsort((source, target))
        source, target = source[order], target[order]
        return cls(source, target, edge[order], reverse[order], np.argsort(source, kind="stable"))


@dataclass(frozen=True, eq=False)
class CSRAdjacency:
    """The messages among the N nodes of a batch, grouped by target (compressed sparse rows).

    Attributes:
        source: (E,) the node that sends each message.
        target: (E,) the node that receives it, sorted.
        starts: (N + 1,) the messages to node i are starts[i]..starts[i + 1] - 1.
        by_source: (E,) the permutation that groups messages by source.
        source_starts: (N + 1,) where the messages from node i start in that order.
        target_by_source: (E,) ``target[by_source]``, which gradients need.
        whole: (N,) for a sample, the number of messages to each node in the full graph; otherwise None.
    """

    source: Int[Tensor, "E"]
    target: Int[Tensor, "E"]
    starts: Int[Tensor, "N1"]
    by_source: Int[Tensor, "E"]
    source_starts: Int[Tensor, "N1"]
    target_by_source: Int[Tensor, "E"]
    whole: Int[Tensor, "N"] | None = None

    @classmethod
    def join(cls, each: Sequence[EdgeIndex], sizes: Sequence[int]) -> CSRAdjacency:
        """Join the messages of several graphs, whose nodes follow one another."""
        nodes = np.cumsum([0, *sizes])
        messages = np.cumsum([0, *(len(d.source) for d in each)])
        source = np.concatenate([d.source + first for d, first in zip(each, nodes, strict=False)])
        target = np.concatenate([d.target + first for d, first in zip(each, nodes, strict=False)])
        by_source = np.concatenate([d.by_source + first for d, first in zip(each, messages, strict=False)])
        arrays = (source, target, _starts(target, nodes[-1]), by_source, _starts(source, nodes[-1]), target[by_source])
        drawn = [d.degrees for d in each if d.degrees is not None]
        whole = torch.from_numpy(np.concatenate(drawn)) if drawn else None
        tensors: list[Any] = [*map(torch.from_numpy, arrays), whole]
        return cls(*tensors)

    @property
    def count(self) -> int:
        """N, the number of nodes."""
        return len(self.starts) - 1

    @property
    def degrees(self) -> Int[Tensor, "N"]:
        """(N,) number of messages to each node."""
        return self.starts.diff()

    @property
    def whole_degrees(self) -> Int[Tensor, "N"]:
        """(N,) the same in the full graph, from which a sample is drawn."""
        return self.degrees if self.whole is None else self.whole

    def moved(self, move: Callable[[Tensor], Tensor]) -> CSRAdjacency:
        """A copy with ``move`` applied to all tensors."""
        values = (getattr(self, each.name) for each in fields(self))
        each: list[Any] = [None if value is None else move(value) for value in values]
        return CSRAdjacency(*each)


def _starts(nodes: Ids, count: int) -> Ids:
    starts = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(nodes, minlength=count), out=starts[1:])
    return starts


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
