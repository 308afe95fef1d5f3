"""DA-Transformer: its formula, and the five properties that its authors ask of a function of the distance."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from structpe.encodings import Distance
from structpe.errors import PositionError
from structpe.positions import Site
from structpe.positions.batch import encode
from structpe.positions.decay import DATransformer, rescaled
from tests.positions.cases import TREES, made
from tests.positions.literal import Score, assert_score, terms_of
from tests.together import together

FAR = torch.arange(0, 200, dtype=torch.float64)
SCALES = [-2.0, -0.5, 0.0, 0.5, 2.0]


@pytest.mark.parametrize("sharing", ["layer-wise", "none"])
def test_the_formula(sharing: str) -> None:
    model = made("da-transformer", sharing=sharing)
    assert isinstance(model, DATransformer)

    def formula(q: Tensor, k: Tensor) -> Score:
        def score(h: int, i: int, j: int) -> Tensor:
            w, v = (float(x) for x in model.table.at(1)[:, h].detach())
            rescale = (1 + math.exp(v)) / (1 + math.exp(v - w * abs(i - j)))
            return torch.relu(q[h, i] @ k[h, j]) * rescale / 2

        return score

    assert_score(model, formula, layer=1)


def f(w: float, v: float, far: Tensor = FAR) -> Tensor:
    return rescaled(far, torch.tensor(w).double(), torch.tensor(v).double())


@together("v", SCALES)
@together("w", [-1.0, -0.1, 0.1, 1.0])
def test_a_distance_of_zero_changes_nothing(w: float, v: float) -> None:
    assert f(w, v)[0].item() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("v", SCALES)
def test_a_head_that_prefers_what_is_near_suppresses_what_is_far(v: float) -> None:
    assert f(-1.0, v)[-1] < 1e-12
    assert f(-1.0, v, torch.tensor([1e6]).double()).item() == 0


@pytest.mark.parametrize("v", SCALES)
def test_it_is_bounded_however_far(v: float) -> None:
    bound = 1 + math.exp(v)
    assert (f(1.0, v) <= bound + 1e-12).all()
    assert f(1.0, v, torch.tensor([1e9]).double()).item() == pytest.approx(bound, abs=1e-12)


def test_its_scale_can_be_tuned() -> None:
    limits = [f(1.0, v)[-1].item() for v in SCALES]
    assert limits == pytest.approx([1 + math.exp(v) for v in SCALES])
    assert sorted(limits) == limits


@pytest.mark.parametrize("v", SCALES)
@pytest.mark.parametrize("w", [-0.05, 0.05])
def test_it_is_monotonic(w: float, v: float) -> None:
    steps = f(w, v).diff()
    assert (steps.sign() == math.copysign(1, w)).all()


@pytest.mark.parametrize("w", [-1.0, 1.0])
def test_neither_value_nor_gradient_overflows(w: float) -> None:
    """The exponential of the formula is infinite at these distances."""
    scale = torch.tensor([w], requires_grad=True)
    value = rescaled(torch.tensor([1e5]), scale, torch.zeros(1))
    value.sum().backward()
    assert value.isfinite().all()
    assert scale.grad is not None
    assert scale.grad.isfinite().all()


def test_the_distance_of_units_of_one_node_is_that_of_their_places() -> None:
    model = made("da-transformer", encoding=Distance(max_distance=9))
    far = model.prepare(encode(TREES[:1], model.encodings)).dense()[0]
    owner = torch.tensor(TREES[0].unit_owner)
    places = torch.arange(len(owner))
    same = owner[:, None] == owner[None]
    assert torch.equal(far[same], (places[:, None] - places[None]).abs()[same])


def test_a_pair_without_a_path_is_as_far_as_the_limit() -> None:
    forest = TREES[0]
    model = made("da-transformer", encoding=Distance())
    siblings = encode([forest], model.encodings)
    apart = (siblings[Distance()].table == 1 << 20).any()
    assert apart, "the two branches of the tree are not connected along its edges"
    with pytest.raises(
        PositionError, match=r"'da-transformer' got a pair of units without a path.* with max_distance="
    ):
        model.prepare(siblings)
    limited = made("da-transformer", encoding=Distance(max_distance=9))
    prepared = limited.prepare(encode([forest], limited.encodings))
    assert int(prepared.table.max()) == 9
    assert limited.terms(prepared, Site(0)).gate


def test_direction_is_not_distinguished() -> None:
    (gate,) = terms_of(made("da-transformer"), 9).gate
    assert torch.equal(gate.dense(), gate.dense().transpose(1, 2))
