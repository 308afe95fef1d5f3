"""Whatever of a structure changes, its digest does, and says which part it was; names are no part."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structpe.data.digests import digest, refuse_changed, structures
from structpe.errors import StoreError
from structpe.structure import Structure
from tests.together import together

GRAPH = Structure(
    nodes=("a", "b", "c"),
    edges=np.array([[0, 1], [1, 2]]),
    relations=("x", "y"),
    order=np.array([0, 1, 2]),
    root=0,
    units=("a", "b", "b", "c"),
    owner=np.array([0, 1, 1, 2]),
    features={"x": np.array([[1.0], [2.0], [3.0]]), "edge_x": np.array([[1], [2]])},
    name="one",
)
CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("node labels", {"nodes": ("a", "b", "d")}),
    ("edges", {"edges": np.array([[0, 1], [2, 1]])}),
    ("edges", {"directed": False}),
    ("relation labels", {"relations": ("x", "z")}),
    ("relation labels", {"relations": ()}),
    ("reading order", {"order": np.array([0, 2, 1])}),
    ("reading order", {"order": None}),
    ("root", {"root": 1}),
    ("root", {"root": None}),
    ("units", {"units": ("a", "b", "bb", "c")}),
    ("units", {"owner": np.array([0, 1, 2, 2])}),
    ("features", {"features": {**GRAPH.features, "x": np.array([[1.0], [2.0], [np.nextafter(3.0, 4)]])}}),
    ("features", {"features": {"z": GRAPH.features["x"], "edge_x": GRAPH.features["edge_x"]}}),
    ("features", {"features": {**GRAPH.features, "x": GRAPH.features["x"].astype(np.float32)}}),
]


@together("part, change", CHANGES)
def test_each_change_is_named(part: str, change: dict[str, Any]) -> None:
    before = structures("graphs", [GRAPH, GRAPH])
    after = structures("graphs", [GRAPH, replace(GRAPH, **change)])
    assert [name for name in before if before[name] != after[name]] == [f"{part} of the graphs"]
    with pytest.raises(StoreError, match=rf"began: {part} of the graphs\. Restore them, or train afresh$"):
        refuse_changed(before, after)


def test_names_are_nothing_that_is_learned() -> None:
    assert structures("graphs", [GRAPH]) == structures("graphs", [replace(GRAPH, name="two")])
    refuse_changed(structures("graphs", [GRAPH]), structures("graphs", [replace(GRAPH, name="two")]))


def test_order_and_number_of_structures_count() -> None:
    other = replace(GRAPH, root=2)
    digests = [
        structures("graphs", graphs)["root of the graphs"] for graphs in ([GRAPH, other], [other, GRAPH], [GRAPH])
    ]
    assert len(set(digests)) == 3


@st.composite
def values(draw: st.DrawFn) -> Any:
    plain = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.floats(allow_nan=False)
    arrays = st.lists(st.integers(0, 3), max_size=3).map(lambda x: ("array", tuple(x)))
    return draw(st.recursive(plain | arrays, lambda inner: st.tuples(inner, inner) | st.tuples(inner), max_leaves=5))


def made(value: Any) -> Any:
    """Arrays in place of what stands for them."""
    if isinstance(value, tuple) and len(value) == 2 and value[0] == "array" and isinstance(value[1], tuple):
        return np.array(value[1], dtype=np.int64)
    return tuple(map(made, value)) if isinstance(value, tuple) else value


@given(st.lists(values(), max_size=4), st.lists(values(), max_size=4))
def test_different_values_have_different_digests(one: list[Any], other: list[Any]) -> None:
    told = [repr(each) for each in (one, other)]  # True is not 1 here, nor 1.0 either
    same = digest(map(made, one)) == digest(map(made, other))
    assert same == (told[0] == told[1])
