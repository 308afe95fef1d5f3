"""Waves across an image whose places are shifted and scaled at random while training: CAPE (Likhomanenko 2021)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from structpe.encodings.unit_square import UnitSquare
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Spec
from structpe.positions.sinusoidal._augmentation import Augmentation, augmented

__all__ = ["CAPE2D"]


class CAPE2D(PositionModel, name="cape-2d"):
    """Waves across an image whose places are shifted and scaled at random while training: CAPE (Likhomanenko 2021).

    sqrt(d) x_u + cat[cos phi_u, sin phi_u],  phi_uj = pi rho_j (a'_u cos j + b'_u sin j),  rho_j = 10^(j/(d/2 - 1)).

    j runs from 0 to d/2 - 1, and is an angle in radians too. (a, b) are the coordinates of a unit, each from -1 to 1
    across the grid; a is that of the grid's first axis. In training (a', b') = ((a, b) + delta + epsilon_u) e^lambda,
    in evaluation (a, b): delta ~ U(-shift, shift) along each axis and lambda ~ U(-log scaling, log scaling) are drawn
    for each structure and batch, epsilon_u for each unit, up to ``local`` steps of the grid along each axis.
    (Likhomanenko et al. 2021; the code is a third party's and follows the paper's listing.) A unit without a place in
    the grid, such as a class token, gets the factor sqrt(d) only. By default nothing is drawn at random, as in the
    code.

    Args:
        dims: sizes of the Transformer.
        encoding: coordinates and steps.
        shift: most by which all units are moved along an axis, 0 or more.
        local: most by which a unit is moved by itself, in steps; up to 0.5 keeps their order.
        scaling: most by which coordinates are multiplied or divided, 1 or more.

    Raises:
        PositionError: the width is odd, or an augmentation is invalid.
    """

    spec = Spec(
        "likhomanenko2021", "grid", Cells("A", "APE", learnable=False, recurring=False, unbound=True, params="0")
    )

    def __init__(
        self,
        dims: Dims,
        encoding: UnitSquare = UnitSquare(),
        shift: float = 0.0,
        local: float = 0.0,
        scaling: float = 1.0,
    ) -> None:
        super().__init__(dims, [encoding])
        if dims.width % 2:
            raise PositionError(f"position model 'cape-2d' has a sine for each cosine; the width {dims.width} is odd")
        self.augmentation = Augmentation(self.name, shift, local, scaling)

    def prepare(self, positions: Positions) -> tuple[Tensor, Tensor]:
        """(b, n, 2) the coordinates of this batch, float64, and (b, n) which units have any."""
        coordinates, steps = positions.queries(self.encodings[0]).double().unbind(-1)
        there = steps[..., 0] >= 0
        if self.training:
            coordinates = augmented(coordinates, *self.augmentation.draw(coordinates, steps.clamp(min=0)))
        return coordinates, there

    def inputs(self, x: Tensor, prepared: tuple[Tensor, Tensor]) -> Tensor:
        coordinates, there = prepared
        waves = self.waves(coordinates) * there[..., None]
        return x * math.sqrt(self.dims.width) + waves.to(x.dtype)

    def waves(self, coordinates: Tensor) -> Tensor:
        """(..., d) of coordinates (..., 2)."""
        half = self.dims.width // 2
        angle = torch.arange(half, dtype=torch.float64, device=coordinates.device)
        rho = 10 ** torch.linspace(0, 1, half, dtype=torch.float64, device=coordinates.device)
        phase = math.pi * coordinates @ torch.stack([rho * angle.cos(), rho * angle.sin()])
        return torch.cat([phase.cos(), phase.sin()], dim=-1)
