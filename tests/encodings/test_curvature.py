"""Curvature of edges, against linear programmes over the shortest paths of networkx."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import linprog

from structpe.encodings import curvature
from structpe.encodings.curvature import CurvatureProfile
from structpe.errors import EncodingError
from structpe.structure import Structure
from tests.examples import examples
from tests.strategies import structures


def literal(graph: networkx.Graph, u: int, w: int, kind: str) -> float:
    if kind != "ollivier":
        triangles = len(set(graph[u]) & set(graph[w]))
        return 4 - graph.degree(u) - graph.degree(w) + 3 * triangles * (kind == "augmented")
    here, there = list(graph[u]), list(graph[w])
    cost = [networkx.shortest_path_length(graph, x, y) for x in here for y in there]
    moves = [[float(i // len(there) == x) for i in range(len(cost))] for x in range(len(here))]
    moves += [[float(i % len(there) == y) for i in range(len(cost))] for y in range(len(there))]
    masses = [1 / len(here)] * len(here) + [1 / len(there)] * len(there)
    return 1 - linprog(cost, A_eq=moves, b_eq=masses).fun


@pytest.mark.parametrize("kind", ["ollivier", "augmented", "forman"])
@examples(10)
@given(structure=structures(units=False))
def test_profiles_are_statistics_of_the_edges_of_a_node(structure: Structure, kind: str) -> None:
    graph = networkx.Graph((a, b) for a, b in structure.edges.tolist() if a != b)
    graph.add_nodes_from(range(structure.size))
    profile = CurvatureProfile(kind).one(structure).values
    for u in range(structure.size):
        k = [literal(graph, u, w, kind) for w in graph[u]] or [0.0]
        expected = [min(k), max(k), np.mean(k), np.std(k), np.median(k)]
        np.testing.assert_allclose(profile[u], expected, atol=1e-6)


def test_large_neighbourhoods_are_moved_as_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Structure(("x",) * 12, [(0, i) for i in range(1, 12)] + [(1, 2), (1, 3), (4, 5), (1, 6)], directed=False)
    matched = CurvatureProfile().one(graph).values
    monkeypatch.setattr(curvature, "_COPIES", 0)
    np.testing.assert_allclose(CurvatureProfile().one(graph).values, matched, atol=1e-6)


def test_nodes_beyond_the_square_root_of_32_bits_count_alike() -> None:
    graph = Structure(("x",) * 6, [(0, 1), (1, 2), (2, 3), (3, 0), (3, 4), (4, 5), (1, 5)], directed=False)
    alone, among = CurvatureProfile().one(graph).values, CurvatureProfile().many([Structure(("",) * 47_000, []), graph])
    assert np.array_equal(among[1].values, alone)


def test_curvatures_of_a_cycle_a_clique_and_a_tree() -> None:
    """Flat, round and hyperbolic."""
    ring = Structure(("x",) * 6, [(i, (i + 1) % 6) for i in range(6)], directed=False)
    whole = Structure(("x",) * 4, [(i, j) for i in range(4) for j in range(i)], directed=False)
    tree = Structure(("x",) * 8, [(0, 1), (0, 2), (0, 3), (1, 4), (1, 5), (2, 6), (2, 7)], directed=False)
    means = [CurvatureProfile().one(each).values[0, 0] for each in (ring, whole, tree)]
    np.testing.assert_allclose(means, [0, 2 / 3, -2 / 3], atol=1e-6)


def test_a_hub_that_would_fill_the_memory_is_refused() -> None:
    star = Structure(("",) * 12_000, [(0, i) for i in range(1, 12_000)], name="star")
    with pytest.raises(EncodingError, match=r"star: .*add up to 1.4e\+08, and 1e\+08 are allowed; choose kind: forman"):
        CurvatureProfile().many([star])
    assert CurvatureProfile("forman").one(star).values[1].tolist() == [-11996, -11996, -11996, 0, -11996]
