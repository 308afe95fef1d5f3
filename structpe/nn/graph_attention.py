"""Attention over the graphs of a batch: projections of all nodes at once, scores bucket by bucket."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from structpe.attention import HeadPlaces, attend, attend_buckets, buckets_suit
from structpe.data.graphs import GraphBatch
from structpe.nn.attention import Attention
from structpe.positions.base import Dims, PositionModel, Site, Sources
from structpe.terms import Terms

__all__ = ["Asking", "GraphAttention"]


class Asking:
    """A position model asked about a batch, for one forward pass.

    Args:
        position: the model.
        batch: made for the layout that the model needs.
    """

    def __init__(self, position: PositionModel, batch: GraphBatch) -> None:
        self.position, self.buckets = position, batch.buckets
        self.asked = batch.buckets if batch.whole is None else batch.whole
        self.prepared: list[Any] = [position.prepare(bucket.positions) for bucket in self.asked]
        self._places: dict[int, HeadPlaces] = {}
        self._padding: dict[torch.dtype, list[Tensor | None]] = {}

    def inputs(self, x: Tensor) -> Tensor:
        """The nodes (N, d) as the first layer shall see them."""
        return self._each(x, "inputs", self.position.inputs)

    def layer(self, x: Tensor, site: Site) -> Tensor:
        """The hidden vectors (N, d) as the layer of this site shall see them."""
        return self._each(x, "layer", lambda rows, prepared: self.position.layer(rows, prepared, site))

    def terms(self, number: int, site: Site) -> Terms:
        """What acts on attention in a bucket: what the position model says there, and the mask of padding."""
        said, present = self.said(number, site), self.buckets[number].present
        return said if present is None else said + Terms(mask=(present[:, None, None, :],))

    def said(self, number: int, site: Site) -> Terms:
        """What the position model says of attention in a bucket; nothing of padding."""
        return self.position.terms(self.prepared[number], site) if self.asked is self.buckets else Terms()

    def places(self, heads: int) -> HeadPlaces:
        """Where the parts of projected nodes lie, for attention in many graphs at once; the same for all layers."""
        if heads not in self._places:
            self._places[heads] = HeadPlaces.of(heads, self.buckets.shapes, self.buckets.where)
        return self._places[heads]

    def padding(self, dtype: torch.dtype) -> list[Tensor | None]:
        """What is added to scores in each bucket, (b, 1, 1, n), so that none sees padding; the same for all layers."""
        if dtype not in self._padding:
            low = torch.finfo(dtype).min / 2
            present = (bucket.present for bucket in self.buckets)
            self._padding[dtype] = [None if p is None else (~p[:, None, None, :]).to(dtype) * low for p in present]
        return self._padding[dtype]

    def _each(self, x: Tensor, site: str, answer: Callable[[Tensor, Any], Tensor]) -> Tensor:
        if site not in self.position.sites:
            return x
        each = zip(self.asked.rows(x), self.prepared, strict=True)
        return self.asked.flat([answer(rows, prepared) for rows, prepared in each])


class GraphAttention(nn.Module):
    """Each node attends to all nodes of its graph.

    Args:
        dims: sizes.
        kernel: attention kernel, or ``auto``.
        dropout: probability with which an attention weight is dropped in training.
        position: the position model, which may bring an attention of its own.
        feature_map: what stands for the exponential of a score, so that attention is linear; None for the exponential.
    """

    def __init__(
        self,
        dims: Dims,
        kernel: str,
        dropout: float,
        position: PositionModel,
        feature_map: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        super().__init__()
        self.attention = None if position.own_attention else Attention(dims, kernel, dropout)
        self.feature_map = feature_map
        self.apart = "sources" in position.sites  # what is projected differs from bucket to bucket

    def forward(self, x: Tensor, asking: Asking, site: Site) -> Tensor:
        """(N, d) to (N, d)."""
        if self.attention is None or self.apart:
            rows = asking.buckets.rows(x)
            return asking.buckets.flat([self._whole(part, asking, i, site) for i, part in enumerate(rows)])
        out: Tensor = self.attention.out(self._mixed(self.attention.projected(x), asking, site))
        return out

    def _mixed(self, projected: Tensor, asking: Asking, site: Site) -> Tensor:
        """(N, 3 d) queries, keys and values to what is mixed of them, (N, d)."""
        assert self.attention is not None
        a, buckets = self.attention, asking.buckets
        if self.feature_map is None and a.kernel == "auto":
            said = [asking.said(i, site) for i in range(len(buckets))]
            if buckets_suit(projected, buckets.shapes, said):
                dropout = a.dropout if self.training else 0.0
                return attend_buckets(projected, asking.places(a.heads), said, asking.padding(projected.dtype), dropout)
        rows = buckets.rows(projected)
        return buckets.flat([self._mixed_rows(part, self._terms(asking, i, site)) for i, part in enumerate(rows)])

    def _terms(self, asking: Asking, number: int, site: Site) -> Terms:
        said = asking.terms(number, site)
        return said if self.feature_map is None else said + Terms(feature_map=self.feature_map)

    def _mixed_rows(self, projected: Tensor, terms: Terms) -> Tensor:
        """(b, n, 3 d) queries, keys and values to what is mixed of them, (b, n, d)."""
        assert self.attention is not None
        a = self.attention
        q, k, v = (x.view(*x.shape[:2], a.heads, -1).transpose(1, 2) for x in projected.chunk(3, dim=-1))
        mixed: Tensor = attend(q, k, v, terms, a.kernel, a.dropout if self.training else 0.0)
        return mixed.transpose(1, 2).flatten(2)

    def _whole(self, x: Tensor, asking: Asking, number: int, site: Site) -> Tensor:
        position, prepared, terms = asking.position, asking.prepared[number], self._terms(asking, number, site)
        if self.attention is None:
            attended, asking.prepared[number] = position.attend(x, prepared, site, terms)
            return attended
        sources = position.sources(Sources(x, x, x), prepared, site)
        keys, values = self.attention.project(sources.key, sources.value)
        out: Tensor = self.attention(sources.query, keys, values, terms)
        return out
