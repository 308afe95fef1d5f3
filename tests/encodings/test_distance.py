from __future__ import annotations

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structpe.encodings import UNREACHABLE, Distance, Offset, UndirectedDistance
from structpe.errors import EncodingError
from structpe.structure import Structure, path
from tests.examples import examples
from tests.strategies import digraphs, undirected
from tests.together import together


def as_networkx(structure: Structure, directed: bool) -> networkx.Graph:
    graph = networkx.DiGraph() if directed and structure.directed else networkx.Graph()
    graph.add_nodes_from(range(structure.size))
    graph.add_edges_from(structure.edges.tolist())
    return graph


def literal(structure: Structure) -> np.ndarray:
    """Equation 31 of the survey, for nodes, on networkx's distances."""
    lengths = dict(networkx.all_pairs_shortest_path_length(as_networkx(structure, directed=True)))
    result = np.full((structure.size, structure.size), UNREACHABLE)
    for t in range(structure.size):
        for s in range(structure.size):
            there, back = lengths[t].get(s, np.inf), lengths[s].get(t, np.inf)
            if min(there, back) < np.inf:
                result[t, s] = there if there <= back else -back
    return result


def literal_undirected(structure: Structure) -> np.ndarray:
    result = np.full((structure.size, structure.size), UNREACHABLE)
    for t, lengths in networkx.all_pairs_shortest_path_length(as_networkx(structure, directed=False)):
        for s, length in lengths.items():
            result[t, s] = length
    return result


def scattered(size: int, edges: int, seed: int, directed: bool = True) -> Structure:
    pairs = np.random.default_rng(seed).integers(0, size, (edges, 2))
    return Structure(("x",) * size, pairs, directed=directed)


@examples(50)
@given(structure=st.one_of(digraphs(units=False), undirected(units=False)))
def test_distances_are_those_of_networkx(structure: Structure) -> None:
    np.testing.assert_array_equal(Distance().one(structure).pairs(), literal(structure))
    np.testing.assert_array_equal(UndirectedDistance().one(structure).pairs(), literal_undirected(structure))


@together("size", [59, 60, 61, 90])
@together("degree", [0, 1, 3])
@together("directed", [True, False])
def test_distances_of_large_graphs_in_pieces_are_those_of_networkx(size: int, degree: int, directed: bool) -> None:
    graph = scattered(size, size * degree, seed=size + degree, directed=directed)
    np.testing.assert_array_equal(Distance().one(graph).pairs(), literal(graph))
    np.testing.assert_array_equal(UndirectedDistance().one(graph).pairs(), literal_undirected(graph))


def test_the_ends_of_a_long_path_are_far_apart() -> None:
    tokens = path(["x"] * 200)
    np.testing.assert_array_equal(Distance().one(tokens).pairs(), Offset().one(tokens).pairs())


def test_sizes_mix() -> None:
    graphs = [scattered(size, size * 2, seed=size) for size in (1, 70, 3, 60, 4, 61, 1)]
    for encoded, graph in zip(Distance().many(graphs), graphs, strict=True):
        np.testing.assert_array_equal(encoded.pairs(), literal(graph))


def test_a_limit_keeps_signs_and_what_cannot_be_reached() -> None:
    graph = Structure(("a", "b", "c", "d"), [[0, 1], [1, 2]])
    expected = [[0, 1, 1, UNREACHABLE], [-1, 0, 1, UNREACHABLE], [-1, -1, 0, UNREACHABLE], [*[UNREACHABLE] * 3, 0]]
    assert Distance(max_distance=1).one(graph).pairs().tolist() == expected


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(EncodingError, match="encoding 'distance': max_distance is 0; give 1 or more, or None"):
        Distance(max_distance=0)
    with pytest.raises(EncodingError, match="encoding 'undirected-distance': max_distance is -3"):
        UndirectedDistance(max_distance=-3)
