"""From where the Universal Transformer counts places: the rule of each step, written out."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from structpe.positions import Dims, PositionModel, Positions, Site
from structpe.positions.batch import encode
from structpe.structure import path
from tests.positions.cases import made, noise

NAMES = ["universal", "universal-sinusoidal"]


def text(model: PositionModel, *sizes: int) -> Positions:
    return encode([path(["w"] * size) for size in sizes], model.encodings)


def waves(start: int, size: int) -> Tensor:
    """(size, 8) rows start, start + 1, ... of the authors' table."""
    frequencies = [10000 ** (-i / 3) for i in range(4)]
    rows = [[wave(t * w) for wave in (math.sin, math.cos) for w in frequencies] for t in range(start, start + size)]
    return torch.tensor(rows, dtype=torch.float64)


@pytest.mark.parametrize("name", NAMES)
def test_places_may_be_counted_from_the_step(name: str) -> None:
    """floor(L l / s), L the units of each text and s the steps."""
    model, plain = (made(name, Dims(8, 2, 4), start=start) for start in ("step", "first"))
    x, sizes = noise(2, 7, 8), (7, 5)
    for layer, starts in enumerate([(0, 0), (1, 1), (3, 2), (5, 3)]):
        mine, other = (each.layer(x, each.prepare(text(each, *sizes)), Site(layer)) for each in (model, plain))
        for row, (start, size) in enumerate(zip(starts, sizes, strict=True)):
            moved = waves(start, size) - waves(0, size)
            torch.testing.assert_close((mine - other)[row, :size], moved, rtol=0, atol=1e-9)
    assert plain.causal
    assert not model.causal


@pytest.mark.parametrize("name", NAMES)
def test_places_may_be_counted_from_a_random_one_in_training(name: str) -> None:
    torch.manual_seed(0)
    model, plain, x = made(name, start="random"), made(name), noise(1, 3, 8)
    prepared, still = model.prepare(text(model, 3)), plain.layer(x, plain.prepare(text(plain, 3)), Site(1))
    assert torch.equal(model.layer(x, prepared, Site(1)), still)
    model.train()
    seen = set()
    for _ in range(60):
        now = (model.layer(x, prepared, Site(1)) - still)[0] + waves(0, 3)
        seen.add(next(start for start in range(3) if torch.allclose(now, waves(start, 3), atol=1e-9)))
    assert seen == {0, 1, 2}
