"""The state that layers share in one forward pass: prepared positions, the layout, masks and caches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from structpe.attention import Layout
from structpe.data.batch import Batch
from structpe.positions import PositionModel, Positions, Site
from structpe.terms import Terms

__all__ = ["Context", "KVCache", "Past", "changed"]

_LEAST = 32
"""The smallest capacity of a buffer, in units."""


class KVCache:
    """The keys and values of earlier units for one attention, (b, h, m, d_h) each; a decoder appends to them.

    Without gradients they are written in place into buffers with room for more units, which double when they are full:
    a step copies only its own units. With gradients, each call makes new tensors instead, since backward reads the old
    ones. They are stored before ``Terms.maps``, because a map may depend on the number of units.

    Attributes:
        length: m, the number of units.
    """

    def __init__(self) -> None:
        self.length = 0
        self._buffers: tuple[Tensor, Tensor] | None = None

    @property
    def keys(self) -> Float[Tensor, "b h m c"] | None:
        """The keys of all units; None before the first. The next call of another method may overwrite them."""
        return None if self._buffers is None else self._buffers[0][:, :, : self.length]

    @property
    def values(self) -> Float[Tensor, "b h m d"] | None:
        """The values of all units, likewise."""
        return None if self._buffers is None else self._buffers[1][:, :, : self.length]

    @property
    def capacity(self) -> int:
        """The number of units for which the buffers have room."""
        return 0 if self._buffers is None else self._buffers[0].shape[2]

    def append(self, keys: Float[Tensor, "b h n c"], values: Float[Tensor, "b h n d"]) -> tuple[Tensor, Tensor]:
        """Append new keys and values, and return all."""
        first, last = self.length, self.length + keys.shape[2]
        if self._buffers is None:
            self._buffers = keys, values
        elif torch.is_grad_enabled():
            of_keys, of_values = (each[:, :, :first] for each in self._buffers)
            self._buffers = torch.cat([of_keys, keys], dim=2), torch.cat([of_values, values], dim=2)
        else:
            old = self._with_room(last)
            for buffer, new in zip(old, (keys, values), strict=True):
                buffer[:, :, first:last] = new
        self.length = last
        of_keys, of_values = self._buffers
        return of_keys[:, :, :last], of_values[:, :, :last]

    def select(self, rows: Int[Tensor, " rows"]) -> None:
        """Replace the batch by these rows of it, which may be more or fewer than before."""
        if self._buffers is not None:
            keys, values = (each[:, :, : self.length].index_select(0, rows) for each in self._buffers)
            self._buffers = keys, values

    def replace(self, rows: Int[Tensor, " changed"], by: Int[Tensor, " changed"], first: int) -> None:
        """Copy rows ``by`` to ``rows`` from unit ``first`` on; before it they must be equal already."""
        if self._buffers is None:
            return
        if torch.is_grad_enabled() or self._frozen():
            self._buffers = self._copied(self._buffers, self.length)
        for each in self._buffers:
            part = each[:, :, first : self.length]
            part[rows] = part[by]

    def _with_room(self, length: int) -> tuple[Tensor, Tensor]:
        """The buffers, made larger if they have no room for this number of units."""
        assert self._buffers is not None
        if length > self.capacity or self._frozen():
            self._buffers = self._copied(self._buffers, max(_LEAST, 1 << (length - 1).bit_length()))
        return self._buffers

    def _frozen(self) -> bool:
        """Whether the buffers were made in inference mode and this call is not: they cannot be written in place."""
        assert self._buffers is not None
        return self._buffers[0].is_inference() and not torch.is_inference_mode_enabled()

    def _copied(self, buffers: tuple[Tensor, Tensor], capacity: int) -> tuple[Tensor, Tensor]:
        """Copies of the buffers with this capacity."""
        keys, values = (each.new_empty(*each.shape[:2], capacity, each.shape[3]) for each in buffers)
        for copy, each in zip((keys, values), buffers, strict=True):
            copy[:, :, : self.length] = each[:, :, : self.length]
        return keys, values


def changed(rows: Int[Tensor, " b"]) -> Int[Tensor, " changed"]:
    """The places at which rows differ from 0, 1, 2, ..."""
    return (rows != torch.arange(len(rows), device=rows.device)).nonzero().squeeze(1)


@dataclass(frozen=True)
class Past:
    """The other inputs of the layers of a decoder, besides its units. All of them are in one bucket.

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
        past: the other inputs of a decoder.
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
