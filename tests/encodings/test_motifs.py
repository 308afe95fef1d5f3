"""Motifs: homomorphisms counted by trying all maps, closed walks, and what cannot be counted."""

from __future__ import annotations

from itertools import product
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structpe.encodings import Motifs, RandomWalk
from structpe.errors import EncodingError
from structpe.structure import Structure, path
from tests.examples import examples
from tests.strategies import structures
from tests.together import together

LISTED: dict[Any, list[tuple[int, int]]] = {
    "cycle-2": [(0, 1)],
    "cycle-3": [(0, 1), (1, 2), (2, 0)],
    "cycle-5": [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)],
    "path-3": [(0, 1), (1, 2)],
    "star-4": [(0, 1), (0, 2), (0, 3)],
    "clique-4": [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)],
    ((2, 0), (1, 2), (1, 3), (3, 2), (3, 4)): [(0, 2), (1, 2), (1, 3), (2, 3), (3, 4)],
    ((0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (3, 4), (4, 0)): [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (3, 4), (4, 0)],
}
LOPSIDED = [(0, 2), (0, 3), (1, 2), (2, 4), (2, 5), (3, 4), (3, 5), (4, 5)]
"""Summed over one vertex after another, it takes an array of three axes, none of which may be exchanged."""


def tried(edges: list[tuple[int, int]], structure: Structure, weigh: bool) -> list[float]:
    """For each node, over all maps that send 0 there: 1, or the product of 1/degree, if edges are sent to edges."""
    n = structure.size
    joined = {pair for a, b in structure.edges.tolist() for pair in ((a, b), (b, a))}
    degree = [len([u for u in range(n) if (v, u) in joined]) for v in range(n)]
    sums = [0.0] * n
    for images in product(range(n), repeat=1 + max(map(max, edges))):
        if all((images[a], images[b]) in joined for a, b in edges):
            sums[images[0]] += float(np.prod([1 / degree[v] for v in images])) if weigh else 1.0
    return sums


@pytest.mark.parametrize("by_degree", [False, True])
@examples(10)
@given(drawn=st.lists(structures(5), min_size=1, max_size=3))
def test_all_maps_are_tried(by_degree: bool, drawn: list[Structure]) -> None:
    """With loops, parallel edges and units, too."""
    column = Motifs(tuple(LISTED), by_degree).many(drawn)
    for structure, encoded in zip(drawn, column, strict=True):
        expected = np.transpose([tried(edges, structure, by_degree) for edges in LISTED.values()])
        np.testing.assert_allclose(encoded.values, expected[structure.unit_owner], rtol=1e-12, atol=0)


def test_axes_of_an_array_with_three_of_them_keep_their_places() -> None:
    house = Structure(("x",) * 5, np.array([[0, 1], [1, 2], [2, 3], [3, 0], [0, 4], [1, 4], [0, 2]]), directed=False)
    counts = Motifs((tuple(LOPSIDED),)).one(house).values[:, 0]
    assert counts.tolist() == tried(LOPSIDED, house, False)
    assert len(set(counts.tolist())) > 2


def test_cycles_by_degree_are_random_walks() -> None:
    graph = nx.gnp_random_graph(30, 0.15, seed=0)
    structure = Structure(("x",) * 30, np.array(graph.edges), directed=False)
    cycles = Motifs(tuple(f"cycle-{k}" for k in range(2, 9)), by_degree=True).one(structure).values
    np.testing.assert_allclose(cycles, RandomWalk(8).one(structure).values[:, 1:], rtol=0, atol=1e-7)


def test_four_cliques_tell_graphs_apart_that_refinement_cannot() -> None:
    """The rook's graph and Shrikhande's, strongly regular with the same parameters: only one has cliques of four."""
    rook = nx.line_graph(nx.complete_bipartite_graph(4, 4))
    steps = [(0, 1), (1, 0), (1, 1)]
    shrikhande = nx.Graph([((a, b), ((a + x) % 4, (b + y) % 4)) for a, b in np.ndindex(4, 4) for x, y in steps])
    both = [
        Structure(("x",) * 16, np.array(nx.convert_node_labels_to_integers(g).edges), directed=False)
        for g in (rook, shrikhande)
    ]
    for motif, apart in (("clique-4", True), ("cycle-6", False), (((0, 1), (0, 2), (1, 2), (1, 3), (2, 3)), False)):
        here, there = (Motifs((motif,)).one(each).values for each in both)
        assert (not np.array_equal(here, there)) == apart


def test_motifs_in_other_words() -> None:
    listed = Motifs(([[1, 0], [1, 2], [2, 0], [0, 1]],))  # type: ignore[arg-type]
    assert listed.options() == {"motifs": (((0, 1), (0, 2), (1, 2)),), "by_degree": False}
    np.testing.assert_array_equal(listed.one(path("abc")).values, Motifs(("clique-3",)).one(path("abc")).values)


@together(
    "motifs, message",
    [
        ((), "needs one motif or more, such as 'cycle-6'; none is given"),
        (("wheel-5",), "has no motif 'wheel-5'; give cycle-K, path-K, star-K or clique-K with K from 2 to 12"),
        (("cycle-1",), "has no motif 'cycle-1'"),
        (("clique-5",), r"counting 'clique-5' takes an array with n\^4 numbers for n nodes; at most n\^3 is allowed"),
        ((((0, 1), (2, 3)),), r"must connect the vertices 0, 1, \.\.\. with one another, and have no loop"),
        ((((1, 2),),), r"must connect the vertices 0, 1, \.\.\. with one another"),
        ((((0, 0), (0, 1)),), "and have no loop"),
        ((7,), r"option 'motifs\[0\]' of encoding 'motifs' takes text or a list; given is 7"),
    ],
)
def test_what_cannot_be_counted(motifs: Any, message: str) -> None:
    with pytest.raises(EncodingError, match=message):
        Motifs(motifs)


def test_what_takes_too_much_memory() -> None:
    large = path([""] * 800)
    assert len(Motifs(("path-2",)).one(large).values) == 800
    with pytest.raises(
        EncodingError, match="'motifs' takes a matrix with 800 numbers for each pair of nodes, for 800 "
    ):
        Motifs(("clique-4",)).one(large)
