"""Fourier position embedding: the authors' numbers, a literal sum of waves, and what it starts from."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from structpe.errors import PositionError
from structpe.positions import Dims, Site
from structpe.positions.batch import encode
from structpe.positions.rotary_axes import FoPE
from structpe.structure import path
from tests.golden import golden
from tests.positions.cases import noise
from tests.positions.waves import wave


def turned(model: FoPE, x: Tensor, layer: int = 0) -> Tensor:
    prepared = model.prepare(encode([path("abcdefghi"[: x.shape[2]])], model.encodings))
    (turn,) = model.terms(prepared, Site(layer)).maps
    return turn(x, x)[0]


@pytest.mark.parametrize(("which", "heads", "trained"), [("few", 2, 64), ("many", 1, 4096)])
def test_it_is_the_authors_code(which: str, heads: int, trained: int) -> None:
    given = golden("fope")
    model = FoPE(Dims(32, heads, 1), original_length=trained).double()
    shape = model.coefficients.shape[2:]
    model.coefficients[0] = torch.stack([wave(*shape, shift=2.0), wave(*shape, shift=1.0)])
    mine = turned(model, wave(2, heads, 9, 32 // heads))
    theirs = given[f"out.turned_{which}"]
    torch.testing.assert_close(mine[: len(theirs)], theirs, rtol=0, atol=1e-12)


def test_frequencies_and_main_ones_are_the_authors() -> None:
    given = golden("fope")
    for which, heads, trained in (("few", 2, 64), ("many", 1, 4096)):
        model = FoPE(Dims(32, heads, 2), original_length=trained, gain=0.0).double()
        for layer in range(2):
            for kind in range(2):
                assert torch.equal(model.coefficients[layer, kind], given[f"out.main_{which}"])
    torch.testing.assert_close(model.inverse_frequencies(), given["out.frequencies_many"], rtol=1e-12, atol=0)


def test_a_literal_sum_of_waves() -> None:
    torch.manual_seed(0)
    model, x = FoPE(Dims(32, 2, 2)).double(), noise(1, 2, 9, 16)
    frequencies = [10000.0 ** (-2 * c / 16) for c in range(8) if 10000.0 ** (-2 * c / 16) >= 2 * math.pi / 512]
    a, b = model.coefficients[1].tolist()
    found = turned(model, x, layer=1)
    for h in range(2):
        for t in range(9):
            for i in range(8):
                cos = sin = 1.0
                if i < min(len(frequencies), 4):
                    cos = sum(a[h][c][i] * math.cos(w * t) for c, w in enumerate(frequencies))
                    sin = sum(b[h][c][i] * math.sin(w * t) for c, w in enumerate(frequencies))
                first, second = x[0, h, t, i].item(), x[0, h, t, i + 8].item()
                assert found[0, h, t, i].item() == pytest.approx(first * cos - second * sin, abs=1e-12)
                assert found[0, h, t, i + 8].item() == pytest.approx(second * cos + first * sin, abs=1e-12)


def test_each_layer_draws_its_own_and_they_are_saved_but_not_learned() -> None:
    torch.manual_seed(0)
    model = FoPE(Dims(64, 2, 2))
    assert not torch.equal(model.coefficients[0], model.coefficients[1])
    off = model.coefficients - FoPE(Dims(64, 2, 2), gain=0.0).coefficients
    waves, pairs = off.shape[-2:]
    assert off.std().item() == pytest.approx(0.3 * math.sqrt(2 / ((waves + 2) * pairs)), rel=0.1)
    assert "coefficients" in model.state_dict()
    assert not list(model.parameters())


@pytest.mark.parametrize(("dims", "trained"), [(Dims(4, 2, 1), 512), (Dims(8, 2, 1), 6)])
def test_no_frequency_or_pair_is_refused(dims: Dims, trained: int) -> None:
    with pytest.raises(PositionError, match=r"no frequency left.*give an original_length of 7 or more, and heads of"):
        FoPE(dims, original_length=trained)
