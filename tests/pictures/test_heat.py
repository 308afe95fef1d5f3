"""What encodings say, as matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from structpe.encodings import ENCODINGS, Distance, Offset, Order, RandomWalk
from structpe.errors import EncodingError, StructPEError
from structpe.pictures import PictureError
from structpe.pictures.heat import Heat, heat_of, unit_names
from structpe.pictures.view import view
from structpe.structure import Structure, path
from tests.pictures.cases import FORMS, MEANING, PARSE, SEQUENCE
from tests.positions.cases import TREES
from tests.together import together


def test_pairs_are_a_matrix_and_what_is_no_number_is_named() -> None:
    heat = heat_of(PARSE, Distance())
    expected: Any = [
        [0, -1, -2, math.nan, math.nan],
        [1, 0, -1, math.nan, math.nan],
        [2, 1, 0, 2, 1],
        [math.nan, math.nan, -2, 0, -1],
        [math.nan, math.nan, -1, 1, 0],
    ]
    np.testing.assert_array_equal(heat.values, expected)
    np.testing.assert_array_equal(heat.special["no path"], np.isnan(expected))
    assert (heat.scale, heat.limits, heat.whole) == ("diverging", (-2.0, 2.0), True)
    assert heat.rows is heat.columns
    assert heat.rows == ("0 the", "1 keeper", "2 lit", "3 the", "4 lamp")


def test_units_of_one_node_are_told() -> None:
    heat = heat_of(TREES[0], Distance())
    same = heat.special["same node"]
    assert TREES[0].order is not None
    read_out = np.argsort(TREES[0].order[TREES[0].unit_owner], kind="stable")  # rows are in reading order
    np.testing.assert_array_equal(same, _same(TREES[0])[np.ix_(read_out, read_out)])


def _same(structure: Structure) -> Any:
    owner = structure.unit_owner
    return (owner[:, None] == owner[None, :]) & ~np.eye(len(owner), dtype=bool)


def test_units_have_a_row_each_and_a_column_for_each_number() -> None:
    heat = heat_of(SEQUENCE, Order())
    np.testing.assert_array_equal(heat.values, [[0], [1], [2], [3], [4]])
    walks = RandomWalk(steps=3)
    np.testing.assert_array_equal(heat_of(MEANING, walks).values, walks.one(MEANING).values)
    assert heat_of(MEANING, walks).title == "random-walk, steps 3"


def test_a_slice_of_vectors_is_chosen_and_said() -> None:
    encoding = ENCODINGS["grid-offset"]()
    heats = [heat_of(FORMS["grid"], encoding, k) for k in (0, 1)]
    assert heats[0].title == "grid-offset, number 0 of 0..1"
    np.testing.assert_array_equal(heats[1].values[0], [0, 1, 2, 0, 1, 2])
    np.testing.assert_array_equal(heats[0].values[0], [0, 0, 0, 1, 1, 1])
    with pytest.raises(PictureError, match=r"the slice is 2, but each pair has 2 numbers by encoding 'grid-offset'"):
        heat_of(FORMS["grid"], encoding, 2)
    with pytest.raises(PictureError, match=r"the slice is 1, but each pair has 1 numbers"):
        heat_of(SEQUENCE, Offset(), 1)


@together("name", ENCODINGS)
def test_every_encoding_can_be_looked_at(name: str) -> None:
    seen = 0
    for structure in (*FORMS.values(), *TREES):
        try:
            encoding = ENCODINGS[name]().fit([structure])
            heat = heat_of(structure, encoding)
        except EncodingError:
            continue
        seen += 1
        low, high = heat.limits
        finite = heat.values[np.isfinite(heat.values)]
        assert low < high
        assert ((low <= finite) & (finite <= high)).all()
        assert len(heat.rows) == structure.unit_count == len(heat.values)
        assert heat.values.shape[1] == len(heat.columns)
    assert seen or name in ("expander", "feature", "tabular"), f"{name} fits none of the structures"


def test_limits_of_a_diverging_scale_are_as_far_below_0_as_above() -> None:
    heat = Heat("", np.array([[-1.0, 3.0]]), ("a",), ("b", "c"))
    assert heat.limits == (-3.0, 3.0)
    assert Heat("", np.array([[2.0, 2.0]]), ("a",), ("b", "c")).limits == (0.0, 2.0)
    assert Heat("", np.array([[math.nan]]), ("a",), ("b",)).limits == (0.0, 1.0)


def test_too_many_units() -> None:
    with pytest.raises(StructPEError, match=r"^long: the structure has 1001 nodes, a picture shows 1000 at most"):
        heat_of(path(["a"] * 1001, name="long"), Order())
    with pytest.raises(StructPEError, match=r"the structure has 5000 nodes, a picture shows 1000 at most"):
        view(path(["a"] * 5000))


def test_names_are_one_line_and_have_numbers_where_they_repeat() -> None:
    assert unit_names(path(["a\nb", "x" * 40])) == ("a b", "x" * 23 + "…")
    assert unit_names(path(["a", "a"])) == ("0 a", "1 a")
