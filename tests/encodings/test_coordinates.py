"""Places in grids and in space, and offsets between them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from structpe.encodings import Coordinates, GridOffset, GridRank, Offset, Points
from structpe.encodings.coordinates import OUTSIDE
from structpe.errors import EncodingError
from structpe.structure import Structure, path
from structpe.transforms import grid, with_class_token


def test_the_places_of_a_grid_are_read_row_by_row() -> None:
    places = Coordinates().one(grid((2, 3))).values
    assert places.tolist() == [[y, x] for y in range(2) for x in range(3)]


def test_a_sequence_is_a_grid_of_one_line() -> None:
    sentence = path("abc").with_units(list("aabc"), [0, 0, 1, 2])
    assert Coordinates(3).one(sentence).values.tolist() == [[0, 0, place] for place in range(4)]
    assert Coordinates(3).one(grid((4,))).values.tolist() == [[0, 0, place] for place in range(4)]
    assert Points(2).one(sentence).values.tolist() == [[0, place] for place in range(4)]
    assert np.array_equal(GridOffset(1).one(sentence).pairs()[..., 0], Offset().one(sentence).pairs())
    assert not GridOffset(2).one(sentence).pairs()[..., 0].any()


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (3, 1, 4), (2, 2, 2)])
def test_an_offset_is_key_minus_query_on_each_axis(shape: tuple[int, ...]) -> None:
    structure = grid(shape)
    pairs = GridOffset(len(shape)).one(structure).pairs()
    places = structure.features["coordinates"]
    for query in range(structure.size):
        for key in range(structure.size):
            assert pairs[query, key].tolist() == [places[key][a] - places[query][a] for a in range(len(shape))]


def test_the_units_of_a_node_stand_where_it_does() -> None:
    split = grid((2, 2)).with_units(list("abcde"), [0, 1, 1, 2, 3])
    assert Coordinates().one(split).values.tolist() == [[0, 0], [0, 1], [0, 1], [1, 0], [1, 1]]
    assert GridOffset().one(split).pairs()[1, 2].tolist() == [0, 0]


def test_what_has_no_place_is_marked() -> None:
    image = with_class_token(grid((2, 2)))
    assert Coordinates().one(image).values[:2].tolist() == [[-1, -1], [0, 0]]
    assert Coordinates(3).one(image).values[:2].tolist() == [[-1, -1, -1], [0, 0, 0]]
    pairs = GridOffset().one(image).pairs()
    assert pairs[0, 0].tolist() == [OUTSIDE + 3] * 2
    assert all(pairs[0, j].tolist() == [OUTSIDE + 1] * 2 for j in range(1, 5))
    assert all(pairs[i, 0].tolist() == [OUTSIDE + 2] * 2 for i in range(1, 5))
    assert np.array_equal(pairs[1:, 1:], GridOffset().one(grid((2, 2))).pairs())


def test_points_need_not_be_whole() -> None:
    cities = Structure(("a", "b"), [], features={"degrees": np.array([[48.5, -3.25], [0.0, 7.0]])})
    assert Points(2, key="degrees").one(cities).values.tolist() == [[48.5, -3.25], [0.0, 7.0]]
    assert Points(3, key="degrees").one(cities).values.dtype == np.float32
    assert Points(1, key="seconds").one(
        Structure(("a", "b"), [], features={"seconds": np.array([0.5, 2.0])})
    ).values.tolist() == [[0.5], [2.0]]


@pytest.mark.parametrize("place", [[0.5, 1.0], [-2, 0], [-1, 0]])
def test_places_in_a_grid_are_whole_numbers_from_0(place: list[float]) -> None:
    structure = Structure(("a",), [], features={"coordinates": np.array([place])})
    with pytest.raises(EncodingError, match=r"coordinates of unit 0 are .* whole numbers from 0.*'points'"):
        Coordinates().one(structure)


def test_more_axes_than_asked_for_are_refused() -> None:
    with pytest.raises(EncodingError, match="has 3 numbers per node, this encoding takes 2 at most; give it more axes"):
        Coordinates().one(grid((1, 2, 3)))


def test_neither_coordinates_nor_order() -> None:
    with pytest.raises(EncodingError, match="no feature 'coordinates', and is no sequence"):
        GridOffset().one(Structure(("a",), []))


def test_a_grid_without_degrees_is_not_taken_for_a_line() -> None:
    with pytest.raises(EncodingError, match="no feature 'degrees', and is no sequence"):
        Points(2, key="degrees").one(grid((2, 2)))


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 4)])
@pytest.mark.parametrize("classed", [False, True])
def test_ranks_count_the_valid_places_of_a_line(shape: tuple[int, ...], classed: bool) -> None:
    whole = with_class_token(grid(shape)) if classed else grid(shape)
    valid = np.random.default_rng(0).integers(0, 2, whole.size)
    structure = replace(whole, features={**whole.features, "valid": valid})
    places = [tuple(place) for place in structure.features["coordinates"].tolist()]
    for marked, image in ((np.ones(whole.size), whole), (valid, structure)):
        ranks = GridRank(len(shape)).one(image).values
        for u, here in enumerate(places):
            for a in range(len(shape)):
                line = [
                    v for v, c in enumerate(places) if -1 not in c and c[:a] + c[a + 1 :] == here[:a] + here[a + 1 :]
                ]
                upto = [v for v in line if places[v][a] <= here[a]]
                expected = [0, 0] if -1 in here else [sum(marked[v] for v in upto), sum(marked[v] for v in line)]
                assert ranks[u, a].tolist() == expected


def test_ranks_of_a_sequence_count_its_units() -> None:
    sentence = path("ab").with_units(list("aab"), [0, 0, 1])
    assert GridRank().one(sentence).values.tolist() == [[[1, 1], [t + 1, 3]] for t in range(3)]


@pytest.mark.parametrize("encoding", [Coordinates, GridOffset, GridRank, Points])
def test_an_axis_at_least(encoding: type) -> None:
    with pytest.raises(EncodingError, match="the number of axes is 0; give 1 or more"):
        encoding(axes=0)
