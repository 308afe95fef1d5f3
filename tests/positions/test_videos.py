"""Learned positions of videos: the tables that the authors' code adds."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from structpe.encodings import Coordinates
from structpe.errors import PositionError
from structpe.positions import Dims, PositionModel
from structpe.positions.batch import encode
from structpe.positions.grids import TimeSformer, ViT, ViViT, nearest
from structpe.structure import Structure
from structpe.transforms import grid, with_class_token
from tests.positions.cases import made

DIMS = Dims(8, 2, 3)


def added(model: PositionModel, structure: Structure) -> Tensor:
    x = torch.zeros(1, structure.unit_count, model.dims.width, dtype=torch.float64)
    return model.inputs(x, model.prepare(encode([structure], model.encodings)))[0]


@pytest.mark.parametrize("size", [(4, 3, 3), (2, 6, 5), (8, 2, 4), (3, 7, 7), (1, 1, 1)])
def test_a_video_of_another_size_is_interpolated_as_the_authors_do(size: tuple[int, int, int]) -> None:
    model = made("timesformer", shape=(4, 3, 3))
    frames, height, width = size
    image = model.space[1:].T.reshape(1, 8, 3, 3)
    space = functional.interpolate(image, size=(height, width), mode="nearest")[0]
    time = functional.interpolate(model.time.T[None], size=frames, mode="nearest")[0]
    mine = added(model, with_class_token(grid(size)))
    assert torch.equal(mine[0], model.space[0])
    for u, (t, y, x) in enumerate(grid(size).features["coordinates"].tolist(), start=1):
        torch.testing.assert_close(mine[u], space[:, y, x] + time[:, t], rtol=0, atol=1e-12)


def test_the_nearest_row_is_that_of_the_interpolation() -> None:
    for have in range(1, 30):
        rows = torch.arange(have, dtype=torch.float32)
        for want in range(1, 60):
            ranks = torch.stack([torch.arange(1, want + 1), torch.full((want,), want)], dim=-1)[None]
            expected = functional.interpolate(rows[None, None], size=want, mode="nearest")[0].long()
            assert torch.equal(nearest(ranks, have), expected), (have, want)


def test_time_starts_at_zero_and_is_not_of_the_class_token() -> None:
    model = TimeSformer(DIMS, shape=(2, 2, 2)).double()
    assert not model.time.any()
    torch.nn.init.ones_(model.time)
    torch.nn.init.zeros_(model.space)
    assert added(model, with_class_token(grid((2, 2, 2))))[:, 0].tolist() == [0.0] + [1.0] * 8


def test_the_joint_table_has_a_row_per_tubelet() -> None:
    model = made("vivit", shape=(2, 3, 4))
    assert torch.equal(added(model, with_class_token(grid((2, 3, 4)))), model.table)
    smaller = added(model, grid((2, 2, 3)))
    for u, (t, y, x) in enumerate(grid((2, 2, 3)).features["coordinates"].tolist()):
        assert torch.equal(smaller[u], model.table[1 + (t * 3 + y) * 4 + x])


def test_a_table_of_images_is_repeated_over_time() -> None:
    image, video = made("vit", shape=(3, 4)), ViViT(DIMS, shape=(2, 3, 4)).double()
    video.start_from(image.table)
    mine = added(video, with_class_token(grid((2, 3, 4))))
    frame = added(image, with_class_token(grid((3, 4))))
    assert torch.equal(mine, torch.cat([frame, frame[1:]]))


def test_a_table_of_other_images_is_refused() -> None:
    with pytest.raises(PositionError, match=r"starts from a table of shape \(13, 8\).*given is \(197, 8\)"):
        ViViT(DIMS, shape=(2, 3, 4)).start_from(ViT(DIMS).table)


def test_a_longer_video_is_refused() -> None:
    with pytest.raises(PositionError, match="'vivit' was built for a grid of 2x3x4, this batch needs 3x1x1"):
        added(made("vivit", shape=(2, 3, 4)), grid((3, 1, 1)))


def test_counts_are_needed_and_not_places() -> None:
    with pytest.raises(PositionError, match="'timesformer' needs counts of places per axis"):
        added(made("timesformer", encoding=Coordinates(axes=3)), grid((2, 2, 2)))
