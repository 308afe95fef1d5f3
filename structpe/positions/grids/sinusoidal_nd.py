"""Sinusoids of any number of coordinates, each in its own channels (tensor2tensor, Vaswani et al. 2018)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from structpe.encodings.base import Encoding
from structpe.encodings.coordinates import Coordinates
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Spec
from structpe.positions._checks import of_arity
from structpe.positions.grids._shapes import coordinates
from structpe.positions.sinusoidal._sinusoids import timing

__all__ = ["SinusoidalND"]


class SinusoidalND(PositionModel, name="sinusoidal-nd"):
    """Sinusoids of any number of coordinates, each in its own channels (tensor2tensor, Vaswani et al. 2018).

    x_u + cat_a [sin(c_a w_0), ..., sin(c_a w_(n-1)), cos(c_a w_0), ..., cos(c_a w_(n-1))],  w_i = 10000^(-i/(n-1)).

    c_a is the coordinate of the unit u on axis a, of which there are A; n = d/(2A), rounded down, and channels beyond 2
    n A are zero. On one axis it is ``sinusoidal-concatenated``. (The function get_timing_signal_nd of the authors of
    the Transformer, whose paper has only sequences.) With n = 1 theirs gives NaN; here w_0 = 1. Units without a place
    in the grid get zeros. Computed in float64, then rounded to the dtype of x.

    Args:
        dims: sizes of the Transformer.
        encoding: coordinates per unit.
        axes: A.

    Raises:
        PositionError: fewer than 2 A channels, or another number of coordinates.
    """

    spec = Spec("vaswani2018", "grid", Cells("A", "APE", learnable=False, recurring=False, unbound=True, params="0"))

    def __init__(self, dims: Dims, encoding: Encoding = Coordinates(), axes: int = 2) -> None:
        if axes < 1 or dims.width < 2 * axes:
            raise PositionError(
                f"position model {self.name!r} needs 1 axis or more and 2 channels for each; "
                f"given are {axes} axes and {dims.width} channels"
            )
        super().__init__(dims, [of_arity(self.name, encoding, 1)])
        self.axes = axes

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        places = coordinates(self.name, self.encodings[0], prepared.queries(self.encodings[0]), self.axes)
        waves = timing(places, self.dims.width // (2 * self.axes) * 2).flatten(-2)
        if not places.is_floating_point():
            waves = torch.where((places < 0).any(-1, keepdim=True), 0, waves)
        return x + functional.pad(waves, (0, self.dims.width - waves.shape[-1])).to(x.dtype)
