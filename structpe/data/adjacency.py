"""Edges for message passing: grouped by target, and by source for the gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from structpe.structure import Ids, Structure

__all__ = ["CSRAdjacency", "EdgeIndex"]


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
        """A copy whose tensors are what ``move`` makes of these."""
        values = (getattr(self, each.name) for each in fields(self))
        each: list[Any] = [None if value is None else move(value) for value in values]
        return CSRAdjacency(*each)


def _starts(nodes: Ids, count: int) -> Ids:
    starts = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(nodes, minlength=count), out=starts[1:])
    return starts
