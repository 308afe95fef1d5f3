"""The mean of the weights of a model at its last moments."""

from __future__ import annotations

from fractions import Fraction

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from structpe.tasks.training.lightning_module import Average, mean
from tests.examples import examples


def model(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    made = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    made(torch.randn(8, 3))  # statistics that move on
    return made


@examples(50)
@given(st.lists(st.floats(-(2.0**99), 2.0**99, width=32), min_size=1, max_size=9))
def test_the_mean_is_that_of_fractions_to_one_rounding(values: list[float]) -> None:
    (found,) = mean([{"a": torch.tensor([value])} for value in values]).values()
    exact = sum(map(Fraction, values)) / len(values)
    assert abs(Fraction(found.item()) - exact) <= Fraction(2) ** -23 * max(map(abs, map(Fraction, values)), default=0)


@examples(50)
@given(st.floats(width=32, allow_nan=False, allow_infinity=False), st.integers(1, 20))
def test_the_mean_of_equal_numbers_is_that_number(value: float, count: int) -> None:
    states = [{"a": torch.tensor(value)}] * count
    assert mean(states)["a"].item() == value


def test_whole_numbers_are_those_of_the_last() -> None:
    states = [model(0).state_dict(), model(1).state_dict()]
    states[1]["1.num_batches_tracked"] = torch.tensor(7)
    found = mean(states)
    assert found["1.num_batches_tracked"].item() == 7
    assert found["1.num_batches_tracked"].dtype == torch.int64
    torch.testing.assert_close(found["1.running_mean"], (model(0)[1].running_mean + model(1)[1].running_mean) / 2)  # type: ignore[index]


def test_the_last_few_count_and_the_model_is_its_own_again() -> None:
    net, average, weights = model(0), Average(2), []
    for _ in range(4):
        with torch.no_grad():
            net[0].weight.add_(torch.randn(4, 3))  # type: ignore[index]
        average.add(net)
        weights.append(net[0].weight.detach().clone())  # type: ignore[index]
    before = {name: each.clone() for name, each in net.state_dict().items()}
    with average.applied(net):
        torch.testing.assert_close(net[0].weight, (weights[2] + weights[3]) / 2)  # type: ignore[index]
    assert all(torch.equal(each, before[name]) for name, each in net.state_dict().items())


def test_one_moment_is_the_model_itself_and_nothing_is_kept() -> None:
    net, average = model(0), Average(1)
    average.add(net)
    assert not average.kept
    with average.applied(net):
        assert torch.equal(net[0].weight, model(0)[0].weight)  # type: ignore[index]
