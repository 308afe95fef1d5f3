"""Walks with and without numba, and the columns of pairs that have values of their own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import structpe
from structpe.encodings import (
    RRWP,
    UNREACHABLE,
    Column,
    Encoding,
    PersonalizedPageRank,
    RandomWalk,
    Resistance,
    WalkKernel,
)
from structpe.encodings.compiled import slow
from structpe.structure import Structure, path
from tests.examples import examples
from tests.strategies import structures

OWN = [RRWP(5), PersonalizedPageRank(), Resistance(), WalkKernel(walks=5)]


def literal(structure: Structure, steps: int) -> np.ndarray:
    """I, M, M^2, ... of units, one dense power after the other."""
    counts = np.zeros((structure.size, structure.size))
    for source, target in structure.edges:
        counts[source, target] += 1
        if not structure.directed and source != target:
            counts[target, source] += 1
    walk = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    powers = np.stack([np.linalg.matrix_power(walk, step) for step in range(steps)], axis=-1)
    owner = structure.unit_owner
    return powers[owner[:, None], owner]


@examples(60)
@given(drawn=st.lists(structures(), max_size=6), steps=st.integers(1, 7))
def test_powers_are_those_of_the_dense_matrix_with_and_without_numba(drawn: list[Structure], steps: int) -> None:
    quick = RRWP(steps).many(drawn)
    with slow():
        column = RRWP(steps).many(drawn)
    for structure, mine, other in zip(drawn, column, quick, strict=True):
        expected = literal(structure, steps)
        assert mine.values.dtype == other.values.dtype == np.float64
        np.testing.assert_allclose(mine.pairs(), expected, atol=1e-10)
        np.testing.assert_array_equal(other.pairs(), mine.pairs())
        np.testing.assert_array_equal(mine.index, other.index)


@examples(60)
@given(drawn=st.lists(structures(), max_size=6), steps=st.integers(1, 9), undirected=st.booleans())
def test_returns_are_the_same_with_and_without_numba(drawn: list[Structure], steps: int, undirected: bool) -> None:
    quick = RandomWalk(steps, undirected).many(drawn)
    with slow():
        column = RandomWalk(steps, undirected).many(drawn)
    assert quick.values.dtype == column.values.dtype == np.float32
    np.testing.assert_array_equal(quick.values, column.values)


def test_large_and_small_graphs_stand_in_one_column() -> None:
    rng = np.random.default_rng(0)
    sizes = (3, 520, 40, 601, 3)
    graphs = [Structure(("",) * n, rng.integers(0, n, (2 * n, 2)), directed=n == 601) for n in sizes]
    column = RandomWalk(7).many(graphs)
    assert column.sizes.tolist() == list(sizes)
    for graph, encoded in zip(graphs, column, strict=True):
        counts = graph.adjacency()
        walk = counts / np.maximum(counts.sum(1, keepdims=True), 1)
        expected = np.stack([np.diag(np.linalg.matrix_power(walk, k)) for k in range(1, 8)], axis=1)
        np.testing.assert_allclose(encoded.values, expected, atol=1e-6)


def test_a_walk_of_an_isolated_node_never_returns() -> None:
    lone = Structure(("a", "b"), np.zeros((0, 2), dtype=int))
    assert not RandomWalk(3).one(lone).values.any()
    assert RRWP(3).one(lone).pairs().tolist() == [[[1, 0, 0], [0, 0, 0]], [[0, 0, 0], [1, 0, 0]]]


@pytest.mark.parametrize("encoding", OWN, ids=lambda each: each.name)
def test_pairs_without_a_value_share_one_row(encoding: Encoding) -> None:
    """Of two parts of two nodes, 8 of 16 pairs have a value."""
    parts = Structure(tuple("abcd"), [[0, 1], [2, 3]], directed=False)
    column = encoding.many([path("ab"), parts, Structure(("a",), np.zeros((0, 2), dtype=int))])
    assert column.rows is None
    assert column.row_starts is not None
    counts = np.diff(column.row_starts).tolist()
    assert counts[1:] == [9, 1]
    missing = column[1].pairs()[0, 2]
    assert (missing == (UNREACHABLE if "unreachable" in encoding.codes else 0)).all()
    assert column[1].index.dtype == np.uint8


@pytest.mark.parametrize("encoding", OWN, ids=lambda each: each.name)
@examples(20)
@given(drawn=st.lists(structures(), min_size=1, max_size=4))
def test_a_batch_has_what_its_structures_have(encoding: Encoding, drawn: list[Structure]) -> None:
    """Also if they come from several columns, as from a store."""
    whole = structpe.encode(drawn, [encoding])[encoding].dense().numpy()
    apart = structpe.positions.batch.join({encoding: [encoding.one(each) for each in drawn]})[encoding].dense().numpy()
    for each, mine, other in zip(drawn, whole, apart, strict=True):
        u, expected = each.unit_count, encoding.one(each).pairs()
        np.testing.assert_array_equal(mine[:u, :u], expected)
        np.testing.assert_array_equal(other[:u, :u], expected)


@pytest.mark.parametrize("encoding", [*OWN, RandomWalk(3)], ids=lambda each: each.name)
def test_no_structure_is_an_empty_column(encoding: Encoding) -> None:
    column = encoding.many([])
    assert isinstance(column, Column)
    assert len(column) == 0
