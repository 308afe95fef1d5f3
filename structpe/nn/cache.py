"""Keys and values of the units that a decoder has written, in buffers that grow by doubling."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

__all__ = ["KVCache", "changed"]

_LEAST = 32
"""Units for which a buffer has room at least."""


class KVCache:
    """The keys and values of earlier units for one attention, (b, h, m, d_h) each; a decoder appends to them.

    Without gradients they are written in place into buffers with room for more units, which double when they are full:
    a step moves nothing but its own units. With gradients, each call makes new tensors instead, since backward reads
    the old ones. They are stored before ``Terms.maps``, because a map may depend on the number of units.

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
        """Take these rows of the batch, of which there may be more or fewer than before."""
        if self._buffers is not None:
            keys, values = (each[:, :, : self.length].index_select(0, rows) for each in self._buffers)
            self._buffers = keys, values

    def replace(self, rows: Int[Tensor, " changed"], by: Int[Tensor, " changed"], first: int) -> None:
        """Let these rows become copies of others from unit ``first`` on; before it they must be equal already."""
        if self._buffers is None:
            return
        kept = self._buffers[0].is_inference() and not torch.is_inference_mode_enabled()
        if torch.is_grad_enabled() or kept:
            self._buffers = self._own(self._buffers, self.length)
        for each in self._buffers:
            part = each[:, :, first : self.length]
            part[rows] = part[by]

    def _with_room(self, length: int) -> tuple[Tensor, Tensor]:
        """The buffers, made larger if they have no room for this number of units."""
        assert self._buffers is not None
        if length > self.capacity or (self._buffers[0].is_inference() and not torch.is_inference_mode_enabled()):
            self._buffers = self._own(self._buffers, max(_LEAST, 1 << (length - 1).bit_length()))
        return self._buffers

    def _own(self, buffers: tuple[Tensor, Tensor], capacity: int) -> tuple[Tensor, Tensor]:
        """Copies of the buffers with this capacity."""
        return self._copied(buffers[0], capacity), self._copied(buffers[1], capacity)

    def _copied(self, buffer: Tensor, capacity: int) -> Tensor:
        b, h, _, d = buffer.shape
        copy = buffer.new_empty(b, h, capacity, d)
        copy[:, :, : self.length] = buffer[:, :, : self.length]
        return copy


def changed(rows: Int[Tensor, " b"]) -> Int[Tensor, " changed"]:
    """The places at which rows are others than 0, 1, 2, ..."""
    return (rows != torch.arange(len(rows), device=rows.device)).nonzero().squeeze(1)
