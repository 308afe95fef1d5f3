"""Edges as message passing reads them: grouped by target, and by source for the gradient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from structpe.structure import Ids, Structure

__all__ = ["CSRAdjacency", "EdgeIndex"]


@dataclass(frozen=True, eq=False)
class EdgeIndex:
    """The edges of one structure, each walked both ways, grouped by target.

    Attributes:
        source: (E,) where a message comes from.
        target: (E,) where it goes, never decreasing.
        edge: (E,) number of the edge in the structure.
        reverse: (E,) whether it goes against the edge's direction; never so in an undirected structure.
        by_source: (E,) the permutation that groups messages by source.
        degrees: (n,) of a sample: how many messages come to each node in the graph that it was drawn from.
    """

    source: Ids
    target: Ids
    edge: Ids
    reverse: np.ndarray
    by_source: Ids
    degrees: Ids | None = None

    @classmethod
    def of(cls, structure: Structure) -> EdgeIndex:
        """A self-loop carries one message where the structure is undirected, and one each way otherwise."""
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
    """The messages of a batch of N nodes, over all its graphs; grouped by target.

    Attributes:
        source: (E,) node that a message comes from.
        target: (E,) node that it goes to, never decreasing.
        starts: (N + 1,) the messages to node i are starts[i]..starts[i + 1] - 1.
        by_source: (E,) the permutation that groups messages by source.
        source_starts: (N + 1,) likewise in that order.
        target_by_source: (E,) ``target[by_source]``, which every gradient asks for.
        whole: (N,) how many messages come to each node in the graph of which these are a sample; None where they are
            all.
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
        """Those of several graphs, whose nodes follow one another."""
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

    @cached_property
    def degrees(self) -> Int[Tensor, "N"]:
        """How many messages come to each node."""
        return self.starts.diff()

    @cached_property
    def inverse_degrees(self) -> Float[Tensor, "N"]:
        """1 / D_i, D_i = 1 + the messages to node i; in the whole graph, where these are a sample."""
        return 1.0 / (1 + (self.degrees if self.whole is None else self.whole))

    @cached_property
    def symmetric_weights(self) -> Float[Tensor, "E"]:
        """1 / sqrt(D_i D_j) of each message j -> i; each of a sample stands for as many as it was drawn from."""
        root = self.inverse_degrees.sqrt()
        received = root if self.whole is None else root * self.whole / self.degrees.clamp(min=1)
        return root[self.source] * received[self.target]

    def to(self, device: torch.device) -> CSRAdjacency:
        """The same on another device; itself, with all that it has computed, where it is there already."""
        if self.source.device == device:
            return self
        values = (getattr(self, field.name) for field in fields(self))
        moved: list[Any] = [None if value is None else value.to(device) for value in values]
        return CSRAdjacency(*moved)


def _starts(nodes: Ids, count: int) -> Ids:
    starts = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(nodes, minlength=count), out=starts[1:])
    return starts
