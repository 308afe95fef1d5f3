"""Sinusoids of places that are counted from another start at each step (Dehghani et al. 2019, their code)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.positions import Dims, Positions
from structpe.positions._checks import numbers, of_arity
from structpe.positions.sinusoidal._sinusoids import timing

__all__ = ["Start", "Started", "encodings_of", "started"]

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
        lengths: (b, n) L, said at each unit; None where each step counts from 0.
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


def encodings_of(model: str, encoding: Encoding, length: Encoding, start: Start) -> list[Encoding]:
    """Those that a model asks for: lengths only where they matter, as they keep it from being a decoder's."""
    return [of_arity(model, each, 1) for each in ([encoding] if start == "first" else [encoding, length])]


def started(model: str, encodings: tuple[Encoding, ...], positions: Positions, dims: Dims, start: Start) -> Started:
    """The sinusoids of a batch.

    Raises:
        PositionError: an encoding gives a vector per unit.
    """
    places, *lengths = (numbers(model, each, positions.queries(each)) for each in encodings)
    return Started(start, dims, places, lengths[0] if lengths else None, timing(places, dims.width))
