from __future__ import annotations

import numpy as np
from hypothesis import given

from structpe.encodings import WITHIN, Adjacency
from structpe.structure import Structure, path
from tests.examples import examples
from tests.strategies import structures


@examples(50)
@given(structure=structures(units=False))
def test_it_says_which_edges_there_are(structure: Structure) -> None:
    edges = {tuple(edge) for edge in structure.edges.tolist()}
    if not structure.directed:
        edges |= {(b, a) for a, b in edges}
    pairs = Adjacency().one(structure).pairs()
    for t in range(structure.size):
        for s in range(structure.size):
            assert pairs[t, s] == (4 if t == s else ((t, s) in edges) + 2 * ((s, t) in edges))


def test_of_a_path() -> None:
    assert Adjacency().one(path("abc")).pairs().tolist() == [[4, 1, 0], [2, 4, 1], [0, 2, 4]]


def test_of_loops_parallel_edges_and_a_cycle() -> None:
    graph = Structure(("a", "b", "c"), [(0, 0), (0, 1), (0, 1), (1, 2), (2, 0)])
    assert Adjacency().one(graph).pairs().tolist() == [[4, 1, 2], [2, 4, 1], [1, 2, 4]]


def test_a_node_of_more_units_than_a_byte_numbers() -> None:
    graph = Structure(("a", "b"), [(0, 1)]).with_units(["x"] * 301, [0] * 300 + [1])
    found = Adjacency().many([path("ab"), graph])
    pairs = found[1].pairs()
    assert found.index is not None
    assert found.index.dtype == np.uint16
    assert pairs[0, 1:300].tolist() == [WITHIN + offset for offset in range(1, 300)]
    assert (pairs[7, 300], pairs[300, 7], pairs[7, 7], pairs[7, 0]) == (1, 2, 4, WITHIN - 7)
    assert found[0].pairs().tolist() == [[4, 1], [2, 4]]
