"""Absolute positions: sinusoids, learned tables and depths."""

from __future__ import annotations

import math

import pytest
import torch

from structpe.encodings.distance import Distance
from structpe.errors import PositionError
from structpe.positions import Dims
from structpe.positions.absolute import Learned
from structpe.positions.batch import encode
from structpe.positions.sinusoidal import Sinusoidal
from structpe.positions.trees import SPR, SPRAbsolute
from structpe.structure import Structure, path
from tests.golden import golden
from tests.together import together

TREE = Structure(tuple("abcd"), [[1, 0], [1, 2], [2, 3]], order=[0, 1, 2, 3], root=1)


def added(model: torch.nn.Module, structure: Structure) -> torch.Tensor:
    zero = torch.zeros(1, structure.unit_count, model.dims.width, dtype=torch.float64)
    return model.inputs(zero, model.prepare(encode([structure], model.encodings)))[0]


def test_the_survey_s_sinusoids() -> None:
    given = golden("sinusoid")["out.onmt_interleaved_d8"].double()
    torch.testing.assert_close(added(Sinusoidal(Dims(8, 2, 1)), path(["w"] * 12)), given, rtol=0, atol=1e-6)


@together("place", [0, 1, 5])
@together("channel", range(5))
def test_equation_21(place: int, channel: int) -> None:
    even = channel - channel % 2
    angle = place * 10000 ** (-even / 5)
    expected = math.cos(angle) if channel % 2 else math.sin(angle)
    assert added(Sinusoidal(Dims(5, 1, 1)), path(["w"] * 6))[place, channel] == pytest.approx(expected, abs=1e-12)


def test_depths_are_the_places_of_spr() -> None:
    sinusoids = added(Sinusoidal(Dims(8, 2, 1)), path(["w"] * 3))
    assert torch.equal(added(SPRAbsolute(Dims(8, 2, 1)), TREE), sinusoids[[1, 0, 1, 2]])


def test_spr_fuses_order_and_depth() -> None:
    model = SPR(Dims(8, 2, 1)).double()
    sinusoids = added(Sinusoidal(Dims(8, 2, 1)), path(["w"] * 4))
    both = torch.cat([sinusoids, sinusoids[[1, 0, 1, 2]]], dim=-1)
    torch.testing.assert_close(added(model, TREE), torch.tanh(both @ model.fuse.weight.T + model.fuse.bias))


def test_learned_positions_end() -> None:
    model = Learned(Dims(8, 2, 1), max_length=4)
    added(model, path(["w"] * 4))
    with pytest.raises(PositionError, match=r"has 4 positions, .* needs 5; build it with a larger 'max_length'"):
        added(model, path(["w"] * 5))


def test_pairs_are_refused() -> None:
    with pytest.raises(PositionError, match=r"'learned' needs an encoding of single units .*; 'distance' is not one"):
        Learned(Dims(8, 2, 1), encoding=Distance())
