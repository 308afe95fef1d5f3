"""Absolute positions of images: the authors' numbers, and their formulas in loops."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.ndimage import zoom
from torch import Tensor

from structpe.encodings import Coordinates, Order, Points
from structpe.errors import PositionError
from structpe.positions import Dims, Site, Sources
from structpe.positions.batch import encode
from structpe.positions.grids import DETR, DETRLearned, SinusoidalND, ViT, ViT2D
from structpe.structure import Structure, path
from structpe.transforms import grid, with_class_token
from tests.golden import golden
from tests.positions.cases import noise


def added(model: object, structures: list[Structure]) -> Tensor:
    """(b, n, d) what is added to the units, in float64."""
    model = model.double()
    prepared = model.prepare(encode(structures, model.encodings))
    x = torch.zeros(len(structures), structures[0].unit_count, model.dims.width, dtype=torch.float64)
    return model.inputs(x, prepared)


def asked(model: object, structures: list[Structure]) -> Sources:
    """What is added to the sources of queries, keys and values."""
    model = model.double()
    prepared = model.prepare(encode(structures, model.encodings))
    x = torch.zeros(len(structures), structures[0].unit_count, model.dims.width, dtype=torch.float64)
    return model.sources(Sources(x, x, x), prepared, Site(0))


# --- sinusoids of any number of axes ---


def test_the_authors_waves_of_two_axes() -> None:
    given = golden("t2t_sinusoid")
    mine = added(SinusoidalND(Dims(8, 2, 1)), [grid((3, 4))])
    torch.testing.assert_close(mine[0].float(), given["out.nd_3x4_d8"].flatten(0, 1), rtol=0, atol=1e-5)


@pytest.mark.parametrize(("shape", "d"), [((7,), 10), ((3, 4), 13), ((2, 3, 2), 26), ((2, 2, 2), 7)])
def test_each_axis_has_its_own_channels(shape: tuple[int, ...], d: int) -> None:
    axes, structure = len(shape), grid(shape)
    mine = added(SinusoidalND(Dims(d, 1, 1), Coordinates(axes), axes), [structure])[0]
    n = d // (2 * axes)
    for u, place in enumerate(structure.features["coordinates"].tolist()):
        expected = [0.0] * d
        for a, c in enumerate(place):
            for i in range(n):
                frequency = 10000 ** (-i / (n - 1)) if n > 1 else 1.0
                expected[a * 2 * n + i] = math.sin(c * frequency)
                expected[a * 2 * n + n + i] = math.cos(c * frequency)
        torch.testing.assert_close(mine[u], torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12)


def test_a_sequence_has_the_waves_of_one_line() -> None:
    model = SinusoidalND(Dims(8, 2, 1))
    assert torch.equal(added(model, [path("abcd")]), added(model, [grid((1, 4))]))


def test_a_class_token_has_no_waves_and_points_may_be_negative() -> None:
    assert not added(SinusoidalND(Dims(8, 2, 1)), [with_class_token(grid((1, 2)))])[0, 0].any()
    somewhere = Structure(("a",), [], features={"coordinates": np.array([[-1.0, -1.0]])})
    assert added(SinusoidalND(Dims(8, 2, 1), Points()), [somewhere])[0, 0, 0] == pytest.approx(math.sin(-1.0))


def test_too_few_channels_for_the_axes() -> None:
    with pytest.raises(PositionError, match="2 channels for each; given are 3 axes and 4 channels"):
        SinusoidalND(Dims(4, 1, 1), Coordinates(3), axes=3)


@pytest.mark.parametrize("encoding", [Order(), Coordinates(3)])
def test_other_numbers_of_coordinates_are_refused(encoding: object) -> None:
    with pytest.raises(PositionError, match=r"'vit' needs 2 coordinates per unit; '.*' gives (one number|3 numbers)"):
        added(ViT(Dims(8, 2, 1), encoding), [path("ab")])


# --- ViT ---


def test_a_patch_has_the_row_of_its_place_and_the_class_token_row_0() -> None:
    model, image = ViT(Dims(8, 2, 1), shape=(3, 4)), with_class_token(grid((3, 4)))
    assert torch.equal(added(model, [image])[0], model.table)  # as many rows as tokens, in reading order
    mine = added(model, [grid((2, 3))])[0]
    for u, (y, x) in enumerate((y, x) for y in range(2) for x in range(3)):
        assert torch.equal(mine[u], model.table[1 + y * 4 + x])


@pytest.mark.parametrize("model", [ViT, ViT2D, DETRLearned])
def test_an_image_beyond_the_shape_is_refused(model: type) -> None:
    name = model.name
    with pytest.raises(PositionError, match=f"'{name}' was built for a grid of 2x5, this batch needs 3x1"):
        (asked if model is DETRLearned else added)(model(Dims(8, 2, 1), shape=(2, 5)), [grid((3, 1))])
    with pytest.raises(PositionError, match=r"takes a shape of 2 lengths, each 1 or more; given is \(2, 0\)"):
        model(Dims(8, 2, 1), shape=(2, 0))


@pytest.mark.parametrize(("old", "new"), [((2, 2), (4, 4)), ((4, 3), (2, 5)), ((3, 3), (3, 3)), ((4, 4), (7, 6))])
def test_a_table_is_interpolated_as_the_authors_do(old: tuple[int, int], new: tuple[int, int]) -> None:
    model = ViT(Dims(6, 1, 1), shape=old).double()
    image = model.table[1:].detach().reshape(*old, 6).numpy()
    expected = zoom(image, (new[0] / old[0], new[1] / old[1], 1), order=1)
    other = model.resized(new)
    assert other.shape == new
    assert torch.equal(other.table[0], model.table[0])
    torch.testing.assert_close(other.table[1:].detach(), torch.from_numpy(expected).flatten(0, 1), rtol=0, atol=1e-12)


def test_columns_come_before_rows() -> None:
    model, image = ViT2D(Dims(8, 2, 1), shape=(2, 3)), with_class_token(grid((2, 3)))
    mine = added(model, [image])[0]
    assert torch.equal(mine[0], torch.cat([model.columns[0], model.rows[0]]))
    for u, (y, x) in enumerate(image.features["coordinates"][1:].tolist(), start=1):
        assert torch.equal(mine[u], torch.cat([model.columns[1 + x], model.rows[1 + y]]))
    assert model.claimed_params() == (1 + 3 + 1 + 2) * 4


# --- DETR ---


@pytest.mark.parametrize("normalised", [0, 1])
def test_the_authors_sines_with_padded_pixels(normalised: int) -> None:
    given = golden("detr")
    image = grid(given.cfg["grid"])
    images = [
        replace(image, features={**image.features, "valid": ~mask.flatten().numpy()}) for mask in given["in.mask"]
    ]
    mine = asked(DETR(Dims(2 * given.cfg["num_pos_feats_sine"], 2, 1), normalised=bool(normalised)), images)
    expected = given[f"out.sine_norm{normalised}"].flatten(2).transpose(1, 2)
    torch.testing.assert_close(mine.query.float(), expected, rtol=0, atol=1e-5)
    assert torch.equal(mine.key, mine.query)
    assert not mine.value.any()


def test_pixels_that_are_not_there_are_not_counted() -> None:
    """Nodes of padding may be left out as well as marked: the valid ones get the same."""
    given = golden("detr")
    image, mask = grid(given.cfg["grid"]), given["in.mask"][1].flatten()
    places = image.features["coordinates"][~mask.numpy()]
    cropped = Structure(("x",) * len(places), [], features={"coordinates": places})
    mine = asked(DETR(Dims(16, 2, 1)), [cropped]).query[0]
    expected = given["out.sine_norm1"][1].flatten(1).T[~mask]
    torch.testing.assert_close(mine.float(), expected, rtol=0, atol=1e-5)


def test_the_authors_learned_tables() -> None:
    given = golden("detr")
    model = DETRLearned(Dims(8, 2, 1)).double()
    with torch.no_grad():
        model.columns[:5], model.rows[:5] = given["w.col"], given["w.row"]
    mine = asked(model, [grid(given.cfg["grid"])] * 2)
    torch.testing.assert_close(mine.query, given["out.learned"].flatten(2).transpose(1, 2), rtol=0, atol=1e-9)
    assert not asked(model, [with_class_token(grid((2, 2)))]).key[0, 0].any()


def test_counts_are_needed_and_not_places() -> None:
    with pytest.raises(PositionError, match="'detr' needs counts of places per axis, as 'grid-rank' gives them"):
        asked(DETR(Dims(8, 2, 1), Coordinates()), [grid((2, 2))])


@pytest.mark.parametrize("model", [DETR, DETRLearned, ViT2D])
def test_an_odd_width_is_refused(model: type) -> None:
    with pytest.raises(PositionError, match=f"'{model.name}' halves the width, which must be even; it is 9"):
        model(Dims(9, 3, 1))


def test_more_keys_than_positions_are_refused() -> None:
    model, x = DETR(Dims(8, 2, 1)), noise(1, 5, 8)
    prepared = model.prepare(encode([grid((2, 2))], model.encodings))
    with pytest.raises(PositionError, match="5 units are attended to and positions of 4 were given"):
        model.sources(Sources(x, x, x), prepared, Site(0))
