"""Plain data become what type hints say, or an error that names the key, what it takes and what was given."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structpe.errors import ConfigError, PositionError, ReadError
from structpe.plain.options import Builder
from tests.together import together

if TYPE_CHECKING:
    from nowhere import Nothing


@dataclass(frozen=True)
class Part:
    size: int
    rate: float = 0.5
    kind: Literal["a", "b"] = "a"

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ConfigError("size is negative")
        if self.size == 13:
            raise ValueError("thirteen")


@dataclass(frozen=True)
class Whole:
    part: Part
    paths: str | list[str] | None = None
    parts: tuple[Part, ...] = ()
    named: Mapping[str, Part] = field(default_factory=dict)
    shape: tuple[int, int] = (1, 1)
    anything: Any = None


class Place:
    """Described by a name, which its fields are not."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Place) and other.name == self.name

    __hash__ = None  # type: ignore[assignment]


class Far(Place):
    pass


def place(cls: type, value: Any, key: str) -> Any:
    if isinstance(value, cls):
        return value
    if not isinstance(value, str):
        raise PositionError(f"{key} is no {cls.__name__}")
    return cls(value)


PLACES = Builder(PositionError, Place, place)


def test_mappings_become_dataclasses_and_lists_tuples() -> None:
    data = {
        "part": {"size": 3, "rate": 1},
        "paths": ["a"],
        "parts": [{"size": 1}, {"size": 2, "kind": "b"}],
        "named": {"x": {"size": 4}},
        "shape": [2, 3],
        "anything": {"kept": [None]},
    }
    assert Builder().build(Whole, data) == Whole(
        Part(3, 1.0), ["a"], (Part(1), Part(2, kind="b")), {"x": Part(4)}, (2, 3), {"kept": [None]}
    )


@together(
    "changes, message",
    [
        ({"part": {"size": "3"}}, "part.size takes a whole number; given is '3'"),
        ({"part": {"size": True}}, "part.size takes a whole number; given is True"),
        ({"part": {"size": 1, "rate": None}}, "part.rate takes a number; given is null"),
        ({"part": {"size": 1, "kind": "c"}}, "part.kind takes one of 'a', 'b'; given is 'c'"),
        ({"part": {"size": -1}}, "size is negative"),
        ({"part": {"size": 13}}, "part: thirteen"),
        ({"part": 3}, "part takes a mapping; given is 3"),
        ({"part": {}}, "the key 'part.size' is missing; it takes a whole number"),
        (
            {"part": {"sise": 1}},
            "there is no key named 'part.sise'. Did you mean 'part.size'? Known: part.size, part.r",
        ),
        ({"prt": {}}, "there is no key named 'prt'. Did you mean 'part'? Known: part, paths, parts, named, shape, any"),
        ({"paths": 3}, "paths takes text or a list of texts or null; given is 3"),
        ({"paths": ["a", 3]}, "paths[1] takes text; given is 3"),
        ({"parts": {"size": 3}}, "parts takes a list; given is {'size': 3}"),
        ({"parts": [{"size": 1}, {"size": []}]}, "parts[1].size takes a whole number; given is []"),
        ({"parts": [{"size": 1}, {}]}, "the key 'parts[1].size' is missing"),
        ({"named": {"x": {"size": 1}, "y": {"size": "1"}}}, "named.y.size takes a whole number; given is '1'"),
        ({"named": {"x": {"sice": 1}}}, "there is no key named 'named.x.sice'"),
        ({"named": [1]}, "named takes a mapping; given is [1]"),
        ({"named": {3: {"size": 1}}}, "named takes a mapping; given is {3: {'size': 1}}"),
        ({"shape": [1, 2, 3]}, "shape takes a list of 2 whole numbers; given is [1, 2, 3]"),
        ({"shape": [1, 2.5]}, "shape[1] takes a whole number; given is 2.5"),
        ({"paths": ["a" * 300, 3, "b"]}, "paths[1] takes text"),
        ({"shape": "a" * 300}, f"shape takes a list of 2 whole numbers; given is '{'a' * 199}..."),
    ],
)
def test_an_error_names_the_key(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}"):
        Builder().build(Whole, {"part": {"size": 1}} | changes)


def test_the_whole_is_named_too() -> None:
    with pytest.raises(ConfigError, match=r"^the configuration takes a mapping; given is \[1\]$"):
        Builder().build(Part, [1])
    with pytest.raises(ReadError, match=r"^the card takes a mapping; given is null$"):
        Builder(ReadError).build(Part, None, "the card")
    with pytest.raises(ConfigError, match=r"^the key 'part.size' is missing; it takes a whole number$"):
        Builder().build(Whole, {})


def test_keys_alone() -> None:
    Builder().check_keys(Whole, {"parts": [{"rate": "wrong"}]}, complete=False)
    with pytest.raises(ConfigError, match=r"no key named 'parts\[0\].rat'"):
        Builder().check_keys(Whole, {"parts": [{"rat": 1}]}, complete=False)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(0, 12) | st.floats(0, 1) | st.sampled_from(["a", "b", "c"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["part", "paths", "parts", "size", "rate", "kind", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(PLAIN)
def test_whatever_is_given_is_kept_or_refused(data: Any) -> None:
    whole = {"part": {"size": 1}} | (data if isinstance(data, dict) else {"parts": data})
    try:
        built = Builder().build(Whole, whole)
    except ConfigError:
        return
    kept = asdict(built)
    assert [kept["part"].items() >= whole["part"].items()] == [True]
    assert kept["paths"] == whole.get("paths")
    assert len(kept["parts"]) == len(whole.get("parts", ()))
    assert all(new.items() >= old.items() for new, old in zip(kept["parts"], whole.get("parts", ()), strict=True))


def take(path: str, size: int, rate: float = 1.0, names: Sequence[str] | None = None, loose=3) -> None: ...  # type: ignore[no-untyped-def]
def free(path: str, **sizes: int) -> None: ...
def loose(path: str, **sizes: Any) -> None: ...
def hidden(path: str, size: Nothing = 3) -> None: ...  # type: ignore[valid-type]
def go(path: str, place: Place | None = None, far: tuple[Far, ...] = (), odd: Place | int = 3) -> None: ...


def test_options_become_arguments() -> None:
    assert Builder().arguments(take, {"size": 1, "names": ("a",), "loose": {1}}, "it") == {
        "size": 1,
        "names": ["a"],
        "loose": {1},
    }
    assert Builder().arguments(free, {"one": 1, "two": 2}, "it") == {"one": 1, "two": 2}
    assert Builder().arguments(hidden, {"size": "any"}, "it") == {"size": "any"}
    assert PLACES.arguments(go, {"place": "here", "far": ["a", Far("b")]}, "it") == {
        "place": Place("here"),
        "far": (Far("a"), Far("b")),
    }
    assert PLACES.arguments(go, {"place": None}, "it") == {"place": None}


@together(
    "call, options, message",
    [
        (take, {}, "reader 'x' needs the option 'size'; it takes a whole number"),
        (
            take,
            {"size": 1, "sizes": 3},
            "reader 'x' has no option named 'sizes'. Did you mean 'size'? Known: size, rate",
        ),
        (take, {"path": 1}, "reader 'x' has no option named 'path'"),
        (take, {"size": "1"}, "option 'size' of reader 'x' takes a whole number; given is '1'"),
        (take, {"size": 1, "names": "a"}, "option 'names' of reader 'x' takes a list of texts or null; given is 'a'"),
        (take, {"size": 1, "names": ["a", 1]}, "option 'names[1]' of reader 'x' takes text; given is 1"),
        (free, {"one": "1"}, "option 'one' of reader 'x' takes a whole number; given is '1'"),
        (loose, {"one": 1}, "reader 'x' has no option 'one', nor any other; leave it out"),
        (go, {"place": 3}, "option 'place' of reader 'x' is no Place"),
        (go, {"far": ["a", Place("b")]}, "option 'far' of reader 'x' is no Far"),
        (go, {"far": "a"}, "option 'far' of reader 'x' takes a list; given is 'a'"),
        (
            go,
            {"odd": 3},
            "option 'odd' of reader 'x' has a type hint that plain data cannot be checked by: Type unions",
        ),
    ],
)
def test_wrong_options(call: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(PositionError, match=f"^{re.escape(message)}"):
        PLACES.arguments(call, options, "reader 'x'")


@pytest.mark.parametrize("key", ["size", "rate", "kind"])
def test_half_of_a_character_is_an_error_that_names_the_key(key: str) -> None:
    """Found by experiments/fuzz, indexes, seed 20261121, number 1096: JSON can write it, and msgspec fails."""
    with pytest.raises(ConfigError, match=rf"^'?{key}'? takes .*; given is '\\ud800'$"):
        Builder().build(Part, {"size": 1, key: "\ud800"})
