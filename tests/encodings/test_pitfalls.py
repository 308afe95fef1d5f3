"""Where other implementations go wrong: one small graph each, whose numbers can be worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from structpe.encodings import (
    ENCODINGS,
    UNREACHABLE,
    Depth,
    Distance,
    Eigenvalues,
    Laplacian,
    Offset,
    RandomWalk,
    UndirectedDistance,
    spectra,
)
from structpe.encodings.compiled import slow
from structpe.encodings.label_path import LabelPath, PathToken
from structpe.structure import Structure, path
from tests.encodings.asking import asked
from tests.together import together

LONE = Structure(("x",), np.zeros((0, 2), dtype=int), root=0)
APART = Structure(("a", "b", "c", "d", "e"), [[0, 1], [2, 3]], ("x", "y"))  # two parts and an isolated node


def cycle(size: int) -> Structure:
    return Structure(("x",) * size, [[i, (i + 1) % size] for i in range(size)], directed=False)


# --- signs and repeated eigenvalues ---


@pytest.mark.parametrize("k", [1, 2, 3])
def test_vectors_of_a_repeated_eigenvalue_span_its_space(k: int) -> None:
    """A ring of 4 has the eigenvalues 0, 1, 1, 2; k = 1 cuts through the space of 1."""
    vectors = Laplacian(k).one(cycle(4)).values.astype(np.float64)
    np.testing.assert_allclose(Eigenvalues(k).one(cycle(4)).values, np.tile([1, 1, 2][:k], (4, 1)), atol=1e-6)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-6)
    space = np.array([[1, 0, -1, 0], [0, 1, 0, -1]]).T / np.sqrt(2)
    inside = vectors[:, :2]
    np.testing.assert_allclose(space @ space.T @ inside, inside, atol=1e-6)


def test_signs_do_not_depend_on_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    # No two nodes of this tree can be exchanged, and its eigenvalues are simple.
    tree = Structure(("x",) * 7, [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [2, 6]], directed=False)
    expected, solve = Laplacian().one(tree).values, spectra.lowest_dense

    def mirrored(matrices: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        values, vectors = solve(matrices, count)
        return values, vectors * np.where(np.arange(vectors.shape[-1]) % 2, 1.0, -1.0)

    monkeypatch.setattr(spectra, "lowest_dense", mirrored)
    np.testing.assert_array_equal(Laplacian().one(tree).values, expected)


# --- graphs in pieces, isolated nodes, fewer nodes than eigenvectors ---


def test_no_trivial_vector_of_any_part_is_left() -> None:
    """Taken as a whole, two parts have two eigenvalues 0, of which dropping one vector leaves one."""
    assert Eigenvalues(2).one(APART).values[0].tolist() == [2, -1]
    whole = Eigenvalues(2, components=False).one(APART).values[0]
    np.testing.assert_allclose(whole, [0, 1], atol=1e-6)


@together("name", sorted(ENCODINGS))
def test_one_node_without_an_edge_is_encoded(name: str) -> None:
    alone = path(["x"])
    encoded = asked(name).fit([path("ab")]).one(alone)
    assert np.isfinite(encoded.values).all()
    assert encoded.index is None or encoded.listed is not None or encoded.pairs().shape[:2] == (1, 1)


def test_what_an_isolated_node_gets() -> None:
    assert not RandomWalk(5).one(APART).values[4].any()
    assert not Laplacian().one(APART).values[4].any()
    assert (Eigenvalues().one(APART).values[4] == -1).all()
    assert Distance().one(APART).pairs()[4].tolist() == [UNREACHABLE] * 4 + [0]
    assert UndirectedDistance().one(APART).pairs()[0].tolist() == [0, 1, *[UNREACHABLE] * 3]
    assert LabelPath().fit([APART]).one(APART).pairs()[4].ravel().tolist() == [2, 2, 2, 2, 1]
    assert Depth().one(LONE).values.tolist() == [0]


def test_fewer_nodes_than_eigenvectors_leave_columns_empty() -> None:
    triangle = cycle(3)
    assert (Eigenvalues(8).one(triangle).values[:, 2:] == -1).all()
    assert not Laplacian(8).one(triangle).values[:, 2:].any()
    assert Laplacian(8).one(triangle).values[:, :2].all(axis=1).any()


# --- parallel edges and self-loops ---


def test_parallel_edges_each_carry_a_walk() -> None:
    """From 0, two edges of three lead to 1; overwriting them would make it 1/2."""
    graph = Structure(("a", "b", "c"), [[0, 1], [0, 1], [0, 2]], directed=False)
    np.testing.assert_allclose(RandomWalk(2).one(graph).values, [[0, 1], [0, 2 / 3], [0, 1 / 3]], atol=1e-7)


def test_a_self_loop_is_a_way_to_stay() -> None:
    graph = Structure(("a", "b"), [[0, 0], [0, 1]], directed=False)
    np.testing.assert_allclose(RandomWalk(2).one(graph).values, [[0.5, 0.75], [0, 0.5]], atol=1e-7)


@pytest.mark.parametrize("edges", [[0, 1], [1, 0]])
def test_of_parallel_edges_the_smallest_label_names_the_step(edges: list[int]) -> None:
    labels = ("b", "a")
    graph = Structure(("x", "y"), [[0, 1], [0, 1]], tuple(labels[e] for e in edges))
    steps, tokens = LabelPath().fit([graph]), PathToken().fit([graph])
    assert steps.one(graph).pairs()[0, 1].tolist() == [4]
    assert tokens.tokens[tokens.one(graph).pairs()[0, 1] - 3] == "-:a"


# --- eight bits ---


@pytest.mark.parametrize("size", [60, 61, 127, 128, 129, 200, 300])
def test_the_ends_of_a_path_are_as_far_apart_as_it_is_long(size: int) -> None:
    there = Distance().one(path(["x"] * size)).pairs()
    np.testing.assert_array_equal(there, Offset().one(path(["x"] * size)).pairs())
    assert UndirectedDistance().one(path(["x"] * size)).pairs().max() == size - 1


@together("size", [126, 127, 128, 129, 254, 255, 256, 257])
def test_eight_bits_hold_the_paths_of_every_graph_that_gets_them(size: int) -> None:
    """Some number of eight bits means that there is no path; no path may be so long that it is taken for that."""
    backwards = Structure(("x",) * size, np.column_stack([np.arange(1, size), np.arange(size - 1)]))  # no sequence
    with slow():
        there, apart = Distance().one(backwards).pairs(), UndirectedDistance().one(backwards).pairs()
    np.testing.assert_array_equal(there, -Offset().one(path(["x"] * size)).pairs())
    np.testing.assert_array_equal(apart, np.abs(there))


# --- padding ---


def test_small_graphs_beside_larger_ones_gain_no_node() -> None:
    """Sizes 5 to 8 share one array; what fills it up must be no way from one node to another."""
    graphs = [Structure(("x",) * n, [[0, n - 1]]) for n in (5, 6, 7, 8)]
    for graph, joined in zip(graphs, Distance().many(graphs), strict=True):
        n = graph.size
        expected = np.where(np.eye(n, dtype=bool), 0, UNREACHABLE)
        expected[0, -1], expected[-1, 0] = 1, -1
        np.testing.assert_array_equal(joined.pairs(), expected)


def test_graphs_of_other_sizes_add_no_eigenvalue() -> None:
    for encoded in Eigenvalues().many([cycle(size) for size in (3, 4, 5, 9)]):
        assert (encoded.values[encoded.values >= 0] > 0.1).all()


# --- threads ---


def test_pytorch_keeps_its_number_of_threads() -> None:
    """One parallel loop of numba sets it back to all cores; loops here run on one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for encoding in (UndirectedDistance(), RandomWalk(4), LabelPath().fit([APART])):
            encoding.many([APART, cycle(70)])
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)
