"""Positions of points in space and on the sphere."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.special import eval_legendre, lpmv
from torch import Tensor

from structpe.encodings import Points
from structpe.errors import EncodingError, PositionError
from structpe.positions import Dims, PositionModel
from structpe.positions.batch import encode
from structpe.positions.space import Continuous, Spherical, SphericalHarmonics, harmonics
from structpe.structure import Structure
from structpe.transforms import grid
from tests.positions.cases import made

# Quito, Helsinki, Auckland, the poles, and two names of one place at the end of the map
DEGREES = [
    [-0.25, -78.5],
    [60.1875, 24.9375],
    [-36.875, 174.75],
    [90.0, 10.0],
    [-90.0, 0.0],
    [10.0, 180.0],
    [10.0, -180.0],
]
EARTH = Structure(("x",) * 7, [], features={"degrees": np.array(DEGREES)})


def added(model: PositionModel, structure: Structure) -> Tensor:
    x = torch.zeros(1, structure.unit_count, model.dims.width, dtype=torch.float64)
    positions = encode([structure], model.encodings).to(torch.device("cpu"), torch.float64)
    return model.inputs(x, model.prepare(positions))[0]


def network(weights: dict[str, Tensor], r: list[float], act: object) -> Tensor:
    hidden = weights["network.0.weight"] @ torch.tensor(r, dtype=torch.float64) + weights["network.0.bias"]
    hidden = torch.stack([act(value) for value in hidden])
    return weights["network.2.weight"] @ hidden + weights["network.2.bias"]


def gelu(value: Tensor) -> Tensor:
    return value * 0.5 * (1 + torch.erf(value / math.sqrt(2)))


def relu(value: Tensor) -> Tensor:
    return value if value > 0 else 0 * value


# --- learned waves ---


def test_points_go_through_waves_and_a_network() -> None:
    model = made("continuous", encoding=Points(3, key="metres"), axes=3, features=6, hidden=5)
    places = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    mine = added(model, Structure(("x",) * 4, [], features={"metres": places}))
    for u, place in enumerate(places.tolist()):
        angles = [sum(w * c for w, c in zip(row, place, strict=True)) for row in model.frequencies.tolist()]
        r = [math.cos(a) / math.sqrt(6) for a in angles] + [math.sin(a) / math.sqrt(6) for a in angles]
        torch.testing.assert_close(mine[u], network(model.state_dict(), r, gelu), rtol=0, atol=1e-9)


def test_waves_start_as_nearness() -> None:
    """The dot product of the waves of two points falls with their distance as a Gaussian of width gamma."""
    torch.manual_seed(0)
    model = Continuous(Dims(8, 2, 1), features=20000, gamma=3.0)
    for far in (0.0, 1.0, 3.0, 6.0):
        angles = model.frequencies @ torch.tensor([[0.0, 0.6 * far], [0.0, 0.8 * far]])
        waves = torch.cat([angles.cos(), angles.sin()]) / math.sqrt(20000)
        assert (waves[:, 0] @ waves[:, 1]).item() == pytest.approx(math.exp(-(far**2) / 18) / 2, abs=0.02)


@pytest.mark.parametrize("wrong", [{"axes": 0}, {"features": 5}, {"hidden": 0}, {"gamma": 0.0}])
def test_invalid_sizes(wrong: dict[str, float]) -> None:
    with pytest.raises(PositionError, match=r"give 1 or more|an even number of features and a gamma above 0; given"):
        Continuous(Dims(8, 2, 1), **wrong)


# --- the sphere ---


def test_degrees_go_through_scales_and_a_network() -> None:
    model = made("spherical", scales=4, finest=0.05, hidden=5)
    mine = added(model, EARTH)
    for u, place in enumerate(DEGREES):
        f, el = (math.radians(angle) for angle in place)
        r = []
        for s in range(4):
            a = 0.05 * (1 / 0.05) ** (s / 3)
            r += [math.sin(f / a), math.cos(f / a) * math.cos(el / a), math.cos(f / a) * math.sin(el / a)]
        torch.testing.assert_close(mine[u], network(model.state_dict(), r, relu), rtol=0, atol=1e-9)


def test_the_coarsest_scale_is_the_point_of_the_sphere() -> None:
    waves = Spherical(Dims(8, 2, 1), scales=2)._waves(torch.deg2rad(torch.tensor(DEGREES).double()))[:, 3:]
    torch.testing.assert_close(waves.norm(dim=1), torch.ones(7).double())
    torch.testing.assert_close(waves[5], waves[6])
    quito, helsinki = (torch.deg2rad(torch.tensor(place).double()) for place in DEGREES[:2])
    half = ((quito - helsinki) / 2).sin() ** 2  # the haversine formula of the angle between two places
    between = 2 * (half[0] + quito[0].cos() * helsinki[0].cos() * half[1]).sqrt().asin()
    torch.testing.assert_close(waves[0] @ waves[1], between.cos())


def test_harmonics_are_those_of_scipy() -> None:
    latitude, longitude = torch.deg2rad(torch.tensor(DEGREES).double()).unbind(-1)
    mine, column = harmonics(latitude, longitude, 12), 0
    for n in range(12):
        for m in range(-n, n + 1):
            scale = math.sqrt((2 * n + 1) / (4 * math.pi) * math.factorial(n - abs(m)) / math.factorial(n + abs(m)))
            wave = np.sin(-m * longitude.numpy()) if m < 0 else np.cos(m * longitude.numpy())
            # lpmv has the sign (-1)^m
            legendre = (-1) ** abs(m) * lpmv(abs(m), n, np.sin(latitude.numpy()))
            expected = scale * legendre * wave * (math.sqrt(2) if m else 1)
            np.testing.assert_allclose(mine[:, column].numpy(), expected, atol=1e-12)
            column += 1
    assert mine.shape[1] == column == 144


def test_harmonics_add_up_to_a_function_of_the_angle() -> None:
    """The addition theorem: sum over m of Y_nm(u) Y_nm(v) = (2n + 1)/(4 pi) P_n(cos of the angle between u and v)."""
    angles = torch.deg2rad(torch.tensor(DEGREES).double())
    mine = harmonics(angles[:, 0], angles[:, 1], 8)
    points = Spherical(Dims(8, 2, 1), scales=2)._waves(angles)[:, 3:]
    cosine = (points @ points.T).clamp(-1, 1).numpy()
    for n in range(8):
        part = mine[:, n**2 : (n + 1) ** 2]
        expected = (2 * n + 1) / (4 * math.pi) * eval_legendre(n, cosine)
        np.testing.assert_allclose((part @ part.T).numpy(), expected, atol=1e-12)


def test_one_place_of_two_names_has_one_position() -> None:
    model = made("spherical-harmonics")
    mine = added(model, EARTH)
    torch.testing.assert_close(mine[5], mine[6])
    pole = added(model, Structure(("x",), [], features={"degrees": np.array([[90.0, -120.0]])}))
    torch.testing.assert_close(pole[0], mine[3])
    waves = harmonics(*torch.deg2rad(torch.tensor(DEGREES).double()).unbind(-1), 10)
    torch.testing.assert_close(mine, waves @ model.linear.weight.T + model.linear.bias)


@pytest.mark.parametrize("name", ["spherical", "spherical-harmonics"])
def test_a_grid_is_not_taken_for_degrees(name: str) -> None:
    with pytest.raises(EncodingError, match="no feature 'degrees'"):
        added(made(name), grid((2, 2)))


@pytest.mark.parametrize("wrong", [{"scales": 1}, {"finest": 1.0}, {"hidden": 0}])
def test_invalid_scales(wrong: dict[str, float]) -> None:
    with pytest.raises(PositionError, match=r"give 1 or more|needs 2 scales or more, the finest between 0 and 1"):
        Spherical(Dims(8, 2, 1), **wrong)


def test_no_degree_is_refused() -> None:
    with pytest.raises(PositionError, match="'degrees' of position model 'spherical-harmonics' is 0; give 1 or more"):
        SphericalHarmonics(Dims(8, 2, 1), degrees=0)
