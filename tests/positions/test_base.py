"""Sizes, positions of a batch, and what they refuse."""

from __future__ import annotations

import pytest
import torch

from structpe.encodings import Depth, Offset, Order
from structpe.errors import PositionError
from structpe.positions import MODELS, Dims, PositionModel, Positions
from structpe.positions.batch import encode
from structpe.structure import path


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((0, 1, 1), "^the width is 0; give 1 or more$"),
        ((8, 0, 1), "^the number of heads is 0; give 1 or more$"),
        ((8, 2, -1), "^the number of layers is -1; give 1 or more$"),
        ((8, 3, 1), "^3 heads do not divide the width 8; the next that they divide is 9$"),
        ((3, 8, 1), "^8 heads do not divide the width 3; the next that they divide is 8$"),
    ],
)
def test_sizes_that_do_not_fit(sizes: tuple[int, int, int], message: str) -> None:
    with pytest.raises(PositionError, match=message):
        Dims(*sizes)


def test_what_was_not_encoded() -> None:
    positions = encode([path(["a", "b"])], [Order()])
    with pytest.raises(PositionError, match=r"the batch was not encoded by Depth\(\); it was by: Order\(\)"):
        _ = positions[Depth()]
    with pytest.raises(PositionError, match=r"it was by: none"):
        _ = Positions({})[Order()]


def test_a_step_has_its_queries_and_all_keys_so_far() -> None:
    step = encode([path(list("abcde"))], [Order(), Offset()]).step(2, 4)
    assert step[Order()].tolist() == [[0, 1, 2, 3]]
    assert step.queries(Order()).tolist() == [[2, 3]]
    assert step[Offset()].dense()[0].tolist() == [[-2, -1, 0, 1], [-3, -2, -1, 0]]


def test_a_dtype_is_for_real_numbers_only() -> None:
    positions = Positions({Order(): torch.arange(3)[None], Depth(): torch.ones(1, 3)})
    moved = positions.to(torch.device("cpu"), torch.float64)
    assert moved[Order()].dtype == torch.int64
    assert moved[Depth()].dtype == torch.float64


def test_two_models_of_one_name() -> None:
    assert "t5" in MODELS
    with pytest.raises(PositionError, match=r"two position models are named 't5': .*; rename one"):
        type("Other", (PositionModel,), {}, name="t5")
