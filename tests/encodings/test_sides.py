"""Graphs with two sides, which are decomposed by half their size, and the ways for few nodes and for many."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from structpe.encodings import Eigenpairs, Laplacian, RandomWalk, spectra, walks
from structpe.encodings.graphs import Graphs
from structpe.structure import Structure
from tests.together import together


def drawn(seed: int) -> Structure:
    """Graphs with two sides and without, in several parts, with parallel edges, self-loops and single nodes."""
    chance = np.random.default_rng(seed)
    graph = nx.disjoint_union_all(
        [
            nx.bipartite.random_graph(*chance.integers(3, 20, 2), 0.3, seed=seed),
            nx.random_labeled_tree(int(chance.integers(2, 40)), seed=seed),
            nx.gnp_random_graph(int(chance.integers(1, 25)), 0.1, seed=seed),
            nx.grid_2d_graph(3, int(chance.integers(1, 9))),
        ]
    )
    edges = np.array(graph.edges, dtype=np.int64).reshape(-1, 2)
    edges = np.concatenate([edges, edges[chance.random(len(edges)) < 0.2]])  # parallel edges
    if seed % 3 == 0:
        edges = np.concatenate([edges, np.full((1, 2), chance.integers(graph.number_of_nodes()))])  # a self-loop
    size = graph.number_of_nodes()
    edges = chance.permutation(size)[edges]
    return Structure(("x",) * size, edges, directed=bool(seed % 2))


def laplacian(structure: Structure) -> np.ndarray:
    linked = np.zeros((structure.size, structure.size))
    for source, target in structure.edges.tolist():
        linked[source, target] = linked[target, source] = 1
    root = np.sqrt(np.maximum(linked.sum(1), 1))
    return np.eye(structure.size) - linked / root[:, None] / root


@together("connected", [True, False])
@together("seed", range(12))
def test_each_part_has_the_eigenpairs_of_its_whole_matrix(seed: int, connected: bool) -> None:
    structure = drawn(seed)
    whole, graphs, seen = laplacian(structure), Graphs.of([structure]), []
    count = 1 + seed % 9
    for nodes, values, vectors in spectra.eigenpairs(Laplacian(), [structure], graphs, count, 1, connected):
        for part, own, v in zip(nodes, values, vectors, strict=True):
            matrix = whole[np.ix_(part, part)]
            seen.append(part.tolist())
            np.testing.assert_allclose(own, np.linalg.eigvalsh(matrix)[:count], atol=1e-12)
            np.testing.assert_allclose(matrix @ v, v * own, atol=1e-12)
            np.testing.assert_allclose(v.T @ v, np.eye(len(own)), atol=1e-12)
    graph = nx.Graph(structure.edges.tolist())
    graph.add_nodes_from(range(structure.size))
    expected = list(nx.connected_components(graph)) if connected else [set(range(structure.size))]
    assert {frozenset(part) for part in seen} == {frozenset(part) for part in expected}
    assert len(seen) == len(expected)


@pytest.mark.parametrize("normalised", [True, False])
@pytest.mark.parametrize("connected", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_few_nodes_are_grouped_as_many_are(
    seed: int, connected: bool, normalised: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    graphs = Graphs.of([drawn(seed), drawn(seed + 50)])

    def parts() -> dict[tuple[int, ...], tuple[int, bytes, bytes]]:
        return {
            tuple(nodes.tolist()): (group.first, matrix.tobytes(), degree.tobytes())
            for group in spectra._groups(graphs, connected, 4, normalised)
            for nodes, matrix, degree in zip(group.nodes, group.adjacency(), group.degree, strict=True)
        }

    monkeypatch.setattr(spectra, "_SEARCHED", 1 << 20)
    few = parts()
    monkeypatch.setattr(spectra, "_SEARCHED", -1)
    many = parts()
    assert few == many
    assert sum(map(len, few)) == int(graphs.start[-1])


def test_trees_and_even_rings_are_decomposed_by_half() -> None:
    ring, odd = nx.cycle_graph(20), nx.cycle_graph(21)
    for graph, first in ((ring, 10), (odd, 0), (nx.star_graph(30), 0), (nx.path_graph(25), 12)):
        structure = Structure(("x",) * len(graph), list(graph.edges), directed=False)
        (group,) = spectra._groups(Graphs.of([structure]), True, 9, True)
        assert group.first == first


def test_sides_of_too_low_rank_are_decomposed_as_a_whole() -> None:
    """Half of the nodes of both sides are doubles of the others, so half of the singular values are 0."""
    edges = [(a, 12 + b) for a in range(12) for b in range(12) if (a // 2 - b // 2) % 6 in (0, 1)]
    structure = Structure(("x",) * 24, edges, directed=False)
    (group,) = spectra._groups(Graphs.of([structure]), True, 9, True)
    assert group.first == 12
    vectors, values, _ = np.moveaxis(Eigenpairs(9).one(structure).values.astype(np.float64), -1, 0)
    matrix = laplacian(structure)
    np.testing.assert_allclose(values[0], np.linalg.eigvalsh(matrix)[:9], atol=1e-6)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-6)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(9), atol=1e-6)


def test_a_graph_has_the_same_bits_alone_and_among_others() -> None:
    structures = [drawn(seed) for seed in range(12)] * 2
    for encoding in (Laplacian(5), Laplacian(5, components=False), Eigenpairs(3)):
        together = encoding.many(structures)
        for number, structure in enumerate(structures[:12]):
            np.testing.assert_array_equal(together[number].values, encoding.one(structure).values)


def test_signs_follow_the_rule_one_vector_at_a_time() -> None:
    chance = np.random.default_rng(0)
    sizes = [1, 2, 3, 4, 5, 8, 9, 20]
    start = np.cumsum([0, *sizes[:-1]])
    vectors = chance.integers(-2, 3, (sum(sizes), 40)).astype(np.float64)  # many ties
    rank = np.concatenate([chance.permutation(size) for size in sizes])
    found = spectra.with_signs(vectors, rank, start)
    for first, size in zip(start, sizes, strict=True):
        for column in range(vectors.shape[1]):
            v, order = vectors[first : first + size, column], np.argsort(rank[first : first + size])
            up, down = sorted(v, reverse=True), sorted(-v, reverse=True)
            turned = up < down if up != down else next((x < 0 for x in v[order] if x), False)
            np.testing.assert_array_equal(found[first : first + size, column], -v if turned else v)


@pytest.mark.parametrize("undirected", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_walks_of_few_nodes_have_the_same_bits(seed: int, undirected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    structure = drawn(seed)
    monkeypatch.setattr(walks, "_TABLE", 1 << 20)
    few = RandomWalk(7, undirected).one(structure).values
    monkeypatch.setattr(walks, "_TABLE", -1)
    np.testing.assert_array_equal(RandomWalk(7, undirected).one(structure).values, few)
