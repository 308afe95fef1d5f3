from __future__ import annotations

import numpy as np
import pytest

from structpe.errors import StructureError
from structpe.structure import Structure, path
from structpe.transforms import renumbered


def test_what_a_node_and_an_edge_have_goes_along_with_them():
    features = {"x": np.array([10, 11, 12]), "edge_x": np.array([5, 6])}
    graph = Structure(("a", "b", "c"), np.array([[0, 1], [1, 2]]), ("ab", "bc"), order=[0, 1, 2], features=features)
    made = renumbered(graph, np.random.default_rng(3))
    assert made.nodes != graph.nodes
    for (source, target), relation, value in zip(made.edges, made.relations, made.features["edge_x"], strict=True):
        assert relation == made.nodes[source] + made.nodes[target]
        assert value == {"ab": 5, "bc": 6}[relation]
    assert [made.features["x"][made.nodes.index(label)] for label in "abc"] == [10, 11, 12]
    assert [made.order[made.nodes.index(label)] for label in "abc"] == [0, 1, 2]


def test_units_are_not_numbered_anew():
    graph = path(["a", "b"]).with_units(["a1", "a2", "b"], [0, 0, 1])
    with pytest.raises(StructureError, match="a graph with units cannot be renumbered; remove its units first"):
        renumbered(graph, np.random.default_rng(0))


def test_some_edges_of_an_undirected_graph_are_turned_round():
    ring = Structure(("",) * 30, np.array([(i, (i + 1) % 30) for i in range(30)]), directed=False)
    made = renumbered(ring, np.random.default_rng(0))
    assert sorted(map(sorted, made.edges.tolist())) != sorted(map(sorted, ring.edges.tolist()))
    assert sorted(made.adjacency().sum(axis=0)) == [2] * 30
    # Had none been turned, each node would be a source once.
    assert len(np.unique(made.edges[:, 0])) < 30
