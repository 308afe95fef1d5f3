"""Grids as products of paths, and products of other structures."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from structpe.encodings import Distance, UndirectedDistance
from structpe.errors import StructureError
from structpe.structure import Structure, path
from structpe.transforms import grid, product, with_class_token
from tests.examples import examples
from tests.strategies import digraphs


@pytest.mark.parametrize("shape", [(1,), (4,), (2, 3), (3, 1), (2, 3, 2)])
def test_a_grid_joins_neighbours(shape: tuple[int, ...]) -> None:
    structure = grid(shape)
    places = list(itertools.product(*map(range, shape)))
    assert structure.features["coordinates"].tolist() == [list(place) for place in places]
    expected = set()
    for i, here in enumerate(places):
        for j, there in enumerate(places):
            steps = [b - a for a, b in zip(here, there, strict=True)]
            if sorted(steps) == [0] * (len(shape) - 1) + [1]:
                expected.add((i, j))
    assert {tuple(edge) for edge in structure.edges.tolist()} == expected
    assert len(structure.edges) == len(expected)
    assert structure.order is not None
    assert structure.order.tolist() == list(range(len(places)))
    assert structure.root == 0


def test_a_grid_of_one_line_is_a_path() -> None:
    line, sequence = grid((5,), labels="abcde"), path("abcde")
    assert line.nodes == sequence.nodes
    np.testing.assert_array_equal(line.edges, sequence.edges)
    np.testing.assert_array_equal(Distance().one(grid((1, 5))).pairs(), Distance().one(sequence).pairs())


def test_labels_are_places_unless_given() -> None:
    assert grid((1, 2, 2)).nodes == ("0,0,0", "0,0,1", "0,1,0", "0,1,1")
    assert grid((2, 1), labels=["a", "b"], name="image").nodes == ("a", "b")


@examples(30)
@given(a=digraphs(most=5, units=False), b=digraphs(most=4, units=False))
def test_distances_in_a_product_add(a: Structure, b: Structure) -> None:
    whole = UndirectedDistance().one(product(a, b)).pairs()
    in_a, in_b = UndirectedDistance().one(a).pairs(), UndirectedDistance().one(b).pairs()
    for (i, j), (k, m) in itertools.product(itertools.product(range(a.size), range(b.size)), repeat=2):
        far = in_a[i, k] + in_b[j, m] if max(in_a[i, k], in_b[j, m]) < 1000 else whole[i * b.size + j, k * b.size + m]
        assert whole[i * b.size + j, k * b.size + m] == far
        assert (far < 1000) == (max(in_a[i, k], in_b[j, m]) < 1000)


def test_relations_order_root_and_features_come_along() -> None:
    a = Structure(
        ("r", "s"), [[1, 0]], ("up",), order=[1, 0], root=1, features={"mass": np.array([1.0, 2.0])}, name="a"
    )
    both = product(a, grid((1, 2)))
    assert both.nodes == ("r,0,0", "r,0,1", "s,0,0", "s,0,1")
    assert both.edges.tolist() == [[2, 0], [3, 1], [0, 1], [2, 3]]
    assert both.relations == ("up", "up", "", "")
    assert both.order is not None
    assert both.order.tolist() == [2, 3, 0, 1]
    assert both.root == 2
    assert both.features["mass"].tolist() == [1, 1, 2, 2]
    assert both.features["coordinates"].tolist() == [[1, 0, 0], [1, 0, 1], [0, 0, 0], [0, 0, 1]]


def test_a_class_token_stands_in_front() -> None:
    image = with_class_token(grid((2, 2)))
    assert image.nodes == ("[CLS]", "0,0", "0,1", "1,0", "1,1")
    assert image.edges.tolist() == (grid((2, 2)).edges + 1).tolist()
    assert image.order is not None
    assert image.order.tolist() == [0, 1, 2, 3, 4]
    assert image.root == 1
    assert image.features["coordinates"].tolist() == [[-1, -1], [0, 0], [0, 1], [1, 0], [1, 1]]
    assert with_class_token(grid((1, 2)).with_units(list("aab"), [0, 0, 1])).units == ("[CLS]", *"aab")
    with pytest.raises(StructureError, match="has a virtual node already"):
        with_class_token(image)
    sentence = with_class_token(path("ab"), "<s>")
    assert sentence.nodes == ("<s>", "a", "b")
    assert sentence.order is not None
    assert sentence.order.tolist() == [0, 1, 2]


@pytest.mark.parametrize("shape", [(), (0,), (2, -1), (1 << 11, 1 << 10)])
def test_shapes_that_are_no_grid(shape: tuple[int, ...]) -> None:
    with pytest.raises(StructureError, match=r"a grid of shape \(.*\) cannot be made; give one axis or more"):
        grid(shape)


def test_another_number_of_labels() -> None:
    with pytest.raises(StructureError, match=r"of shape \(2, 2\) has 4 nodes; given are 3 labels"):
        grid((2, 2), labels="abc")


def test_products_that_are_refused() -> None:
    marked = Structure(("a",), [], features={"mark": np.array([1])})
    with pytest.raises(StructureError, match="both structures have a feature 'mark'"):
        product(marked, marked)
    with pytest.raises(StructureError, match="one structure is directed and the other is not"):
        product(marked, Structure(("a",), [], directed=False))
    with pytest.raises(StructureError, match="make the product first, then split"):
        product(path("a").with_units(["a", "b"], [0, 0]), marked)
    long = path(["x"] * 2000)
    with pytest.raises(StructureError, match="the product of 2000 and 2000 nodes is too large"):
        product(long, long)


@pytest.mark.parametrize("shape", [5, None, "33", (2.5, 2)])
def test_a_shape_is_whole_numbers(shape: Any) -> None:
    with pytest.raises(
        StructureError, match=r"the shape of a grid is a list of whole numbers, such as \(4, 6\); given"
    ):
        grid(shape)
