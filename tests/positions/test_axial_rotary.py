"""Rotary positions of images and videos."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from structpe.encodings import CircleInSpace, Diagonal, Encoding, GridRange, Points
from structpe.errors import EncodingError, PositionError
from structpe.positions import Dims, PositionModel, Site
from structpe.positions.batch import encode
from structpe.positions.build import build
from structpe.positions.rotary import Rotary, RotaryHalf
from structpe.positions.rotary_grids import AxialRotary, AxialRotary3D, CircleRoPE, DINOv3Rotary, EVA02Rotary, VideoRoPE
from structpe.structure import Structure, path
from structpe.transforms import grid, with_class_token
from tests.positions.cases import noise


def turned(model: PositionModel, structure: Structure, x: Tensor) -> Tensor:
    """(h, n, d_h) queries after the map; keys alike."""
    (change,) = model.terms(model.prepare(encode([structure], model.encodings)), Site(0)).maps
    q, k = change(x[None], x[None])
    assert torch.equal(q, k)
    return q[0]


def together(place: list[int], x: list[float], pairs: list[tuple[int, int]], base: float) -> list[float]:
    """One head of one unit: channels 2c, 2c+1 as a complex number, times e^(i angle)."""
    out, c = [], 0
    for axis, count in pairs:
        for i in range(count):
            angle = torch.tensor(place[axis] * base ** (-i / count), dtype=torch.float64)
            z = complex(x[2 * c], x[2 * c + 1]) * complex(angle.cos(), angle.sin())
            out += [z.real, z.imag]
            c += 1
    return out


@pytest.mark.parametrize(
    ("head", "pairs"), [(4, [(1, 1), (0, 1)]), (8, [(1, 2), (0, 2)]), (10, [(1, 3), (0, 2)]), (2, [(1, 1), (0, 0)])]
)
def test_columns_turn_the_first_half_and_rows_the_second(head: int, pairs: list[tuple[int, int]]) -> None:
    structure = grid((3, 4)) if head > 2 else grid((1, 4))
    model, x = AxialRotary(Dims(2 * head, 2, 1)), noise(2, structure.size, head)
    mine = turned(model, structure, x)
    for u, place in enumerate(structure.features["coordinates"].tolist()):
        for h in range(2):
            expected = together(place, x[h, u].tolist(), pairs, 100.0)
            torch.testing.assert_close(mine[h, u], torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("head", "split"), [(16, (2, 3, 3)), (64, (8, 12, 12)), (128, (16, 24, 24)), (6, (1, 1, 1)), (8, (1, 1, 2))]
)
def test_time_row_and_column_turn_2_3_and_3_eighths(head: int, split: tuple[int, int, int]) -> None:
    structure = grid((2, 3, 2))
    model, x = AxialRotary3D(Dims(head, 1, 1)), noise(1, structure.size, head)
    mine = turned(model, structure, x)
    for u, place in enumerate(structure.features["coordinates"].tolist()):
        expected = together(place, x[0, u].tolist(), list(enumerate(split)), 10000.0)
        torch.testing.assert_close(mine[0, u], torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("name", "shape"), [("axial-rotary", (5, 6)), ("axial-rotary-3d", (3, 4, 3))])
def test_a_dot_product_depends_only_on_offsets(name: str, shape: tuple[int, ...]) -> None:
    model = {"axial-rotary": AxialRotary, "axial-rotary-3d": AxialRotary3D}[name](Dims(16, 1, 1))
    structure = grid(shape)
    q, k = noise(1, 1, 16), noise(1, 1, 16, seed=1)
    n = structure.size
    scores = turned(model, structure, q.expand(1, n, 16))[0] @ turned(model, structure, k.expand(1, n, 16))[0].T
    places, of_offset = structure.features["coordinates"], {}
    for i in range(n):
        for j in range(n):
            of_offset.setdefault(tuple(places[j] - places[i]), []).append(scores[i, j])
    groups = [torch.stack(group) for group in of_offset.values()]
    assert max((group - group[0]).abs().max() for group in groups) < 1e-12
    firsts = torch.stack([group[0] for group in groups]).sort().values
    assert firsts.diff().min() > 1e-9  # and different offsets give different scores


def test_a_line_of_columns_is_a_sequence() -> None:
    model, x = AxialRotary(Dims(8, 1, 1)), noise(1, 7, 8)
    assert torch.equal(turned(model, path("abcdefg"), x), turned(model, grid((1, 7)), x))
    sequence = turned(Rotary(Dims(4, 1, 1), base=100.0), path("abcdefg"), x[..., :4])
    torch.testing.assert_close(turned(model, grid((1, 7)), x)[..., :4], sequence, rtol=0, atol=1e-12)
    assert torch.equal(turned(model, grid((1, 7)), x)[..., 4:], x[..., 4:])


def test_a_class_token_is_not_turned() -> None:
    structure, x = with_class_token(grid((2, 2))), noise(1, 5, 8)
    mine = turned(AxialRotary(Dims(8, 1, 1)), structure, x)
    assert torch.equal(mine[:, 0], x[:, 0])
    torch.testing.assert_close(mine[:, 1:], turned(AxialRotary(Dims(8, 1, 1)), grid((2, 2)), x[:, 1:]))


def test_points_between_places_turn_too() -> None:
    half = Structure(("a",), [], features={"coordinates": torch.tensor([[-1.0, 0.5]]).numpy()})
    x = noise(1, 1, 4)
    mine = turned(AxialRotary(Dims(4, 1, 1), Points()), half, x)
    expected = together([-1.0, 0.5], x[0, 0].tolist(), [(1, 1), (0, 1)], 100.0)
    torch.testing.assert_close(mine[0, 0], torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("model", "head", "shape"), [(AxialRotary, 2, (2, 2)), (AxialRotary3D, 4, (2, 2, 2))])
def test_an_axis_without_channels_is_refused(model: type, head: int, shape: tuple[int, ...]) -> None:
    with pytest.raises(PositionError, match=r"has no channels for axis 0 of the coordinates.*wider heads"):
        turned(model(Dims(head, 1, 1)), grid(shape), noise(1, 4, head))


def test_an_odd_head_is_refused() -> None:
    with pytest.raises(PositionError, match="turns pairs of channels, so the width of a head must be even"):
        AxialRotary(Dims(9, 3, 1))


@pytest.mark.parametrize(("head", "shape"), [(4, (3, 4)), (8, (5, 2)), (10, (3, 3)), (8, (1, 1))])
def test_eva_02_scales_places_to_those_of_training(head: int, shape: tuple[int, int]) -> None:
    structure = with_class_token(grid(shape))
    model, x = EVA02Rotary(Dims(head, 1, 1)), noise(1, structure.size, head)
    mine, pairs = turned(model, structure, x), [(0, head // 4), (1, head // 2 - head // 4)]
    for u, place in enumerate(structure.features["coordinates"].tolist()):
        scaled = [16 * max(c, 0) / n for c, n in zip(place, shape, strict=True)]
        expected = together(scaled, x[0, u].tolist(), pairs, 10000.0)
        torch.testing.assert_close(mine[0, u], torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-5)


def test_dinov3_stretches_in_training_only() -> None:
    """By factors within their bounds, the same for all units of a batch; the middle of an image stays."""
    structure, x = with_class_token(grid((3, 5))), noise(1, 16, 8)
    model = DINOv3Rotary(Dims(8, 1, 1), jitter=1.5, rescale=2.0)
    torch.manual_seed(0)
    angles = torch.stack([model.prepare(encode([structure], model.encodings)).queries[0, 0] for _ in range(20)])
    model.eval()
    plain = model.prepare(encode([structure], model.encodings)).queries[0, 0]
    assert torch.equal(turned(model, structure, x), turned(model, structure, x))
    factors = angles / plain
    for axis in (slice(0, 2), slice(2, 4)):
        mine = factors[..., axis].flatten(1)
        assert mine.nan_to_num(1.0).log().abs().max() <= torch.tensor(3.0).log()
        kept = mine[:, ~mine.isnan().any(dim=0)]
        torch.testing.assert_close(kept, kept[:, :1].expand_as(kept))
        assert kept[:, 0].std() > 0.1
    assert not torch.allclose(factors[0, 1, :2], factors[0, 1, 2:])
    with pytest.raises(PositionError, match=r"takes a jitter of 1 or more; given is 0.5"):
        DINOv3Rotary(Dims(8, 1, 1), jitter=0.5)


def of_axes(x: Tensor, places: Tensor, axes: list[int], base: float) -> Tensor:
    """Channels i and i + d/2 of (n, d), with the place (n, axes) on the axis of the pair i."""
    first, second = x.chunk(2, dim=-1)
    powers = torch.arange(len(axes), dtype=torch.float64) / len(axes)
    angles = places[:, axes] * base**-powers
    return torch.cat([first * angles.cos() - second * angles.sin(), second * angles.cos() + first * angles.sin()], -1)


@pytest.mark.parametrize("head", [4, 16, 32])
def test_frames_of_a_video_follow_the_diagonal(head: int) -> None:
    """As the authors' code: row and column in turn, then time."""
    structure, x = grid((3, 4, 5)), noise(1, 60, head)
    t, y, x_ = torch.from_numpy(structure.features["coordinates"]).double().unbind(-1)
    places = torch.stack([2 * t, y - 1 + 2 * t, x_ - 2 + 2 * t], dim=-1)
    time = head // 8
    axes = [1 + i % 2 if i < head // 2 - time else 0 for i in range(head // 2)]
    mine = turned(VideoRoPE(Dims(head, 1, 1)), structure, x)
    torch.testing.assert_close(mine[0], of_axes(x[0], places, axes, 10000.0), rtol=0, atol=1e-9)
    text = path("abcde")
    torch.testing.assert_close(
        turned(VideoRoPE(Dims(head, 1, 1)), text, x[:, :5]), turned(RotaryHalf(Dims(head, 1, 1)), text, x[:, :5])
    )


@pytest.mark.parametrize(("shape", "alpha"), [((3, 4), 0.5), ((5, 5), 1.0), ((1, 3), 0.0), ((1, 1), 0.5)])
def test_patches_are_on_a_circle_around_the_text(shape: tuple[int, int], alpha: float) -> None:
    """As the authors' code computes it, with a basis of the plane that is found by a cross product."""
    h, w = shape
    ys, xs = torch.meshgrid(torch.arange(h).double(), torch.arange(w).double(), indexing="ij")
    ys, xs = ys - (h - 1) / 2, xs - (w - 1) / 2
    seen = torch.atan2(ys, xs)
    if seen.max() > seen.min():
        seen = (seen - seen.min()) / (seen.max() - seen.min()) * 2 * torch.pi
    rank = torch.arange(h * w).double().view(h, w) / (h * w) * 2 * torch.pi
    angle = alpha * seen + (1 - alpha) * rank
    text = torch.ones(3, dtype=torch.float64) / 3**0.5
    u = torch.stack([-text[1], text[0], torch.zeros((), dtype=torch.float64)])
    u = u / u.norm()
    v = torch.linalg.cross(text, u)
    across = 10 * (angle.cos()[..., None] * u + angle.sin()[..., None] * v / v.norm())  # column, row, time
    wanted = across.flip(-1).flatten(0, 1)
    structure = with_class_token(grid(shape))
    encoding = CircleInSpace(alpha=alpha)
    values = torch.from_numpy(encoding.one(structure).values).double()
    torch.testing.assert_close(values[1:], wanted, rtol=0, atol=1e-5)
    assert not values[0].any()
    torch.testing.assert_close((values[1:] - 7).norm(dim=-1), torch.full((h * w,), (3 * 49 + 100.0) ** 0.5).double())
    x = noise(1, h * w + 1, 16)
    mine = turned(CircleRoPE(Dims(16, 1, 1), encoding), structure, x)
    torch.testing.assert_close(mine[0], of_axes(x[0], values, [0, 0, 1, 1, 1, 2, 2, 2], 10000.0), rtol=0, atol=1e-9)
    assert torch.equal(mine[:, 0], x[:, 0])


@pytest.mark.parametrize("layout", ["pairs", "halves"])
def test_one_encoding_of_coordinates_is_several_axes(layout: str) -> None:
    """As features of one number each."""
    structure, x = grid((2, 3)), noise(1, 6, 12)
    places = structure.features["coordinates"]
    both = replace(structure, features={"coordinates": places, "row": places[:, 0], "column": places[:, 1]})
    options = {"name": "rotary", "layout": layout, "sections": [2, 4], "base": 30.0}
    one = build({**options, "axes": ["coordinates"]}, Dims(12, 1, 1))
    several = build({**options, "axes": [{"name": "feature", "key": key} for key in ("row", "column")]}, Dims(12, 1, 1))
    assert torch.equal(turned(one, both, x), turned(several, both, x))


def test_golden_directions_turn_with_diagonals() -> None:
    """Each pair of each head with its own, as if the projection of the place were the place."""
    structure, x = with_class_token(grid((3, 4))), noise(2, 13, 6)
    options = {"name": "rotary", "layout": "halves", "directions": "golden"}
    mine = turned(build({**options, "axes": ["coordinates"]}, Dims(12, 2, 1)), structure, x)
    for u, (row, column) in enumerate(structure.features["coordinates"].clip(0).tolist()):
        for h, i in itertools.product(range(2), range(3)):
            direction = (3 * h + i) * math.pi * (math.sqrt(5) - 1) / 2
            angle = (row * math.sin(direction) + column * math.cos(direction)) * 10000 ** (-i / 3)
            wanted = complex(x[h, u, i], x[h, u, i + 3]) * complex(math.cos(angle), math.sin(angle))
            assert complex(mine[h, u, i], mine[h, u, i + 3]) == pytest.approx(wanted, abs=1e-12)
    assert torch.equal(mine[:, 0], x[:, 0])
    with pytest.raises(PositionError, match="has golden directions on two axes, without sections"):
        build(options, Dims(12, 2, 1))


@pytest.mark.parametrize(
    "frequencies", [{"name": "longrope", "kept": 2}, {"name": "dynamic-ntk", "original_length": 3}]
)
def test_golden_directions_with_frequencies_of_each_unit(frequencies: dict[str, Any]) -> None:
    """The first pair of the first head turns with the column, so as if that were the place in a text."""
    images, x = [grid((1, 9)), grid((1, 4))], noise(2, 2, 9, 6)
    options = {"name": "rotary", "layout": "halves", "frequencies": frequencies}
    golden = build({**options, "axes": ["coordinates"], "directions": "golden"}, Dims(12, 2, 1))
    plain = build(options, Dims(12, 2, 1))
    mine, other = (
        each.terms(each.prepare(encode(images, each.encodings)), Site(0)).maps[0](x, x)[0] for each in (golden, plain)
    )
    torch.testing.assert_close(mine[:, 0, :, [0, 3]], other[:, 0, :, [0, 3]], rtol=0, atol=1e-12)


def test_phases_are_added_to_the_angles_of_keys() -> None:
    model = build({"name": "rotary", "phases": [0.5, -1.0, 0.0]}, Dims(6, 1, 1))
    plain, x = build("rotary", Dims(6, 1, 1)), noise(1, 1, 4, 6)
    positions = encode([path("abcd")], model.encodings)
    (turn,), (other,) = (each.terms(each.prepare(positions), Site(0)).maps for each in (model, plain))
    (q, k), (same, _) = turn(x, x), other(x, x)
    assert torch.equal(q, same)
    numbers = torch.view_as_complex(same.unflatten(-1, (3, 2)).contiguous())
    wanted = numbers * torch.polar(torch.ones(3), torch.tensor([0.5, -1.0, 0.0])).to(numbers.dtype)
    torch.testing.assert_close(k, torch.view_as_real(wanted).flatten(-2), rtol=0, atol=1e-6)
    with pytest.raises(PositionError, match="a phase for each of the 3 pairs of channels that it turns; given are 1"):
        build({"name": "rotary", "phases": [0.5]}, Dims(6, 1, 1))


@pytest.mark.parametrize(
    ("encoding", "message"),
    [
        (lambda: GridRange(low=1.0), "a range from 1 to 1 is empty; give a high above low"),
        (lambda: Diagonal(scale=0.0), "frames are 0 places apart; give more than 0"),
        (lambda: CircleInSpace(alpha=2.0), "give a radius above 0 and an alpha from 0 to 1"),
    ],
)
def test_coordinates_that_mean_nothing_are_refused(encoding: Callable[[], Encoding], message: str) -> None:
    with pytest.raises(EncodingError, match=message):
        encoding()
