"""Rotary positions of images and videos."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from structpe.encodings import Points
from structpe.errors import PositionError
from structpe.positions import Dims, PositionModel, Site
from structpe.positions.batch import encode
from structpe.positions.rotary import Rotary
from structpe.positions.rotary_axes import AxialRotary, AxialRotary3D
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
