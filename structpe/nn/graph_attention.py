"""Attention over the graphs of a batch: projections of all nodes at once, scores bucket by bucket."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from structpe.attention import attend, attend_buckets, buckets_suit
from structpe.data.graphs import Bucket, Buckets, GraphBatch
from structpe.nn.attention import Attention
from structpe.nn.small_graphs import SmallGraphs
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
        self.small = SmallGraphs(batch.buckets)

    def inputs(self, x: Tensor) -> Tensor:
        """The nodes (N, d) as the first layer shall see them."""
        return self._each(x, "inputs", self.position.inputs)

    def layer(self, x: Tensor, site: Site) -> Tensor:
        """The hidden vectors (N, d) as the layer of this site shall see them."""
        return self._each(x, "layer", lambda rows, prepared: self.position.layer(rows, prepared, site))

    def terms(self, number: int, site: Site) -> Terms:
        """What acts on attention in a bucket: what the position model says there, and the mask of padding."""
        return self.said(number, site) + Terms(mask=self.buckets[number].mask)

    def said(self, number: int, site: Site) -> Terms:
        """What the position model says of attention in a bucket; nothing of padding."""
        return self.position.terms(self.prepared[number], site) if self.asked is self.buckets else Terms()

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
            each = enumerate(asking.buckets.rows(x))
            return asking.buckets.flat([self._whole(part, asking, i, site) for i, part in each])
        said = [asking.said(i, site) for i in range(len(asking.buckets))]
        out: Tensor = self.attention.out(self._mixed(self.attention.projected(x), asking.small, said))
        return out

    def _mixed(self, projected: Tensor, small: SmallGraphs, said: list[Terms]) -> Tensor:
        """(N, 3 d) queries, keys and values to what is mixed of them, (N, d): small graphs all at once."""
        assert self.attention is not None
        a, count = self.attention, len(small.buckets)
        if self.feature_map is not None or a.kernel != "auto" or not buckets_suit(projected, said[:count]):
            return self._by_bucket(projected, small.whole, said)
        first, others = torch.split(projected, small.nodes) if small.others else (projected, None)
        dropout = a.dropout if self.training else 0.0
        mixed = attend_buckets(first, small.places(a.heads), said[:count], small.padding, dropout)
        return mixed if others is None else torch.cat([mixed, self._by_bucket(others, small.others, said[count:])])

    def _by_bucket(self, projected: Tensor, buckets: Buckets, said: Sequence[Terms]) -> Tensor:
        """The same, of the nodes of some buckets, one after the other."""
        each = zip(buckets.rows(projected), buckets, said, strict=True)
        return buckets.flat([self._mixed_rows(part, self._all(terms, bucket)) for part, bucket, terms in each])

    def _all(self, said: Terms, bucket: Bucket) -> Terms:
        return said + Terms(mask=bucket.mask, feature_map=self.feature_map)

    def _mixed_rows(self, projected: Tensor, terms: Terms) -> Tensor:
        """(b, n, 3 d) queries, keys and values to what is mixed of them, (b, n, d)."""
        assert self.attention is not None
        a = self.attention
        q, k, v = (x.view(*x.shape[:2], a.heads, -1).transpose(1, 2) for x in projected.chunk(3, dim=-1))
        mixed: Tensor = attend(q, k, v, terms, a.kernel, a.dropout if self.training else 0.0)
        return mixed.transpose(1, 2).flatten(2)

    def _whole(self, x: Tensor, asking: Asking, number: int, site: Site) -> Tensor:
        position, prepared = asking.position, asking.prepared[number]
        terms = self._all(asking.said(number, site), asking.buckets[number])
        if self.attention is None:
            attended, asking.prepared[number] = position.attend(x, prepared, site, terms)
            return attended
        sources = position.sources(Sources(x, x, x), prepared, site)
        keys, values = self.attention.project(sources.key, sources.value)
        out: Tensor = self.attention(sources.query, keys, values, terms)
        return out
