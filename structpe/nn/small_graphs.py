"""The small graphs of a batch, to which attention goes at once."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from structpe.attention import FEW_UNITS, HeadPlaces
from structpe.data.graphs import Buckets

__all__ = ["SmallGraphs"]


class SmallGraphs:
    """The first buckets of a batch, as far as their graphs are small; what attention in all of them shares.

    Attributes:
        whole: all buckets of the batch.
        buckets: theirs.
        others: those of larger graphs.
        nodes: how many nodes either have, the small graphs' first.
    """

    def __init__(self, buckets: Buckets) -> None:
        count = sum(n <= FEW_UNITS for _, n in buckets.shapes)  # graphs are in the order of their sizes
        self.whole, (self.buckets, self.others) = buckets, buckets.cut(count)
        self.nodes = [self.buckets.nodes, self.others.nodes]
        self._places: dict[int, HeadPlaces] = {}

    def places(self, heads: int) -> HeadPlaces:
        """Where the parts of their projected nodes lie; made once for all layers."""
        if heads not in self._places:
            self._places[heads] = HeadPlaces.of(heads, self.buckets.shapes, self.buckets.where)
        return self._places[heads]

    @cached_property
    def padding(self) -> list[Tensor | None]:
        """What is added to scores of each bucket, (b, 1, 1, n), so that no node sees padding; None where none is."""
        low = torch.finfo(torch.float32).min / 2  # low enough for float64 too
        present = (bucket.present for bucket in self.buckets)
        return [None if p is None else (~p[:, None, None, :]).float() * low for p in present]
