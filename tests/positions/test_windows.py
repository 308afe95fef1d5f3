"""Swin and BEiT: scalars of offsets in a window, in loops; windows, rolled round as the authors do."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from structpe.attention import attend
from structpe.encodings import Distance, GridOffset
from structpe.errors import PositionError
from structpe.positions import Dims, PositionModel, Site, build
from structpe.positions.batch import encode
from structpe.positions.grids import BEiT, Swin
from structpe.positions.windows import SwinWindows
from structpe.structure import Structure, path
from structpe.transforms import grid, with_class_token
from tests.positions.cases import DIMS, made, noise


def bias(model: PositionModel, structure: Structure, layer: int = 0) -> Tensor:
    """(h, n, n) the bias of a layer."""
    terms = model.terms(model.prepare(encode([structure], model.encodings)), Site(layer))
    return terms.bias[0].dense()[0].movedim(-1, 0)


def mask(model: PositionModel, structure: Structure, layer: int) -> Tensor:
    """(n, n) which pairs attend in a layer."""
    return model.terms(model.prepare(encode([structure], model.encodings)), Site(layer)).mask[0][0, 0]


@pytest.mark.parametrize("window", [(3, 4), (4, 2), (1, 5), (1, 1)])
def test_swin_looks_up_the_offset_query_minus_key(window: tuple[int, int]) -> None:
    height, width = window
    model, structure = made("swin", window=window), grid(window)
    assert model.claimed_params() == (2 * height - 1) * (2 * width - 1) * DIMS.heads * DIMS.layers
    places = structure.features["coordinates"].tolist()
    for layer in range(DIMS.layers):
        mine = bias(model, structure, layer)
        for i, (yi, xi) in enumerate(places):
            for j, (yj, xj) in enumerate(places):
                row = (yi - yj + height - 1) * (2 * width - 1) + xi - xj + width - 1
                assert torch.equal(mine[:, i, j], model.table.weight[layer, row])


def test_swin_of_three_axes_and_of_one() -> None:
    video = made("swin", encoding=GridOffset(axes=3), window=(2, 2, 2))
    assert len(video.table.weight[0]) == 27
    line = made("swin", encoding=GridOffset(axes=1), window=(4,))
    mine = bias(line, path("abcdef"))
    for i in range(6):
        for j in range(6):
            assert torch.equal(mine[:, i, j], line.table.weight[0, min(max(i - j, -3), 3) + 3])  # Shaw's clip


def test_a_grid_of_one_line_is_a_sequence() -> None:
    for name in ("swin", "beit"):
        model = made(name)
        assert torch.equal(bias(model, grid((1, 9))), bias(model, path("abcdefghi")))


def test_the_tables_start_as_the_authors() -> None:
    torch.manual_seed(0)
    assert not BEiT(DIMS).table.weight.any()
    weight = Swin(Dims(64, 8, 4), window=(14, 14)).table.weight
    assert weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert weight.shape == (4, 27 * 27, 8)


@pytest.mark.parametrize("window", [(3, 2), (2, 5)])
def test_beit_has_rows_for_its_class_token(window: tuple[int, int]) -> None:
    height, width = window
    model, structure = made("beit", window=window), with_class_token(grid(window))
    rows = (2 * height - 1) * (2 * width - 1) + 3
    assert model.claimed_params() == rows * DIMS.heads * DIMS.layers
    places, mine = structure.features["coordinates"].tolist(), bias(model, structure, 1)
    for i, (yi, xi) in enumerate(places):
        for j, (yj, xj) in enumerate(places):
            if i and j:
                row = (yi - yj + height - 1) * (2 * width - 1) + xi - xj + width - 1
            else:
                row = rows - 1 if i == j else rows - 3 if i == 0 else rows - 2
            assert torch.equal(mine[:, i, j], model.table.weight[1, row])


def test_swin_has_no_scalar_for_a_class_token() -> None:
    with pytest.raises(PositionError, match=r"'swin' got a unit that has no place in the grid.*use 'beit'"):
        bias(Swin(DIMS), with_class_token(grid((2, 2))))


@pytest.mark.parametrize("encoding", [Distance(), GridOffset(axes=3)])
def test_offsets_on_other_axes_are_refused(encoding: Distance | GridOffset) -> None:
    with pytest.raises(PositionError, match=r"needs an offset on each of the 2 axes of its window; '.*' gives"):
        bias(Swin(DIMS, encoding), path("ab"))


@pytest.mark.parametrize("window", [(), (3, 0)])
def test_a_window_without_extent_is_refused(window: tuple[int, ...]) -> None:
    with pytest.raises(PositionError, match=r"takes a shape of .* lengths, each 1 or more; given is \("):
        Swin(DIMS, window=window)


def rolled(height: int, width: int, window: tuple[int, int], shift: tuple[int, int]) -> Tensor:
    """Which pairs attend after the authors: roll the image, cut it, mask what was not together before."""
    numbers = torch.arange(height * width).reshape(height, width)
    regions = torch.zeros(height, width)
    for axis, (size, length, s) in enumerate(zip((height, width), window, shift, strict=True)):
        marks = torch.zeros(size)
        if s:
            marks[size - length :], marks[size - s :] = 1, 2
        regions += (marks[:, None] if axis == 0 else marks[None]) * 3**axis
    image = torch.roll(numbers, (-shift[0], -shift[1]), (0, 1))
    allowed = torch.zeros(height * width, height * width, dtype=torch.bool)
    for top in range(0, height, window[0]):
        for left in range(0, width, window[1]):
            cut = (slice(top, top + window[0]), slice(left, left + window[1]))
            together, region = image[cut].flatten(), regions[cut].flatten()
            for i, a in zip(together, region, strict=True):
                for j, b in zip(together, region, strict=True):
                    allowed[i, j] = a == b
    return allowed


@pytest.mark.parametrize(("shape", "window"), [((4, 6), (2, 3)), ((8, 8), (4, 4)), ((6, 10), (3, 5)), ((3, 6), (3, 3))])
def test_windows_are_those_of_the_rolled_image(shape: tuple[int, int], window: tuple[int, int]) -> None:
    model, image = SwinWindows(DIMS, window=window), grid(shape)
    shift = tuple(length // 2 if size > length else 0 for size, length in zip(shape, window, strict=True))
    for layer in range(3):
        expected = rolled(*shape, window, shift if layer % 2 else (0, 0))
        assert torch.equal(mask(model, image, layer), expected)


def test_what_has_no_place_attends_anywhere() -> None:
    model = SwinWindows(DIMS, window=(2, 2))
    mine = mask(model, with_class_token(grid((4, 4))), 1)
    assert mine[0].all()
    assert mine[:, 0].all()
    assert torch.equal(mine[1:, 1:], mask(model, grid((4, 4)), 1))


def test_both_together_are_attention_within_each_window() -> None:
    """A window computed separately gives the same as in the image."""
    model = build([{"name": "swin", "window": [2, 3]}, {"name": "swin-windows", "window": [2, 3]}], DIMS).double()
    image, cut = grid((4, 6)), grid((2, 3))
    q, k, v = noise(3, 1, 2, 24, 4)
    whole = model.terms(model.prepare(encode([image], model.encodings)), Site(0))
    alone = model.terms(model.prepare(encode([cut], model.encodings)), Site(0))
    inside = [y * 6 + x for y in (2, 3) for x in (3, 4, 5)]
    expected = attend(q[:, :, inside], k[:, :, inside], v[:, :, inside], alone, "dense")
    torch.testing.assert_close(attend(q, k, v, whole, "dense")[:, :, inside], expected, rtol=0, atol=1e-12)
