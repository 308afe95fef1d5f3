"""CAPE in one and two dimensions, with draws written down, and Fourier features: the formulas as coded."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from structpe.encodings import Centred, Depth, Order
from structpe.encodings.coordinates import Points
from structpe.errors import PositionError
from structpe.positions import Dims, PositionModel
from structpe.positions.batch import encode
from structpe.positions.grids import CAPE2D
from structpe.positions.sinusoidal import CAPE, Sinusoidal
from structpe.positions.sinusoids import Augmentation, augmented
from structpe.positions.space import Fourier
from structpe.structure import Structure, path
from structpe.transforms import grid, with_class_token
from tests.positions.cases import TREES, noise


def text(size: int) -> Structure:
    return path(["w"] * size)


def added(model: PositionModel, structure: Structure) -> Tensor:
    zero = torch.zeros(1, structure.unit_count, model.dims.width, dtype=torch.float64)
    return model.inputs(zero, model.prepare(encode([structure], model.encodings)))[0]


# --- one dimension ---


@pytest.mark.parametrize(("step", "speed"), [(1.0, 1.0), (0.03, 30.0)])
def test_in_evaluation_it_is_the_wave_as_coded(step: float, speed: float) -> None:
    d = 6
    expected = [
        [math.sin(t * step * speed * 10000 ** (-2 * (j // 2) / d) + (j % 2) * math.pi / 2) for j in range(d)]
        for t in range(5)
    ]
    given = added(CAPE(Dims(d, 1, 1), step=step, speed=speed).eval(), text(5))
    torch.testing.assert_close(given, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12)


def test_units_are_multiplied_by_the_root_of_the_width() -> None:
    model, x = CAPE(Dims(8, 2, 1)).eval(), noise(1, 4, 8)
    given = model.inputs(x, model.prepare(encode([text(4)], model.encodings)))[0]
    torch.testing.assert_close(given, 8**0.5 * x[0] + added(Sinusoidal(Dims(8, 2, 1)), text(4)))


def test_shifts_come_before_the_scale() -> None:
    """(t D + delta + epsilon_t) e^lambda with draws that are written down, for two structures."""
    places = torch.arange(3, dtype=torch.float64).expand(2, 3)[..., None] * 0.5
    shift, log_scale = torch.tensor([[[2.0]], [[-1.0]]]).double(), torch.tensor([[[0.3]], [[-0.2]]]).double()
    local = noise(2, 3, 1)
    given = augmented(places, shift, local, log_scale)
    for b in range(2):
        for t in range(3):
            moved = t * 0.5 + float(shift[b]) + float(local[b, t])
            assert float(given[b, t]) == pytest.approx(moved * math.exp(float(log_scale[b])))


def test_draws_have_the_given_width() -> None:
    torch.manual_seed(0)
    places = torch.zeros(400, 5, 1, dtype=torch.float64)
    shift, local, log_scale = Augmentation("cape", shift=3.0, local=0.5, scaling=1.5).draw(places, 0.2)
    for drawn, most, shape in (
        (shift, 3, (400, 1, 1)),
        (local, 0.1, (400, 5, 1)),
        (log_scale, math.log(1.5), (400, 1, 1)),
    ):
        assert tuple(drawn.shape) == shape
        assert drawn.abs().max() <= most
        assert drawn.abs().max() > 0.95 * most
        assert drawn.mean().abs() < 0.1 * most


def test_training_draws_again_and_evaluation_does_not_draw() -> None:
    model = CAPE(Dims(8, 2, 1), shift=5.0, local=0.5, scaling=1.03)
    plain = added(CAPE(Dims(8, 2, 1)), text(5))
    torch.testing.assert_close(added(model.eval(), text(5)), plain, rtol=0, atol=0)
    model.train()
    positions = encode([text(5)] * 2, model.encodings)
    places = model.prepare(positions)
    assert not torch.equal(places, model.prepare(positions))
    assert not torch.equal(places[0], places[1])
    assert (places.diff(dim=1) > 0).all()  # local shifts of half a step keep the order


def test_without_augmentation_training_is_evaluation() -> None:
    model = CAPE(Dims(8, 2, 1))
    assert torch.equal(added(model.train(), text(5)), added(model.eval(), text(5)))


def test_places_may_be_centred() -> None:
    model = CAPE(Dims(8, 2, 1), encoding=Centred(), step=0.5).eval()
    prepared = model.prepare(encode([text(4), text(3)], model.encodings))
    assert prepared[0].tolist() == [-0.75, -0.25, 0.25, 0.75]
    assert prepared[1, :3].tolist() == [-0.5, 0, 0.5]
    assert not model.causal
    assert CAPE(Dims(8, 2, 1)).causal


@pytest.mark.parametrize("options", [{"shift": -1.0}, {"local": -0.1}, {"scaling": 0.9}])
def test_impossible_augmentations_are_refused(options: dict[str, float]) -> None:
    for cls in (CAPE, CAPE2D):
        with pytest.raises(PositionError, match=r"give 0 or more|shifts of 0 or more and a scaling of 1 or more"):
            cls(Dims(8, 2, 1), **options)


def test_time_goes_on() -> None:
    with pytest.raises(PositionError, match=r"step 0.0, speed 1.0; give numbers above 0"):
        CAPE(Dims(8, 2, 1), step=0.0)


# --- two dimensions ---


def test_waves_across_an_image_as_coded() -> None:
    d, (rows, columns) = 8, (3, 4)
    expected = []
    for a in range(rows):
        for b in range(columns):
            x, y = -1 + 2 * a / (rows - 1), -1 + 2 * b / (columns - 1)
            rho = [10 ** (j / (d // 2 - 1)) for j in range(d // 2)]
            phases = [math.pi * r * (math.cos(j) * x + math.sin(j) * y) for j, r in enumerate(rho)]
            expected.append([*map(math.cos, phases), *map(math.sin, phases)])
    given = added(CAPE2D(Dims(d, 2, 1)).eval(), grid((rows, columns)))
    # Coordinates are float32, and phases up to 10 pi sqrt(2).
    torch.testing.assert_close(given, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=5e-6)


def test_local_shifts_are_parts_of_a_step_of_the_grid() -> None:
    torch.manual_seed(0)
    model = CAPE2D(Dims(8, 2, 1), local=0.5).train()
    image = encode([grid((3, 9))] * 50, model.encodings)
    exact, _ = model.eval().prepare(image)
    moved, _ = model.train().prepare(image)
    most = (moved - exact).abs().amax(dim=(0, 1))
    assert most[0] == pytest.approx(0.5 * 1.0, rel=0.05)
    assert most[1] == pytest.approx(0.5 * 0.25, rel=0.05)


def test_both_axes_have_one_scale_and_two_shifts() -> None:
    torch.manual_seed(0)
    model = CAPE2D(Dims(8, 2, 1), shift=0.5, scaling=1.4)
    image = encode([grid((2, 2))], model.encodings)
    (moved, _), corners = model.train().prepare(image), torch.tensor([[-1, -1], [-1, 1], [1, -1], [1, 1]]).double()
    scale = (moved[0, 3] - moved[0, 0]) / 2
    torch.testing.assert_close(scale[0], scale[1])
    shift = moved[0] / scale - corners
    torch.testing.assert_close(shift, shift[:1].expand(4, 2))
    assert shift[0, 0] != shift[0, 1]
    assert shift.abs().max() <= 0.5


def test_a_class_token_is_scaled_only() -> None:
    model, image = CAPE2D(Dims(8, 2, 1)).eval(), with_class_token(grid((2, 2)))
    x = noise(1, 5, 8)
    prepared = model.prepare(encode([image], model.encodings))
    alone = [i for i in range(5) if not prepared[1][0, i]]
    assert len(alone) == 1
    torch.testing.assert_close(model.inputs(x, prepared)[0, alone], 8**0.5 * x[0, alone])


@pytest.mark.parametrize("cls", [CAPE2D, Fourier])
def test_an_odd_width_is_refused(cls: type[PositionModel]) -> None:
    with pytest.raises(PositionError, match="has a sine for each cosine; the width 9 is odd"):
        cls(Dims(9, 3, 1))


# --- Fourier features ---


def test_fourier_features_written_out() -> None:
    model, image = Fourier(Dims(6, 2, 1), sigma=0.3), grid((2, 3))
    b = model.frequencies(2).tolist()
    expected = []
    for y in range(2):
        for x in range(3):
            angles = [2 * math.pi * (row[0] * y + row[1] * x) for row in b]
            expected.append([*map(math.sin, angles), *map(math.cos, angles)])
    given = added(model, image)
    torch.testing.assert_close(given, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12)


def test_frequencies_follow_from_the_seed_and_sigma() -> None:
    one, again, other = (Fourier(Dims(2000, 2, 1), sigma=2.5, seed=seed).frequencies(2) for seed in (0, 0, 1))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    assert one.std().item() == pytest.approx(2.5, rel=0.05)
    assert not list(Fourier(Dims(8, 2, 1)).state_dict())


def test_their_products_depend_only_on_the_difference() -> None:
    rows = added(Fourier(Dims(32, 2, 1), encoding=Points(axes=1), sigma=0.05), text(20))
    product = rows @ rows.T
    for offset in (0, 3, 9):
        diagonal = product.diagonal(offset)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), rtol=0, atol=1e-9)
    assert product.diagonal(0)[0] == pytest.approx(16)


@pytest.mark.parametrize("encoding", [Order(), Depth()])
def test_one_number_is_a_coordinate_too(encoding: Order | Depth) -> None:
    model = Fourier(Dims(8, 2, 1), encoding=encoding)
    values = encoding.one(TREES[0]).values
    angles = 2 * math.pi * torch.from_numpy(values).double()[:, None] * model.frequencies(1).T
    expected = torch.cat([angles.sin(), angles.cos()], dim=-1)
    torch.testing.assert_close(added(model, TREES[0]), expected, rtol=0, atol=1e-12)


def test_sigma_is_above_zero() -> None:
    with pytest.raises(PositionError, match=r"sigma is 0\.0; give a deviation above 0"):
        Fourier(Dims(8, 2, 1), sigma=0.0)
