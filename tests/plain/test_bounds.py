"""Every number of every configuration has a bound: a slip is an error at once, and never fills the memory."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, get_type_hints

import pytest

from structpe.encodings import ENCODINGS
from structpe.encodings.base import as_encoding
from structpe.errors import ConfigError, StructPEError
from structpe.nn.graph_model import GraphModelConfig
from structpe.nn.seq2seq import TransformerConfig
from structpe.parsing.training import Plan
from structpe.plain.options import OPTION
from structpe.positions import MODELS, Dims, build
from structpe.tasks.prediction.config import SamplingConfig
from structpe.tasks.prediction.study import StudyConfig
from structpe.tasks.runs import load_config
from tests.modules import modules

FREE = {"seed", "split"}
"""A seed has 64 bits; the number of a split is compared with how many there are."""
HUGE = 10**18


def configs() -> Iterator[Any]:
    """One of each class of configurations, found by their names, that has numbers."""
    for module in modules():
        if module.package not in ("data", "nn", "positions", "parsing", "tasks"):
            continue
        loaded = importlib.import_module(module.name)
        for name, cls in vars(loaded).items():
            named = name.endswith(("Config", "Training")) or name in ("Dims", "Plan")
            if named and inspect.isclass(cls) and cls.__module__ == module.name and is_dataclass(cls):
                yield from one(cls)


def one(cls: type) -> Iterator[Any]:
    if cls.__module__.endswith("batches"):
        return  # made of a configuration that was checked
    needed = {"Dims": (8, 2, 1), "Plan": (("a",),)}.get(cls.__name__, ())
    try:
        yield cls(*needed)
    except TypeError:
        return  # of others, which are looked at themselves


@cache
def numbers() -> list[tuple[Any, str]]:
    """Each configuration, with the name of a number of it."""
    return [
        (config, field.name)
        for config in configs()
        for field in fields(config)
        if get_type_hints(type(config))[field.name] is int and field.name not in FREE
    ]


def test_the_numbers_are_found() -> None:
    assert len(numbers()) > 35
    assert {type(config).__name__ for config, _ in numbers()} >= {
        "TrainingConfig",
        "PrepareConfig",
        "SearchConfig",
        "Dims",
    }


def refused(make: Callable[..., Any], *given: Any, **named: Any) -> str:
    """The error that this raises; empty if it raises none."""
    try:
        make(*given, **named)
    except StructPEError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("value", [HUGE, 10**30])
def test_no_number_is_huge(value: int) -> None:
    for config, name in numbers():
        error = refused(replace, config, **{name: value})
        assert re.search(rf"{name}.* (at most|do not divide)", error), f"{type(config).__name__}.{name}: {error}"


def test_errors_say_what_is_allowed() -> None:
    with pytest.raises(
        ConfigError, match=r"^prepare.vocabulary is 1000000000000; at most 1048576 is allowed, give a smaller"
    ):
        load_config(None, ["data.train=a", "prepare.vocabulary=1000000000000"])
    with pytest.raises(ConfigError, match=r"^'training.steps=10{30}': line 1, column 1: 10{30} is beyond 64 bits"):
        load_config(None, ["data.train=a", f"training.steps={10**30}"])
    with pytest.raises(ConfigError, match=r"^training.steps is a number of more than 20 digits; at most 1000000000 is"):
        replace(load_config(None, ["data.train=a"]).training, steps=10**30)


@pytest.mark.parametrize("cls", [TransformerConfig, GraphModelConfig])
def test_all_layers_together_have_a_bound(cls: Any) -> None:
    assert cls(width=8192, feedforward=32768)
    with pytest.raises(ConfigError, match=r"parameters; at most 100000000000 are allowed, make the model smaller"):
        cls(width=65536, feedforward=262144)


def test_fanouts_and_parts_have_a_bound() -> None:
    with pytest.raises(ConfigError, match=f"sampling.fanouts has {HUGE}; at most {OPTION} is allowed, give fewer"):
        SamplingConfig(fanouts=[10, HUGE])
    with pytest.raises(ConfigError, match=f"sampling.parts is {HUGE}; at most {OPTION} is allowed, give a smaller"):
        SamplingConfig(parts=HUGE)


def test_a_study_has_a_bound() -> None:
    with pytest.raises(ConfigError, match="the study has 200000 runs; at most 100000 are allowed, share it out"):
        StudyConfig({"a": {}, "b": {}}, {"m": {}}, seeds=list(range(100_000)))


def test_a_parser_has_a_bound() -> None:
    with pytest.raises(StructPEError, match=f"steps are {HUGE}; at most 1000000000 are allowed, give fewer"):
        Plan(("a",), steps=HUGE)


def options(init: Any) -> Iterator[str]:
    hints = get_type_hints(init)
    yield from (name for name in inspect.signature(init).parameters if hints.get(name) is int and name != "seed")


def test_options_of_models_have_a_bound() -> None:
    for name, option in [(name, option) for name, model in MODELS.items() for option in options(model.__init__)]:
        error = refused(build, {"name": name, option: HUGE}, Dims(8, 2, 1))
        assert re.search(rf"option '{option}' .* is {HUGE}; at most {OPTION} is allowed", error), f"{name}: {error}"


def test_options_of_encodings_have_a_bound() -> None:
    for name, option in [(name, option) for name, of in ENCODINGS.items() for option in options(of.__init__)]:
        error = refused(as_encoding, {"name": name, option: HUGE})
        assert re.search(rf"option '{option}' .* is {HUGE}; at most {OPTION} is allowed", error), f"{name}: {error}"


def test_seeds_are_free() -> None:
    assert as_encoding({"name": "expander", "seed": 2**40})
