"""Sinusoids of places that are counted from another start at each step (Dehghani et al. 2019, their code)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.encodings.size import Size
from structpe.positions import Dims, PositionModel, Positions
from structpe.positions._checks import numbers, of_arity
from structpe.positions.sinusoidal._sinusoids import timing

__all__ = ["Started", "UniversalModel"]

Start: TypeAlias = Literal["first", "random", "step"]
"""From where the places of a text of L units are counted in step l of s: ``first`` from 0; ``random`` from one of
0..L - 1 that is drawn at each step of training, and from 0 in evaluation; ``step`` from floor(L l / s)."""


@dataclass(frozen=True, eq=False)
class Started:
    """The sinusoids of the units of a batch, step by step.

    Attributes:
        start: how places are counted.
        dims: sizes of the Transformer, whose layers are the steps.
        places: (b, n).
        lengths: (b, n) L, at each unit; None if each step counts from 0.
        first: (b, n, d) the sinusoids counted from 0.
    """

    start: Start
    dims: Dims
    places: Tensor
    lengths: Tensor | None
    first: Tensor

    def at(self, step: int, training: bool) -> Tensor:
        """(b, n, d) those of a step."""
        if self.lengths is None or (self.start == "random" and not training):
            return self.first
        if self.start == "random":
            drawn = self.draw()
            return timing(self.places + (drawn * self.lengths).floor(), self.dims.width)
        return timing(self.places + self.lengths * step // self.dims.layers, self.dims.width)

    def draw(self) -> Tensor:
        """(b, 1) from U(0, 1), for each row of a batch."""
        return torch.rand(len(self.places), 1, dtype=torch.float64, device=self.places.device)


class UniversalModel(PositionModel):
    """x_t + P_t and a vector of the step before every layer, P_t = cat[sin(t omega_i), cos(t omega_i)].

    Args:
        dims: sizes of the Transformer.
        encoding: t, one number per unit.
        start: how places are counted.
        length: L, one number per unit. It is needed only if places are not counted from 0; a decoder cannot use the
            model then.
    """

    def __init__(
        self, dims: Dims, encoding: Encoding = Order(), start: Start = "first", length: Encoding = Size()
    ) -> None:
        encodings = [encoding] if start == "first" else [encoding, length]
        super().__init__(dims, [of_arity(self.name, each, 1) for each in encodings])
        self.start: Start = start

    def prepare(self, positions: Positions) -> Started:
        """The sinusoids of the places, step by step."""
        places, *lengths = (numbers(self.name, each, positions.queries(each)) for each in self.encodings)
        first = timing(places, self.dims.width)
        return Started(self.start, self.dims, places, lengths[0] if lengths else None, first)
