from __future__ import annotations

import math
from itertools import accumulate, repeat

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structpe.encodings import RandomWalk, walk_probes
from structpe.encodings.compiled import at_once, slow
from structpe.errors import EncodingError
from structpe.structure import Structure
from tests.examples import examples
from tests.golden import golden
from tests.strategies import structures
from tests.together import together


def literal(structure: Structure, steps: int) -> np.ndarray:
    """Diagonals of powers of a dense matrix, taken one after the other."""
    graph = networkx.MultiDiGraph() if structure.directed else networkx.MultiGraph()
    graph.add_nodes_from(range(structure.size))
    graph.add_edges_from(structure.edges.tolist())
    counts = networkx.to_numpy_array(graph)
    walk = np.zeros_like(counts)
    for i, row in enumerate(counts):
        if row.sum():
            walk[i] = row / row.sum()
    powers = accumulate(repeat(walk, steps), np.matmul)
    return np.stack([np.diag(power) for power in powers], axis=1)


@examples(50)
@given(structure=structures(units=False), steps=st.integers(1, 9))
def test_it_is_the_diagonal_of_powers(structure: Structure, steps: int) -> None:
    encoded = RandomWalk(steps).one(structure).values
    assert encoded.dtype == np.float32
    np.testing.assert_allclose(encoded, literal(structure, steps), atol=1e-6)


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("steps", [1, 6])
def test_large_graphs_walk_the_same_way(directed: bool, steps: int) -> None:
    edges = np.random.default_rng(0).integers(0, 520, (900, 2))  # with isolated nodes, self-loops and dead ends
    graph = Structure(("x",) * 520, edges, directed=directed)
    np.testing.assert_allclose(RandomWalk(steps).one(graph).values, literal(graph, steps), atol=1e-6)


@together("directed", [True, False])
@together("steps", [1, 2, 7])
@together("edges", [9, 2600])  # few numbers are spread one by one, many rows are summed
def test_large_graphs_walk_the_same_way_with_and_without_numba(edges: int, directed: bool, steps: int) -> None:
    ends = np.random.default_rng(1).integers(0, 520, (edges, 2))
    graph = Structure(("x",) * 521, [*ends, *ends[:9]], directed=directed)
    with at_once():
        quick = RandomWalk(steps).one(graph).values
    with slow():
        np.testing.assert_array_equal(RandomWalk(steps).one(graph).values, quick)
    np.testing.assert_allclose(quick, literal(graph, steps), rtol=1e-6)


def test_long_walks_reach_more_and_more_of_a_large_graph() -> None:
    graph = Structure(("x",) * 502, [[i, (i + 1) % 501] for i in range(501)], directed=False)  # a ring and a lone node
    with at_once():
        found = RandomWalk(502).one(graph).values
    assert (found[:, ::2] == 0).all()  # 501 steps lead round the ring, with a probability below that of a float32
    expected = [math.comb(2 * k, k) / 4**k for k in range(1, 252)]
    np.testing.assert_allclose(found[:501, 1::2], np.tile(expected, (501, 1)), rtol=1e-6)
    assert (found[501] == 0).all()


@pytest.mark.parametrize("name", ["g7", "disc6", "cycle4"])
@pytest.mark.parametrize("directed", [True, False])
def test_the_authors_code_agrees(name: str, directed: bool) -> None:
    g = golden("lap_wl_rw_dgl")
    edges, expected = g[f"in.{name}.edges"].numpy(), g[f"out.{name}.rwpe5"].numpy()
    graph = Structure(
        ("x",) * len(expected), edges if directed else edges[edges[:, 0] < edges[:, 1]], directed=directed
    )
    np.testing.assert_allclose(RandomWalk(5).one(graph).values, expected, atol=1e-6)


def test_no_step_is_refused() -> None:
    with pytest.raises(EncodingError, match="encoding 'random-walk': steps is 0; give 1 or more"):
        RandomWalk(0)


PARALLEL = [[0, 1], [0, 1], [0, 1], [0, 2], [2, 1], [1, 0], [2, 2], [3, 0], [0, 3], [3, 0]]


@pytest.mark.parametrize("more", [0, 520], ids=["small", "large"])
@pytest.mark.parametrize("directed", [True, False])
def test_parallel_edges_are_walked_as_often(directed: bool, more: int) -> None:
    """Three edges lead from 0 to 1 and one to 2: the first step goes to 1 three times as often."""
    ring = [[4 + i, 4 + (i + 1) % more] for i in range(more)]
    graph = Structure(("x",) * (4 + more), [*PARALLEL, *ring, *ring[:7]], directed=directed)
    encoded = RandomWalk(5).one(graph).values
    np.testing.assert_allclose(encoded, literal(graph, 5), atol=1e-6)
    once = RandomWalk(5).one(Structure(graph.nodes, np.unique(graph.edges, axis=0), directed=directed)).values
    assert np.abs(encoded[:4] - once[:4]).max() > 0.01


@pytest.mark.parametrize("more", [0, 520], ids=["small", "large"])
def test_both_ways_there_are_as_many_edges_as_in_the_direction_that_has_more(more: int) -> None:
    ring = [[4 + i, 4 + (i + 1) % more] for i in range(more)]
    graph = Structure(("x",) * (4 + more), [*PARALLEL, *ring])
    counts = graph.adjacency()
    most = np.maximum(counts, counts.T)
    assert most[0, 1] == 3
    assert most[0, 3] == 2
    walk = most / np.maximum(most.sum(1, keepdims=True), 1)
    expected = np.stack([np.diag(np.linalg.matrix_power(walk, step)) for step in range(1, 6)], axis=1)
    np.testing.assert_allclose(RandomWalk(5, undirected=True).one(graph).values, expected, atol=1e-6)


def spread(directed: bool) -> Structure:
    """Two thousand nodes of many degrees, some of them in parts of a few, with self-loops and dead ends."""
    edges = np.random.default_rng(2).integers(0, 1990, (7000, 2)) ** 2 // 1990
    return Structure(("x",) * 2000, [*edges, *edges[:9], [1995, 1996], [1996, 1997]], directed=directed)


@pytest.mark.parametrize("directed", [True, False])
def test_estimates_are_as_near_as_they_say(directed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk_probes, "_CELLS", 50_000)  # so that few steps are exact
    graph, steps = spread(directed), 10
    exact, walk = RandomWalk(steps).one(graph).values.astype(float), RandomWalk(steps, probes=200)
    found, errors = walk.one(graph).values, walk.errors(graph)
    known = (errors == 0).all(0)
    assert known[:2].all()
    assert not known[5:].any()
    np.testing.assert_allclose(found[:, known], exact[:, known], atol=1e-7)
    off, said = np.abs(found - exact)[:, ~known], errors[:, ~known]
    assert (off[said == 0] < 1e-6).all()  # where a walk never returns, or always the same way
    near = off[said > 0] / said[said > 0]
    assert (near < 2).mean() > 0.93
    assert (near < 6).all()
    if not directed:
        even = exact[:, 5::2]
        shares = errors[:, 5::2][even > 0] / even[even > 0]
        assert 0.7 < shares.mean() / math.sqrt(2 / 200) < 1.02


def test_more_probes_are_nearer_and_another_seed_is_another_estimate() -> None:
    graph = spread(directed=False)
    few, many = (RandomWalk(16, probes=m).errors(graph)[:, 10:].mean() for m in (40, 640))
    assert 3.5 < few / many < 4.5  # sixteen times the probes
    one, other = (RandomWalk(16, probes=50, seed=seed).one(graph).values for seed in (0, 1))
    assert (one != other).any()
    np.testing.assert_array_equal(one, RandomWalk(16, probes=50).one(graph).values)


def test_estimates_follow_the_order_of_reading_and_nothing_else() -> None:
    graph, new = spread(directed=False), np.random.default_rng(0).permutation(2000)
    first = Structure(graph.nodes, graph.edges, directed=False, order=np.arange(2000))
    turned = Structure(graph.nodes, new[graph.edges], directed=False, order=np.argsort(new))
    walk, small = RandomWalk(12, probes=40), Structure(("x",) * 4, PARALLEL)
    found = walk.one(first).values
    np.testing.assert_allclose(walk.one(turned).values[new], found, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(walk.many([small, first, small]).values[4:-4], found)
    np.testing.assert_array_equal(walk.one(small).values, RandomWalk(12).one(small).values)
    assert (walk.errors(small) == 0).all()
    assert (RandomWalk(12).errors(first) == 0).all()


@pytest.mark.parametrize(("steps", "edges"), [(1, 900), (2, 900), (3, 900), (16, 0), (16, 1)])
def test_estimates_of_few_steps_and_few_edges_are_exact(steps: int, edges: int) -> None:
    graph = Structure(("x",) * 520, np.random.default_rng(0).integers(0, 520, (edges, 2)), directed=False)
    walk = RandomWalk(steps, probes=40)
    np.testing.assert_allclose(walk.one(graph).values, literal(graph, steps), atol=1e-6)
    assert (walk.errors(graph) == 0).all()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"probes": 0}, "probes is 0; give 1 or more"),
        ({"probes": 1}, "probes is 1; give 2 or more, or None for exact values"),
        ({"seed": -1}, "the seed is -1; give 0 or more"),
        ({"seed": 3}, "a seed without probes has no effect; give probes, or no seed"),
    ],
)
def test_probes_that_say_no_error_are_refused(options: dict[str, int], said: str) -> None:
    with pytest.raises(EncodingError, match=f"encoding 'random-walk': {said}"):
        RandomWalk(**options)
