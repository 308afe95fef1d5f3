"""The numbers that parameters start from: their mean, deviation and distribution, as recorded in ``starts.json``.

``python -m tests.positions.test_starts`` writes the record, from four draws; what a paper says is in the docstrings of
the models. A changed start is seen here, whatever the order in which numbers are drawn.
"""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path

import pytest
import torch
from torch import Tensor

from structpe.positions import MODELS, Dims
from tests.positions.cases import NAMES, seed
from tests.together import together

FILE = Path(__file__).with_name("starts.json")
COMMAND = "python -m tests.positions.test_starts"
DIMS = Dims(48, 4, 2)
MANY = 400
"""Numbers from which on their distribution is compared."""
FEW = 4
"""Numbers below which a deviation says nothing."""


def parameters(name: str, number: int) -> dict[str, Tensor]:
    seed(number)
    return {each: value.detach().double().flatten() for each, value in MODELS[name](DIMS).named_parameters()}


def of(x: Tensor) -> list[float]:
    """Mean, deviation, and the mean fourth power of the deviations in units of it: 3 of a normal distribution,
    9/5 of a uniform one.
    """
    centred = x - x.mean()
    deviation = centred.square().mean().sqrt()
    fourth = (centred / deviation).pow(4).mean() if deviation > 0 else torch.zeros(())
    return [float(x.mean()), float(deviation), float(fourth)]


def recorded(name: str) -> dict[str, list[float]]:
    """Of four draws together."""
    draws = [parameters(name, number) for number in range(1, 5)]
    return {each: [round(number, 5) for number in of(torch.cat([draw[each] for draw in draws]))] for each in draws[0]}


@cache
def known() -> dict[str, dict[str, list[float]]]:
    read: dict[str, dict[str, list[float]]] = json.loads(FILE.read_text(encoding="utf-8"))
    return read


@together("name", NAMES)
def test_parameters_start_as_recorded(name: str) -> None:
    given = parameters(name, 0)
    assert name in known(), f"{name!r} is new: write down how its parameters start, {COMMAND}"
    assert given.keys() == known()[name].keys()
    for each, x in given.items():
        (mean, deviation, fourth), (m, s, f), n = known()[name][each], of(x), len(x)
        spread = math.sqrt(max(fourth - 1, 0)) / (2 * math.sqrt(n))  # of the deviation of n numbers, relatively
        assert m == pytest.approx(mean, abs=6 * deviation / math.sqrt(n) + 1e-4), f"mean of {each}"
        assert n < FEW or s == pytest.approx(deviation, rel=6 * spread, abs=1e-4), f"deviation of {each}"
        if n >= MANY and deviation > 0:
            assert (f > 2.4) == (fourth > 2.4) or abs(f - fourth) < 0.4, f"distribution of {each}"


@pytest.mark.parametrize("name", ["shaw", "shaw-keys"])
def test_shaw_starts_as_glorot(name: str) -> None:
    """sqrt(2 / (rows + width)), as the authors' code."""
    for value in MODELS[name](DIMS).parameters():
        expected = math.sqrt(2 / (value.shape[-3] + value.shape[-1]))
        assert value.std().item() == pytest.approx(expected, rel=0.1)


if __name__ == "__main__":
    lines = (f"{json.dumps(name)}: {json.dumps(recorded(name))}" for name in NAMES)
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
