"""What all layers of a stack share in one forward pass: the position model's answers, the layout, masks and caches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from structpe.attention import Layout
from structpe.data.batch import Batch
from structpe.positions.base import PositionModel, Positions, Site
from structpe.terms import Terms

__all__ = ["Context", "KVCache", "Past"]


@dataclass
class KVCache:
    """The keys and values of one attention so far, (b, h, m, d_h) each; it grows while a decoder writes.

    They are kept as projected, before ``Terms.maps``: a map may depend on how many units there are.
    """

    keys: Tensor | None = None
    values: Tensor | None = None

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add the newest and return all."""
        self.keys = keys if self.keys is None else torch.cat([self.keys, keys], dim=2)
        self.values = values if self.values is None else torch.cat([self.values, values], dim=2)
        return self.keys, self.values

    def select(self, rows: Tensor) -> None:
        """Keep these rows of the batch, in this order, as a beam search does after each step."""
        if self.keys is not None and self.values is not None:
            self.keys, self.values = self.keys[rows], self.values[rows]


@dataclass(frozen=True)
class Past:
    """What the layers of a decoder know besides the units that they are given, all in one bucket.

    Attributes:
        memory: per layer (b, c, d) hidden vectors of the units before (Dai et al. 2019).
        caches: per layer, keys and values of the units before.
        source: per layer, keys and values (b, h, m, d_h) of what is read.
        reading: terms of reading it, the mask of its padding say.
    """

    memory: Sequence[Tensor] = ()
    caches: Sequence[KVCache] = ()
    source: Sequence[tuple[Tensor, Tensor]] = ()
    reading: Terms | None = None


class Context:
    """One forward pass over N units.

    Args:
        position: the position model.
        layout: how attention pads the units.
        positions: per bucket of ``position_layout``, the values of the encodings.
        position_layout: how the position model reads the units; None for ``layout``.
        extra: further terms of every attention, a causal mask say.
        batch: that the units are of, for message passing and virtual nodes.
        past: what a decoder knows besides its units.
    """

    def __init__(
        self,
        position: PositionModel,
        layout: Layout,
        positions: Sequence[Positions],
        position_layout: Layout | None = None,
        extra: Terms | None = None,
        batch: Batch | None = None,
        past: Past | None = None,
    ) -> None:
        self.position, self.layout = position, layout
        self.position_layout = layout if position_layout is None else position_layout
        self.prepared: list[Any] = [position.prepare(each) for each in positions]
        self.extra = Terms() if extra is None else extra
        self.batch, self.past = batch, Past() if past is None else past

    @classmethod
    def of(cls, position: PositionModel, batch: Batch) -> Context:
        """A pass over a batch, each unit seeing all of its structure."""
        return cls(position, batch.layout, batch.positions, batch.position_layout, batch=batch)

    def inputs(self, x: Tensor) -> Tensor:
        """The units (N, d) as the first layer reads them."""
        return self._each(x, "inputs", self.position.inputs)

    def before(self, x: Tensor, site: Site) -> Tensor:
        """The hidden vectors (N, d) as the layer of this site reads them."""
        return self._each(x, "layer", lambda rows, prepared: self.position.layer(rows, prepared, site))

    def terms(self, site: Site) -> list[Terms]:
        """The terms of attention in each bucket of the layout, without the mask of its padding."""
        if self.position_layout is not self.layout:  # the position model has no terms
            return [self.extra] * len(self.layout)
        return [self.position.terms(prepared, site) + self.extra for prepared in self.prepared]

    def _each(self, x: Tensor, site: str, answer: Callable[[Tensor, Any], Tensor]) -> Tensor:
        if site not in self.position.sites:
            return x
        each = zip(self.position_layout.padded(x), self.prepared, strict=True)
        return self.position_layout.flat([answer(rows, prepared) for rows, prepared in each])
