"""Encodings of listed pairs: neighbours are the adjacency that is not zero, a window is the offsets that are small."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structpe.encodings import WITHIN, Adjacency, Degree, Encoded, Expander, Neighbours, Offset, Window
from structpe.errors import EncodingError
from structpe.structure import Structure, path
from tests.strategies import paths, structures


def pairs_of(encoded: Encoded) -> dict[tuple[int, int], int]:
    """The value of each listed pair."""
    assert encoded.listed is not None
    assert encoded.index is not None
    values = encoded.values[encoded.index].tolist()
    found = dict(zip(map(tuple, encoded.listed.tolist()), values, strict=True))
    assert len(found) == len(values)
    return found


@given(structures())
def test_neighbours_and_oneself_are_all_of_the_adjacency_that_is_not_zero(structure: Structure) -> None:
    whole = Adjacency().one(structure).pairs()
    expected = {(int(i), int(j)): int(whole[i, j]) for i, j in np.argwhere(whole)}
    assert pairs_of(Neighbours(itself=True).one(structure)) == expected


@given(structures())
def test_without_oneself_only_the_units_of_nodes_with_a_loop_are_their_own_neighbours(structure: Structure) -> None:
    loops = {int(a) for a, b in structure.edges if a == b}
    expected = pairs_of(Neighbours(itself=True).one(structure))
    for unit, node in enumerate(structure.unit_owner):
        if int(node) not in loops:
            del expected[unit, unit]
    assert pairs_of(Neighbours().one(structure)) == expected


@given(paths(), st.integers(1, 8))
def test_a_window_is_the_offsets_that_are_small(sentence: Structure, reach: int) -> None:
    whole = Offset().one(sentence).pairs()
    expected = {(int(i), int(j)): int(whole[i, j]) for i, j in np.argwhere(abs(whole) <= reach)}
    assert pairs_of(Window(reach).one(sentence)) == expected


def test_a_window_follows_the_reading_order() -> None:
    graph = Structure(("b", "c", "a"), [], order=[1, 2, 0])
    assert pairs_of(Window(1).one(graph)) == {
        (2, 2): 0, (2, 0): 1, (0, 2): -1, (0, 0): 0, (0, 1): 1, (1, 0): -1, (1, 1): 0
    }  # fmt: skip


def test_they_take_no_more_than_they_list() -> None:
    """A square of 100,000 units would not fit into memory."""
    sentence = path(["w"] * 100_000)
    assert len(Neighbours().one(sentence).listed) == 2 * 99_999
    assert len(Window(2).one(sentence).listed) == 5 * 100_000 - 6


@given(structures())
def test_they_know_how_many_units_there_are(structure: Structure) -> None:
    assert Neighbours().one(structure).count == Adjacency().one(structure).count == structure.unit_count


def test_a_window_needs_a_reach_and_an_order() -> None:
    with pytest.raises(EncodingError, match="encoding 'window': max_distance is 0; give 1 or more"):
        Window(0)
    with pytest.raises(EncodingError, match="the structure has no reading order"):
        Window().one(Structure(("a", "b"), [[0, 1]]))


def test_pairs_of_all_are_not_to_be_had() -> None:
    with pytest.raises(EncodingError, match=r"this encoding lists some pairs only; use .listed and .values\[.in"):
        Neighbours().one(path("ab")).pairs()


def test_each_structure_lists_its_own_pairs() -> None:
    """Nodes are numbered over all structures only while they are computed."""
    split = Structure(("a", "b"), [(1, 0), (1, 0)]).with_units(["x", "y", "z"], [0, 0, 1])
    column = Neighbours().many([path("ab"), Structure(("a",), []), split])
    assert [each.listed.tolist() for each in column if each.listed is not None] == [
        [[0, 1], [1, 0]],
        [],
        [[0, 2], [1, 2], [2, 0], [2, 1], [0, 1], [1, 0]],
    ]
    last = column[2]
    assert last.values[last.index].tolist() == [2, 2, 1, 1, WITHIN + 1, WITHIN - 1]
    assert column[1].count == 1


def test_as_many_parallel_edges_as_a_byte_overflows_by_are_one() -> None:
    graph = Structure(("a", "b"), [(0, 1)] * 256)
    assert pairs_of(Neighbours().one(graph)) == {(0, 1): 1, (1, 0): 2}
    assert Degree().one(graph).values.tolist() == [1, 1]


@given(st.lists(structures(most=6), max_size=4), st.integers(1, 3))
def test_a_list_of_structures_is_listed_as_each_of_them(drawn: list[Structure], reach: int) -> None:
    ordered = [each for each in drawn if each.order is not None]
    for encoding, given_ones in ((Window(reach), ordered), (Expander(degree=2).fit(drawn), drawn)):
        for together, structure in zip(encoding.many(given_ones), given_ones, strict=True):
            assert pairs_of(together) == pairs_of(encoding.one(structure))
