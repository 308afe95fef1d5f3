"""Law: constructors of position models and encodings take what ``build`` takes, and refuse the rest as it does."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import structpe
from structpe.encodings import ENCODINGS, Binned, Distance, Encoding
from structpe.encodings.base import as_encoding
from structpe.errors import EncodingError, PositionError, StructPEError
from structpe.positions import MODELS, Dims, PositionModel, build
from tests.together import together

DIMS = Dims(32, 4, 2)
WRONG = ["no", "layerwise", "3", 3.5, True, None, [], {}, [1, "a"], object(), b"x", ("x",), {"name": "nope"}, np.nan]
"""Each is of a wrong type for most options, and right for few."""

Make = Callable[[str, dict[str, Any]], Any]


def constructed(name: str, options: dict[str, Any]) -> Any:
    return MODELS[name](DIMS, **options) if name in MODELS else ENCODINGS[name](**options)  # type: ignore[arg-type]


def built(name: str, options: dict[str, Any]) -> Any:
    return build({"name": name, **options}, DIMS) if name in MODELS else as_encoding({"name": name, **options})


def options() -> Iterator[tuple[str, str]]:
    """Every option of every position model, and of every encoding."""
    for registry in (MODELS, ENCODINGS):
        for name, member in registry.items():
            yield from ((name, option) for option in inspect.signature(member).parameters if option != "dims")


def answer(make: Make, name: str, option: str, value: Any) -> str:
    """Whether it is made; an error of Python is an error."""
    try:
        made = make(name, {option: value})
    except StructPEError:
        return "refused"
    return repr(made.options()[option])


def disagreeing(values: list[Any]) -> list[tuple[str, str, Any]]:
    return [
        (name, option, value)
        for name, option in options()
        for value in values
        if answer(constructed, name, option, value) != answer(built, name, option, value)
    ]


def test_constructors_and_build_refuse_the_same() -> None:
    assert disagreeing(["no", [1, "a"]]) == []


@pytest.mark.slow
def test_constructors_and_build_refuse_the_same_of_all_kinds() -> None:
    assert disagreeing([*WRONG, 2, np.int64(2), np.float32(2.5)]) == []


@together(
    ("make", "error", "message"),
    [
        (
            lambda: MODELS["t5"](DIMS, sharing="layerwise"),
            PositionError,
            "option 'sharing' of .* takes one of",
        ),  # type: ignore[call-arg]
        (
            lambda: MODELS["detr"](DIMS, normalised="no"),
            PositionError,
            "takes true or false; given is 'no'",
        ),  # type: ignore[call-arg]
        (lambda: MODELS["t5"](DIMS, num_bukets=3), PositionError, "no option named 'num_bukets'. Did you mean 'num_bu"),  # type: ignore[call-arg]
        (lambda: MODELS["t5"](), PositionError, "missing a required argument: 'dims'; arguments: dims, encoding"),  # type: ignore[call-arg]
        (lambda: MODELS["t5"](*[DIMS] * 9), PositionError, "too many positional arguments; arguments: dims, encoding"),  # type: ignore[arg-type]
        (lambda: MODELS["t5"](32), PositionError, r"is built for sizes, Dims\(width, heads, layers\); given is 32"),  # type: ignore[arg-type]
        (lambda: MODELS["t5"](DIMS, encoding="nope"), PositionError, "no encoding named 'nope'"),  # type: ignore[call-arg]
        (lambda: MODELS["t5"](DIMS, encoding=Distance), PositionError, "'encoding' .* given is <class"),  # type: ignore[call-arg]
        (
            lambda: Distance("4"),
            EncodingError,
            "option 'max_distance' of encoding 'distance' takes a whole number or null",
        ),  # type: ignore[arg-type]
        (lambda: Distance(max_distance=10**9), EncodingError, "is 1000000000; at most 16777216 is allowed"),
        (lambda: Dims(d_model=32), PositionError, "Dims has no option named 'd_model'. .*width, heads, layers"),  # type: ignore[call-arg]
        (lambda: Dims(32, 4), PositionError, "Dims: missing a required argument: 'layers'; arguments: width, heads"),  # type: ignore[call-arg]
    ],
)
def test_what_they_say(make: Callable[[], Any], error: type[StructPEError], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_an_encoding_is_an_option_in_any_form() -> None:
    forms: list[Any] = [Distance(max_distance=3), {"name": "distance", "max_distance": 3}]
    assert [MODELS["t5"](DIMS, encoding=form).encodings for form in forms] == [(Distance(3),)] * 2  # type: ignore[call-arg]
    assert MODELS["t5"](DIMS, encoding="distance").encodings == (Distance(),)  # type: ignore[call-arg]
    assert Binned(of="distance") == Binned(of=Distance())  # type: ignore[arg-type]


def test_numbers_of_numpy_are_numbers() -> None:
    model = MODELS["t5"](DIMS, num_buckets=np.int64(16))  # type: ignore[call-arg]
    assert structpe.positions.describe(model)["num_buckets"] == 16
    assert type(Distance(max_distance=np.int64(3)).max_distance) is int  # type: ignore[arg-type]
    assert Dims(np.int64(8), 2, 1) == Dims(8, 2, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("cls", [MODELS["t5"], Distance], ids=["model", "encoding"])
def test_help_shows_the_arguments_of_the_constructor(cls: type[PositionModel] | type[Encoding]) -> None:
    shown = inspect.signature(cls)
    assert list(shown.parameters) == list(inspect.signature(cls.__init__).parameters)[1:]


def test_ones_own_constructor_takes_what_no_plain_data_are() -> None:
    class Own(PositionModel):
        def __init__(self, dims: Dims, function: Callable[[int], int], free, *rest: int, **more: str) -> None:  # type: ignore[no-untyped-def]
            super().__init__(dims, [])
            self.given = function(1), free, rest, more

    assert Own(DIMS, lambda x: x + 1, {1}, 2, 3, a="b").given == (2, {1}, (2, 3), {"a": "b"})
