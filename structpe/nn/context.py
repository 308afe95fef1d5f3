"""What the layers of a stack share in one forward pass: prepared positions, the layout, masks and caches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from structpe.attention import Layout
from structpe.data.batch import Batch
from structpe.nn.cache import KVCache
from structpe.positions import PositionModel, Positions, Site
from structpe.terms import Terms

__all__ = ["Context", "Past"]


@dataclass(frozen=True)
class Past:
    """What the layers of a decoder read besides their own units. All of it is in one bucket.

    Attributes:
        memory: per layer, (b, c, d) hidden vectors of the previous segment (Dai et al. 2019).
        caches: per layer, keys and values of the previous units.
        source: per layer, keys and values (b, h, m, d_h) of the encoder's output.
        reading: terms of the cross-attention to it, such as the mask of its padding.
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
        position_layout: how units are padded for the position model; None for ``layout``.
        extra: terms added in every attention, such as a causal mask.
        batch: the batch of the units, for message passing and virtual nodes.
        past: what a decoder reads besides its units.
        given: the terms of each layer, if they are known already and the position model acts on nothing else.
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
        given: Sequence[Terms] | None = None,
    ) -> None:
        self.position, self.layout, self.sites = position, layout, position.sites
        self.position_layout = layout if position_layout is None else position_layout
        self.given = given
        self.prepared: list[Any] = [position.prepare(each) for each in positions] if given is None else [None]
        self.extra = extra
        self.batch, self.past = batch, Past() if past is None else past

    @classmethod
    def of(cls, position: PositionModel, batch: Batch) -> Context:
        """A pass over a batch in which each unit attends to its whole structure."""
        return cls(position, batch.layout, batch.positions, batch.position_layout, batch=batch)

    def inputs(self, x: Tensor) -> Tensor:
        """Apply the position model to the input (N, d) of the first layer."""
        return self._each(x, "inputs", self.position.inputs)

    def before(self, x: Tensor, site: Site) -> Tensor:
        """Apply the position model to the hidden vectors (N, d) before a layer."""
        return self._each(x, "layer", lambda rows, prepared: self.position.layer(rows, prepared, site))

    def terms(self, site: Site) -> list[Terms]:
        """The terms of attention of each bucket, without the mask for padding."""
        if self.position_layout is not self.layout:  # the position model has no terms
            return [self._with(Terms())] * len(self.layout)
        if self.given is not None:
            return [self._with(self.given[site.layer])]
        return [self._with(self.position.terms(prepared, site)) for prepared in self.prepared]

    def _with(self, terms: Terms) -> Terms:
        return terms if self.extra is None else terms + self.extra

    def _each(self, x: Tensor, site: str, answer: Callable[[Tensor, Any], Tensor]) -> Tensor:
        if site not in self.sites:
            return x
        each = zip(self.position_layout.padded(x), self.prepared, strict=True)
        return self.position_layout.flat([answer(rows, prepared) for rows, prepared in each])
