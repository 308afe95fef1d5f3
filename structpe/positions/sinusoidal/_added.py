"""Bases of position models that add sinusoids to the input."""

from __future__ import annotations

from abc import abstractmethod

from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.encodings.size import Size
from structpe.positions import Cells, Dims, PositionModel, Positions
from structpe.positions._checks import numbers, of_arity
from structpe.positions.sinusoidal._sinusoids import interleaved, timing

__all__ = ["CELLS", "AddedSinusoids", "LengthAware", "difference"]

CELLS = Cells("A", "APE", learnable=False, recurring=False, unbound=True, params="0")
"""What is added to the input once and without parameters, at any length."""


class AddedSinusoids(PositionModel):
    """x_t + P_t, P the interleaved sinusoids; t is the value of the encoding."""

    def __init__(self, dims: Dims, encoding: Encoding = Order()) -> None:
        super().__init__(dims, [of_arity(self.name, encoding, 1)])

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        places = numbers(self.name, self.encodings[0], prepared.queries(self.encodings[0]))
        return x + self.waves(places).to(x.dtype)

    def waves(self, places: Tensor) -> Tensor:
        """(b, n, d) P at these places (b, n), in float64."""
        return interleaved(places, self.dims.width)


class LengthAware(PositionModel):
    """x_t + P_t, P the sinusoids of the place t and of the length l that the text will have."""

    def __init__(self, dims: Dims, encoding: Encoding = Order(), length: Encoding = Size()) -> None:
        super().__init__(dims, [of_arity(self.name, each, 1) for each in (encoding, length)])

    def prepare(self, positions: Positions) -> Tensor:
        """(b, n, d) the sinusoids of this batch."""
        return self.waves(*(numbers(self.name, each, positions.queries(each)) for each in self.encodings))

    def inputs(self, x: Tensor, prepared: Tensor) -> Tensor:
        return x + prepared.to(x.dtype)

    @abstractmethod
    def waves(self, places: Tensor, lengths: Tensor) -> Tensor:
        """(b, n, d) P at these places (b, n) of texts of these lengths (b, n), in float64."""


def difference(places: Tensor, lengths: Tensor, width: int) -> Tensor:
    """(b, n, width) row l + 1 - t of the table of sinusoids, whose row 1 is zero: fairseq's row for padding."""
    rows = lengths + 1 - places
    return timing(rows, width) * (rows != 1)[..., None]
