from __future__ import annotations

from hypothesis import given, settings

from structpe.encodings import Adjacency
from structpe.structure import Structure, path
from tests.strategies import structures


@settings(max_examples=50, deadline=None)
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
