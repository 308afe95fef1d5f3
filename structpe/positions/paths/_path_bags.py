"""The mean or the sum of the embedded labels of a path: what zhu-avg and zhu-sum share."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from structpe.dropout import Dropout
from structpe.encodings.label_path import LabelPath
from structpe.encodings.order import Order
from structpe.positions import Dims, PositionModel, Positions, Site
from structpe.positions.paths._path_attention import PathAttention, Slots, each_pair, glorot, slots_of, waves
from structpe.terms import Lookup, Terms

__all__ = ["PathBag"]


class Bag(nn.Module):
    """r_ij = weight sum_c (sqrt(w) E[c-th label of the path ji] + P_i), P_i the sinusoid of the query's place i.

    The sinusoid makes r_ij depend on more than the path: its rows are the distinct pairs (path, place) in use.

    Args:
        labels: embeds the labels of a path.
        weight: 1/c for the mean, 1 for the sum.
        dropout: of the embedded labels.
    """

    def __init__(self, labels: Slots, weight: float, dropout: float) -> None:
        super().__init__()
        self.labels, self.weight = labels, weight
        self.dropout = Dropout(dropout)

    def forward(self, paths: Lookup, places: Tensor | None) -> Lookup:
        """(R, w) vectors from the paths (R, c) of the pairs (query, key), and the places (b or 1, n) of the units."""
        bags = paths.transpose().map(lambda labels: self.weight * self.dropout(self.labels(labels)).sum(1))
        return bags if places is None else self._at_places(bags, places[:, :, None])

    def _at_places(self, bags: Lookup, place: Tensor) -> Lookup:
        n = bags.index.shape[1]
        batch = torch.arange(len(bags.rows), device=bags.rows.device)[:, None, None]
        both, which = _distinct(bags.rows[batch, bags.places()] * n + place, len(bags.table) * n)
        sinusoid = waves(n, bags.table.shape[1]).to(bags.table) * (self.weight * self.labels.slots)
        table = bags.table.index_select(0, both // n) + sinusoid.index_select(0, both % n)
        return each_pair(table, which)


def _distinct(codes: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The distinct ones of codes 0..count-1 in order, and for each code which of them it is."""
    if count > _MARKED * codes.numel() or torch.compiler.is_compiling():
        distinct, which = torch.unique(codes, return_inverse=True)
        return distinct, which
    marks = torch.zeros(count, dtype=torch.int64, device=codes.device)  # quicker than sorting
    marks[codes.flatten()] = 1
    return marks.nonzero()[:, 0], (marks.cumsum(0) - 1)[codes]


_MARKED = 4
"""Codes that are at most so many times as many as pairs are marked rather than sorted."""


class PathBag(PositionModel):
    """Vectors at keys and values, made of the mean or the sum of the embedded labels of a path: see :class:`Bag`."""

    mean: ClassVar[bool]
    """Whether the sum is divided by c."""

    def __init__(
        self, dims: Dims, encoding: LabelPath = LabelPath(limit=5), dropout: float = 0.0, sinusoid: bool = True
    ) -> None:
        slots = slots_of(self.name, encoding)
        super().__init__(dims, [encoding, *([Order()] if sinusoid else [])], V=encoding.size + 1)
        self.paths = Bag(Slots(encoding.size, slots, dims.head), 1 / slots if self.mean else 1.0, dropout)
        self.attention = PathAttention(dims)
        glorot(self)

    @property
    def causal(self) -> bool:
        """No: a decoding step has the pairs (query, key), and this model needs the pairs (key, query)."""
        return False

    def prepare(self, positions: Positions) -> Lookup:
        """The vector of each distinct path, or of each distinct path and place."""
        encoding, *order = self.encodings
        vectors: Lookup = self.paths(positions[encoding], positions[order[0]] if order else None)
        return vectors

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        terms: Terms = self.attention(prepared, site.layer)
        return terms
