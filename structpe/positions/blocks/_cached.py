"""The base of blocks that a decoder can use: what is kept of each unit does not depend on later ones."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.positions import Block, Dims, PositionModel, Positions, Site
from structpe.positions._checks import numbers
from structpe.positions.blocks._attention import allowed, joined, of_layers, products, split
from structpe.terms import Terms

__all__ = ["CachedBlock", "ranks"]


class CachedBlock(Block, ABC):
    """Attention with projections of its own, over queries that are the last n of m keys.

    Args:
        dims: sizes of the Transformer.
        encodings: the encodings that it needs.
        bias: whether its four projections have biases, as those of other layers have.
        sizes: see :class:`PositionModel`.
    """

    drops = True

    def __init__(self, dims: Dims, encodings: Sequence[Encoding], bias: bool = False, **sizes: int) -> None:
        super().__init__(dims, encodings, **sizes)
        self.projections = of_layers(dims, 3 * dims.width, bias)
        self.outs = of_layers(dims, dims.width, bias)

    @property
    def causal(self) -> bool:
        """Whether its encodings are."""
        return PositionModel.causal.fget(self)  # type: ignore[attr-defined, no-any-return]  # a property

    def attend(self, x: Tensor, prepared: Any, site: Site, terms: Terms) -> tuple[Tensor, Any]:
        q, k, v = self.project(x, site)
        if site.cache is not None:
            k, v = site.cache.append(k, v)
        seen = allowed(self.name, terms, x, k.shape[2])
        out: Tensor = self.outs[site.layer](joined(self.mixed(q, k, v, seen, prepared, site)))
        return out, prepared

    def project(self, x: Tensor, site: Site) -> tuple[Tensor, Tensor, Tensor]:
        """(b, h, n, width) three times of the units x (b, n, d): queries, and what a cache keeps of keys and values."""
        q, k, v = (split(each, self.dims.heads) for each in self.projections[site.layer](x).chunk(3, dim=-1))
        return q, k, v

    @abstractmethod
    def mixed(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor, prepared: Any, site: Site) -> Tensor:
        """(b, h, n, d_h) the mixtures of values.

        Args:
            q: (b, h, n, width) of the queries, the last n of the keys.
            k: (b, h, m, width) what is kept of the keys.
            v: (b, h, m, width) what is kept of the values.
            seen: (b or 1, h or 1, n, m) which pairs may attend.
            prepared: the result of :meth:`prepare`.
            site: the layer.
        """

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        """(b, h, n, m) q.k / sqrt(d_h), float32 at least."""
        scores: Tensor = products(q, k)
        return scores / math.sqrt(self.dims.head)


def ranks(model: str, encoding: Encoding, positions: Positions) -> Tensor:
    """(b or 1, m) the rank of each unit by an encoding; of units with equal numbers the one stored first is first.

    Places without a unit come last.
    """
    places = numbers(model, encoding, positions[encoding])
    order = places.argsort(dim=1, stable=True)
    if positions.present is not None:
        absent = ~positions.present.expand(len(places), -1)
        order = order.gather(1, absent.gather(1, order).long().argsort(dim=1, stable=True))
    return order.argsort(dim=1)
