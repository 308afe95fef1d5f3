"""Latitude and longitude as spherical harmonics (Russwurm et al. 2024)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.coordinates import Points
from structpe.positions import Cells, Dims, PositionModel, Positions, Spec
from structpe.positions._checks import of_arity
from structpe.positions.grids._shapes import coordinates

__all__ = ["SphericalHarmonics", "harmonics"]


class SphericalHarmonics(PositionModel, name="spherical-harmonics"):
    """Latitude and longitude as spherical harmonics (Russwurm et al. 2024).

    x_u + W Y(f_u, l_u) + b,  Y the real spherical harmonics Y_nm of degrees n < L and orders |m| <= n.

    f is the latitude of a unit and l its longitude, from degrees; W (d, L^2). Y are to the sphere what sines and
    cosines are to the circle: functions of the point only, the same at both ends of the map and for any longitude of a
    pole, and Y(u).Y(v) depends on the angle between u and v only. (Russwurm et al. 2024, section 3.1, with the linear
    network of their comparison; their other one is a SIREN.)

    Args:
        dims: sizes of the Transformer.
        encoding: (latitude, longitude) of each unit in degrees, by default the feature ``degrees`` of its node.
        degrees: L; details of about 180/L degrees are distinguished.

    Raises:
        PositionError: no degree, or not two coordinates per unit.
    """

    spec = Spec(
        "russwurm2024", "grid", Cells("A", "APE", learnable=True, recurring=False, unbound=True, params="(L*L + 1)*d")
    )

    def __init__(self, dims: Dims, encoding: Encoding = Points(2, key="degrees"), degrees: int = 10) -> None:
        super().__init__(dims, [of_arity(self.name, encoding, 1)], L=degrees)
        self.linear = nn.Linear(degrees**2, dims.width)

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        degrees = coordinates(self.name, self.encodings[0], prepared.queries(self.encodings[0]), 2)
        latitude, longitude = torch.deg2rad(degrees.double()).unbind(-1)
        added: Tensor = self.linear(harmonics(latitude, longitude, self.sizes["L"]).to(x.dtype))
        return x + added


def harmonics(latitude: Tensor, longitude: Tensor, degrees: int) -> Tensor:
    """(..., L^2) float64: Y_00, Y_1,-1, Y_10, Y_11, Y_2,-2, ..., orthonormal on the sphere.

    Y_nm = sqrt(2) P_n|m|(sin f) times cos(m l) for m > 0 and sin(|m| l) for m < 0, and P_n0(sin f), with normalised
    associated Legendre functions P without the sign of Condon and Shortley.

    Args:
        latitude: f in radians.
        longitude: l in radians.
        degrees: L.
    """
    legendre = _legendre(latitude.sin(), latitude.cos(), degrees)
    orders = torch.arange(degrees, dtype=torch.float64, device=longitude.device)
    angles = longitude[..., None] * orders
    even, odd = angles.cos() * math.sqrt(2), angles.sin() * math.sqrt(2)
    columns = []
    for n in range(degrees):
        columns += [legendre[n][m] * odd[..., m] for m in range(n, 0, -1)]
        columns += [legendre[n][0]]
        columns += [legendre[n][m] * even[..., m] for m in range(1, n + 1)]
    return torch.stack(columns, dim=-1)


def _legendre(sine: Tensor, cosine: Tensor, degrees: int) -> list[list[Tensor]]:
    """P_nm(sine) for n < degrees and m <= n, by the recurrence that is stable: up from the diagonal m = n."""
    rows = [[torch.full_like(sine, math.sqrt(1 / (4 * math.pi)))]]
    for n in range(1, degrees):
        row = []
        for m in range(n):
            before = rows[n - 2][m] * math.sqrt(((n - 1) ** 2 - m**2) / (4 * (n - 1) ** 2 - 1)) if m < n - 1 else 0.0
            row.append(math.sqrt((4 * n**2 - 1) / (n**2 - m**2)) * (sine * rows[n - 1][m] - before))
        rows.append([*row, math.sqrt((2 * n + 1) / (2 * n)) * cosine * rows[n - 1][n - 1]])
    return rows
