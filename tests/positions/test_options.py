"""Numbers that no position model can be built with."""

from __future__ import annotations

import inspect
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from structpe.encodings import ENCODINGS
from structpe.errors import PositionError
from structpe.positions import MODELS, Dims, build
from structpe.structure import path
from tests.positions.cases import encoded, noise
from tests.together import together

DIMS = Dims(8, 2, 3)


def numbers() -> list[tuple[str, str, Any]]:
    """Each option of each model whose default is a number."""
    return [
        (name, option, parameter.default)
        for name, model in MODELS.items()
        for option, parameter in inspect.signature(model.__init__).parameters.items()
        if isinstance(parameter.default, (int, float)) and not isinstance(parameter.default, bool)
    ]


@pytest.mark.parametrize("least", [-1, -0.5, math.nan, math.inf, 1e300, 1e-300, 10**30])
def test_no_model_takes_a_number_that_means_nothing(least: float) -> None:
    taken = []
    for name, option, default in numbers():
        if isinstance(default, int) and not isinstance(least, int):
            continue  # refused as another type
        try:
            build({"name": name, option: least}, DIMS)
        except PositionError:
            continue
        taken.append((name, option))
    assert taken == []


@together(
    ("config", "message"),
    [
        (
            {"name": "abs-scalar", "max_length": -1},
            "option 'max_length' of position model 'abs-scalar' is -1; give 1 or more",
        ),
        ({"name": "abs-scalar", "rank": 0}, "option 'rank' of position model 'abs-scalar' is 0; give 1 or more"),
        ({"name": "learned", "max_length": 0}, "option 'max_length' of position model 'learned' is 0; give 1 or more"),
        ({"name": "heat-kernel", "layers": -1}, "option 'layers' of .* is -1; give 0 or more"),
        ({"name": "rotary", "base": 1.0}, "option 'base' of position model 'rotary' is 1.0; give a number above 1"),
        ({"name": "rotary", "base": math.nan}, "option 'base' of .* is nan; give a finite number"),
        ({"name": "cai", "dropout": 1.0}, "option 'dropout' of .* is 1.0; give a probability: 0 or more, and below 1"),
        ({"name": "fourier", "sigma": 1e-300}, "is 1e-300; its magnitude must be between 1e-30 and 1e\\+30, or 0"),
        ({"name": "fourier", "seed": 10**30}, "give 9223372036854775807 at most"),
        (
            {"name": "learned", "max_length": 10**12},
            "is 1000000000000; at most 16777216 is allowed, give a smaller number",
        ),
        ({"name": "xpos", "fading": 0}, "position model 'xpos' takes a fading above 0; given is 0"),
        ({"name": "yarn", "slow": 0.0}, "position model 'yarn' takes a slow above 0; given is 0.0"),
        ({"name": "hard-coded-gaussian", "centres": [0.0, math.nan]}, r"is \(0.0, nan\); give a finite number"),
        ({"name": "hard-coded-gaussian", "centres": 3}, "takes a list of numbers; given is 3"),
    ],
)
def test_their_error_messages(config: Any, message: str) -> None:
    with pytest.raises(PositionError, match=message):
        build(config, DIMS)


def test_what_may_be_zero_or_below() -> None:
    assert build({"name": "heat-kernel", "layers": 0}, DIMS).options()["layers"] == 0
    assert build({"name": "hard-coded-gaussian", "centres": [-3.0, 0.0]}, DIMS).options()["centres"] == (-3.0, 0.0)


def test_a_table_that_memory_does_not_hold() -> None:
    given = {"name": "learned", "max_length": 1 << 24}
    with pytest.raises(PositionError, match=r"position model 'learned' cannot be built with {'max_length': 16777216}"):
        build(given, Dims(1 << 16, 2, 3))


@together("name", sorted(n for n, e in ENCODINGS.items() if e.real and e.arity == 2))
@together("model", ["composite", "deberta", "diet-rel", "graformer", "huang-m3", "shaw", "spr-rel", "t5"])
def test_a_table_of_offsets_takes_no_real_numbers(model: str, name: str) -> None:
    with pytest.raises(PositionError, match=f"integer positions, but encoding '{name}' returns real numbers; use"):
        build({"name": model, "encoding": name}, DIMS)


@together("model", ["abs-scalar", "deberta-emd", "language", "learned", "reformer", "tupe-a"])
def test_a_table_of_places_takes_no_real_numbers(model: str) -> None:
    with pytest.raises(PositionError, match=f"'{model}' needs integer positions, but encoding 'centred' .* 'order'"):
        build({"name": model, "encoding": "centred"}, DIMS)


@together("model", ["abs-scalar", "learned", "reformer", "tupe-a"])
@together(("values", "given"), [([0.5, 1.0], "real numbers"), ([0, -2], "-2")])
def test_a_feature_that_is_no_row_of_a_table(model: str, values: list[float], given: str) -> None:
    built = build({"name": model, "encoding": {"name": "feature", "key": "place"}}, DIMS)
    positions = encoded(built, [replace(path("ab"), features={"place": np.array(values)})])
    with pytest.raises(PositionError, match=f"integer positions from 0 on, but encoding 'feature' returns {given}"):
        built.inputs(noise(1, 2, 8), built.prepare(positions))


def test_marks_and_small_integers_number_rows() -> None:
    built = build({"name": "learned", "encoding": {"name": "feature", "key": "place"}}, DIMS)
    for dtype in (bool, np.uint8, np.uint64, np.int32):
        marked = replace(path("ab"), features={"place": np.array([1, 0], dtype=dtype)})
        added = built.inputs(torch.zeros(1, 2, 8), built.prepare(encoded(built, [marked])))
        torch.testing.assert_close(added[0], next(built.parameters())[[1, 0]])


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("detr-learned", "grid-rank"),
        ("sinusoidal-nd", "grid-rank"),
        ("sinusoidal-nd", "unit-square"),
        ("spherical", "unit-square"),
        ("vit", "grid-rank"),
    ],
)
def test_coordinates_are_one_number_per_axis(model: str, name: str) -> None:
    built = build({"name": model, "encoding": name}, DIMS)
    with pytest.raises(PositionError, match=f"needs 2 coordinates per unit; '{name}' gives 2 x 2 numbers"):
        built.inputs(noise(1, 2, 8), built.prepare(encoded(built, [path("ab")])))


@pytest.mark.parametrize("model", ["rnn", "rr"])
def test_what_reads_texts_needs_their_lengths(model: str) -> None:
    built = build({"name": model, "length": {"name": "feature", "missing": 0}}, DIMS)
    with pytest.raises(
        PositionError, match=f"'{model}' reads texts and needs the length of each, .* 'feature' gives 0"
    ):
        built.prepare(encoded(built, [path("ab")]))


def test_a_kernel_of_walks_is_of_all_pairs() -> None:
    with pytest.raises(PositionError, match="'gkat' needs an encoding of all pairs; 'neighbours' lists some"):
        build({"name": "gkat", "encoding": "neighbours"}, DIMS)
