"""Random Fourier features of continuous coordinates (Tancik et al. 2020)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.coordinates import Points
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Spec
from structpe.positions._checks import of_arity

__all__ = ["Fourier"]


class Fourier(PositionModel, name="fourier"):
    """Random Fourier features of continuous coordinates (Tancik et al. 2020).

    x_u + cat[sin(2 pi B v_u), cos(2 pi B v_u)]: v (a) coordinates of a unit, B (d/2, a) drawn from N(0, sigma^2).

    B is fixed; its numbers follow from the seed, so that it need not be saved. sigma controls how fast features vary
    with v: use 1 or less for coordinates in units of the distance that matters, and about 10 for those of an image on
    the scale 0 to 1. (Tancik et al. 2020, section 4; the tutorial's "Fourier features" of coordinates. The authors feed
    the features to a network instead of v; here they are added to the units.) Computed in float64.

    Args:
        dims: sizes of the Transformer.
        encoding: a vector, or one number, per unit.
        sigma: deviation of B.
        seed: of B.

    Raises:
        PositionError: the width is odd, or sigma not above 0.
    """

    spec = Spec(
        "tancik2020",
        "grid",
        Cells("A", "APE", learnable=False, recurring=False, unbound=True, params="0"),
        not_compiled="its frequencies are drawn by a generator, which cannot be created within a graph",
    )

    def __init__(self, dims: Dims, encoding: Encoding = Points(), sigma: float = 1.0, seed: int = 0) -> None:
        super().__init__(dims, [of_arity(self.name, encoding, 1)])
        if dims.width % 2:
            raise PositionError(f"position model 'fourier' has a sine for each cosine; the width {dims.width} is odd")
        if sigma <= 0:
            raise PositionError(f"position model 'fourier': sigma is {sigma}; give a deviation above 0")
        self.sigma, self.seed = sigma, seed

    def frequencies(self, axes: int) -> Tensor:
        """B (d/2, axes), float64."""
        generator = torch.Generator().manual_seed(self.seed)
        drawn = torch.randn(self.dims.width // 2, axes, generator=generator, dtype=torch.float64)
        return drawn * self.sigma

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        given = prepared.queries(self.encodings[0]).to(torch.float64)
        coordinates = given[..., None] if given.ndim == 2 else given.flatten(2)
        angles = 2 * math.pi * coordinates @ self.frequencies(coordinates.shape[-1]).to(x.device).T
        return x + torch.cat([angles.sin(), angles.cos()], dim=-1).to(x.dtype)
