"""Latitude and longitude as waves on the sphere, through a network (Mai et al. 2023, Sphere2Vec)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.coordinates import Points
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Spec
from structpe.positions._checks import of_arity
from structpe.positions.grids._shapes import coordinates

__all__ = ["Spherical"]


class Spherical(PositionModel, name="spherical"):
    """Latitude and longitude as waves on the sphere, through a network (Mai et al. 2023, Sphere2Vec).

    x_u + W_2 relu(W_1 r + b_1) + b_2,  r = cat over scales a of [sin(f/a), cos(f/a) cos(l/a), cos(f/a) sin(l/a)].

    f is the latitude of a unit and l its longitude, from degrees; S scales a_s = a_0^(1 - s/(S-1)) go from the finest
    a_0 to 1. W_1 (H, 3S), W_2 (d, H). The scale 1 gives the point on the unit sphere, so that, unlike in a grid of
    degrees, distances are correct and the ends of the map meet. (Mai et al. 2023, section 5, "sphereC".) At finer
    scales neither holds: ``spherical-harmonics`` is a function of the point at every scale. FourCastNet's and similar
    models of the Earth read their grids of latitude and longitude in this way.

    Args:
        dims: sizes of the Transformer.
        encoding: (latitude, longitude) of each unit in degrees, by default the feature ``degrees`` of its node.
        scales: S, 2 or more.
        finest: a_0, between 0 and 1.
        hidden: H.

    Raises:
        PositionError: other scales, no hidden unit, or not two coordinates per unit.
    """

    spec = Spec(
        "mai2023",
        "grid",
        Cells("A", "APE", learnable=True, recurring=False, unbound=True, params="(3*S + 1)*H + (H + 1)*d"),
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Points(2, key="degrees"),
        scales: int = 16,
        finest: float = 1e-3,
        hidden: int = 64,
    ) -> None:
        if scales < 2 or not 0 < finest < 1 or hidden < 1:
            raise PositionError(
                f"position model {self.name!r} needs 2 scales or more, the finest between 0 and 1, and hidden of 1 or "
                f"more; given are {scales} scales, finest {finest} and hidden {hidden}"
            )
        super().__init__(dims, [of_arity(self.name, encoding, 1)], S=scales, H=hidden)
        self.finest = finest
        self.network = nn.Sequential(nn.Linear(3 * scales, hidden), nn.ReLU(), nn.Linear(hidden, dims.width))

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        degrees = coordinates(self.name, self.encodings[0], prepared.queries(self.encodings[0]), 2)
        added: Tensor = self.network(self._waves(torch.deg2rad(degrees.double())).to(x.dtype))
        return x + added

    def _waves(self, angles: Tensor) -> Tensor:
        """(b, n, 3 S) r."""
        exponents = torch.linspace(1, 0, self.sizes["S"], dtype=torch.float64, device=angles.device)
        latitude, longitude = (angles[..., None, :] / (self.finest**exponents)[:, None]).unbind(-1)
        east = latitude.cos() * longitude.cos()
        north = latitude.cos() * longitude.sin()
        return torch.stack([latitude.sin(), east, north], dim=-1).flatten(-2)
