"""Points in continuous space, and on the sphere.

A model raises a :class:`PositionError` for an encoding of pairs, or one that gives another number of coordinates.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.coordinates import Points
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Spec
from structpe.positions.batch import of_arity
from structpe.positions.places import coordinates
from structpe.precision import wide

__all__ = ["Continuous", "Fourier", "Spherical", "SphericalHarmonics", "harmonics"]


class Continuous(PositionModel, name="continuous"):
    """Points in space through learned waves and a network (Li et al. 2021, learnable Fourier features).

    x_u + W_2 gelu(W_1 r + b_1) + b_2,  r = cat[cos(W_r c_u), sin(W_r c_u)] / sqrt(F).

    c_u (A) is the place of a unit in a space of A axes, any real numbers; W_r (F/2, A) are learned frequencies, from
    N(0, 1/gamma^2): r_u.r_v starts as about exp(-|c_u - c_v|^2 / (2 gamma^2)) / 2, and gamma is the scale of distances.
    W_1 (H, F), W_2 (d, H). (Li et al. 2021, section 3, algorithm 1, with one group of axes.) Without the waves, such a
    network would not learn fine details.

    Args:
        encoding: A real numbers per unit.
        axes: A.
        features: F, an even number.
        hidden: H.
        gamma: in the unit of the coordinates.

    Raises:
        PositionError: an odd number of features, or a gamma of 0.
    """

    spec = Spec(
        "li2021",
        "grid",
        Cells("A", "APE", learnable=True, recurring=False, unbound=True, params="F*A//2 + (F + 1)*H + (H + 1)*d"),
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Points(),
        axes: int = 2,
        features: int = 64,
        hidden: int = 32,
        gamma: float = 1.0,
    ) -> None:
        if min(axes, features, hidden) < 1 or features % 2 or gamma <= 0:
            raise PositionError(
                f"position model {self.name!r} needs axes, features and hidden of 1 or more, an even number of "
                f"features and a gamma above 0; given are {axes} axes, {features} features, hidden {hidden} and gamma "
                f"{gamma}"
            )
        super().__init__(dims, [of_arity(self.name, encoding, 1)], A=axes, F=features, H=hidden)
        self.frequencies = nn.Parameter(torch.randn(features // 2, axes) / gamma)
        self.network = nn.Sequential(nn.Linear(features, hidden), nn.GELU(), nn.Linear(hidden, dims.width))

    def prepare(self, positions: Positions) -> Tensor:
        """(b, n, F) the waves r of the units."""
        places = coordinates(self.name, self.encodings[0], positions.queries(self.encodings[0]), self.sizes["A"])
        frequencies = wide(self.frequencies)
        angles = places.to(frequencies.dtype) @ frequencies.T
        return torch.cat([angles.cos(), angles.sin()], dim=-1) / math.sqrt(self.sizes["F"])

    def inputs(self, x: Tensor, prepared: Tensor) -> Tensor:
        added: Tensor = self.network(prepared.to(x.dtype))
        return x + added


class Fourier(PositionModel, name="fourier"):
    """Random Fourier features of continuous coordinates (Tancik et al. 2020).

    x_u + cat[sin(2 pi B v_u), cos(2 pi B v_u)]: v (a) coordinates of a unit, B (d/2, a) drawn from N(0, sigma^2).

    B is fixed; its numbers follow from the seed, and it need not be saved. sigma controls how fast features vary with
    v: use 1 or less for coordinates in units of the distance that matters, and about 10 for those of an image on the
    scale 0 to 1. (Tancik et al. 2020, section 4; the tutorial's "Fourier features" of coordinates. The authors feed the
    features to a network instead of v; here they are added to the units.) Computed in float64.

    Args:
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


class OnSphere(PositionModel):
    """Points on the sphere.

    Args:
        encoding: (latitude, longitude) of each unit in degrees, by default the feature ``degrees`` of its node.
    """

    def angles(self, prepared: Positions) -> Tensor:
        """(b, n, 2) latitudes and longitudes in radians, in float64."""
        encoding = self.encodings[0]
        return torch.deg2rad(coordinates(self.name, encoding, prepared.queries(encoding), 2).double())


class Spherical(OnSphere, name="spherical"):
    """Latitude and longitude as waves on the sphere, through a network (Mai et al. 2023, Sphere2Vec).

    x_u + W_2 relu(W_1 r + b_1) + b_2,  r = cat over scales a of [sin(f/a), cos(f/a) cos(l/a), cos(f/a) sin(l/a)].

    f is the latitude of a unit and l its longitude, from degrees; S scales a_s = a_0^(1 - s/(S-1)) go from the finest
    a_0 to 1. W_1 (H, 3S), W_2 (d, H). The scale 1 gives the point on the unit sphere: unlike in a grid of degrees,
    distances are correct and the ends of the map meet. At finer scales neither holds: ``spherical-harmonics`` is a
    function of the point at every scale. (Mai et al. 2023, section 5, "sphereC".) FourCastNet and similar models of the
    Earth read their grids in this way.

    Args:
        scales: S, 2 or more.
        finest: a_0, between 0 and 1.
        hidden: H.
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
        added: Tensor = self.network(self._waves(self.angles(prepared)).to(x.dtype))
        return x + added

    def _waves(self, angles: Tensor) -> Tensor:
        """(b, n, 3 S) r."""
        exponents = torch.linspace(1, 0, self.sizes["S"], dtype=torch.float64, device=angles.device)
        latitude, longitude = (angles[..., None, :] / (self.finest**exponents)[:, None]).unbind(-1)
        east, north = latitude.cos() * longitude.cos(), latitude.cos() * longitude.sin()
        return torch.stack([latitude.sin(), east, north], dim=-1).flatten(-2)


class SphericalHarmonics(OnSphere, name="spherical-harmonics"):
    """Latitude and longitude as spherical harmonics (Russwurm et al. 2024).

    x_u + W Y(f_u, l_u) + b,  Y the real spherical harmonics Y_nm of degrees n < L and orders |m| <= n.

    f is the latitude of a unit and l its longitude, from degrees; W (d, L^2). Y are to the sphere what sines and
    cosines are to the circle: functions of the point only, the same at both ends of the map and for any longitude of a
    pole, and Y(u).Y(v) depends on the angle between u and v only. (Russwurm et al. 2024, section 3.1, with the linear
    network of their comparison; their other one is a SIREN.)

    Args:
        degrees: L; details of about 180/L degrees are distinguished.
    """

    spec = Spec(
        "russwurm2024", "grid", Cells("A", "APE", learnable=True, recurring=False, unbound=True, params="(L*L + 1)*d")
    )

    def __init__(self, dims: Dims, encoding: Encoding = Points(2, key="degrees"), degrees: int = 10) -> None:
        super().__init__(dims, [of_arity(self.name, encoding, 1)], L=degrees)
        self.linear = nn.Linear(degrees**2, dims.width)

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        latitude, longitude = self.angles(prepared).unbind(-1)
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
