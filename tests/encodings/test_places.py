"""Places from the end and the middle, in another order, on the scale of a grid; and which word stands there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from structpe.encodings import Centred, Order, Remaining, Reordered, UnitSquare, Words
from structpe.errors import EncodingError
from structpe.structure import Structure, path
from structpe.transforms import grid, with_class_token
from tests.positions.cases import TREES

UNORDERED = Structure(("a", "b"), [[0, 1]])


def test_what_remains_and_the_place_make_the_whole() -> None:
    for tree in TREES:
        both = Order().one(tree).values + Remaining().one(tree).values
        assert (both == tree.unit_count - 1).all()


def test_the_middle_is_zero() -> None:
    assert Centred().one(path("abcde")).values.tolist() == [-2, -1, 0, 1, 2]
    assert Centred().one(path("abcd")).values.tolist() == [-1.5, -0.5, 0.5, 1.5]
    for tree in TREES:
        assert Centred().one(tree).values.mean() == pytest.approx(0)


@pytest.mark.parametrize("encoding", [Remaining(), Centred()])
def test_an_order_is_needed(encoding: Remaining | Centred) -> None:
    with pytest.raises(EncodingError, match="has no reading order"):
        encoding.one(UNORDERED)


def test_units_follow_the_ranks_of_their_nodes() -> None:
    """Ranks 20, -3, 7 of nodes with 1, 2, 1 units: the second node is read first."""
    structure = replace(
        path("abc").with_units(["a", "b1", "b2", "c"], [0, 1, 1, 2]), features={"reordered": np.array([20, -3, 7])}
    )
    assert Reordered().one(structure).values.tolist() == [3, 0, 1, 2]
    assert Reordered("other").one(structure).values.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("ranks", [np.array([0, 0, 1]), np.zeros((3, 2))])
def test_ranks_must_tell_the_nodes_apart(ranks: np.ndarray) -> None:
    with pytest.raises(EncodingError, match="must rank the nodes, each by a different number"):
        Reordered().one(replace(path("abc"), features={"reordered": ranks}))


def test_without_ranks_and_order_there_is_no_place() -> None:
    with pytest.raises(EncodingError, match="has no feature 'reordered', and no reading order in its place"):
        Reordered().one(UNORDERED)


def test_a_grid_reaches_from_minus_one_to_one() -> None:
    values = UnitSquare().one(grid((2, 3))).values
    assert values[:, :, 0].tolist() == [[y, x] for y in (-1, 1) for x in (-1, 0, 1)]
    assert (values[:, :, 1] == [2, 1]).all()


def test_a_line_has_one_place_on_its_first_axis() -> None:
    values = UnitSquare().one(path("abc")).values
    assert values.tolist() == [[[-1, 0], [x, 1]] for x in (-1, 0, 1)]


def test_a_class_token_has_no_place() -> None:
    values = UnitSquare().one(with_class_token(grid((2, 2)))).values
    assert [row.tolist() for row in values if (row[:, 1] < 0).any()] == [[[0, -1], [0, -1]]]


def test_words_are_numbered_in_the_order_of_the_alphabet() -> None:
    words = Words().fit([path(["the", "cat"]), path(["a", "cat"])])
    assert words.texts == ("a", "cat", "the")
    assert words.size == 4
    assert words.one(path(["the", "dog", "a"])).values.tolist() == [3, 0, 1]


def test_words_without_a_vocabulary_are_refused() -> None:
    with pytest.raises(EncodingError, match=r"no text is known, .* to the training structures first"):
        Words().one(path("ab"))
    with pytest.raises(EncodingError, match="2 texts are given, some of them twice"):
        Words(("a", "a"))
