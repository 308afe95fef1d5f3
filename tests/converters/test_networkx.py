"""networkx: there and back, and graphs as users have them."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from hypothesis import given

from structpe import StructPEError, Structure, as_structure, convert, path
from tests.same import assert_same
from tests.strategies import structures


@given(structures())
def test_there_and_back(structure: Structure) -> None:
    back = as_structure(convert(structure, "networkx"))
    if structure.directed:
        assert_same(structure, back)
    else:
        assert_same(structure, back, without=("edges",))
        np.testing.assert_array_equal(np.sort(structure.edges), np.sort(back.edges))


def test_features_come_back() -> None:
    x, weight = np.arange(6, dtype=np.float32).reshape(3, 2), np.array([True, False])
    graph = Structure(("a", "b", "c"), [[0, 1], [2, 1]], features={"x": x, "edge_weight": weight})
    assert_same(graph, as_structure(convert(graph, "networkx")))
    alone = Structure(("a",), [], features={"edge_x": np.zeros((0, 3))})
    assert_same(alone, as_structure(convert(alone, "networkx")))


def test_a_graph_of_ones_own() -> None:
    graph = networkx.karate_club_graph()
    with pytest.warns(UserWarning, match=r"^left out, .*: 'club'; label= or relation= makes labels of t"):
        structure = as_structure(graph)
    assert (structure.size, len(structure.edges), structure.directed) == (34, 78, False)
    assert structure.nodes[:2] == ("0", "1")
    assert set(structure.features) == {"edge_weight"}
    assert as_structure(graph, label="club").nodes[33] == "Officer"
    assert set(as_structure(graph, features=["weight"]).features) == {"edge_weight"}
    assert set(as_structure(graph, features=[]).features) == set()
    tree = networkx.DiGraph([("eats", "cat"), ("eats", "fish")], root="eats")
    networkx.set_edge_attributes(tree, {("eats", "cat"): "nsubj"}, "relation")
    assert as_structure(tree).relations == ("nsubj", "")
    assert as_structure(tree).root == 0


def test_what_is_wrong_is_said() -> None:
    graph = convert(path(["a", "b"]), "networkx")
    del graph.nodes[1]["order"]
    with pytest.raises(StructPEError, match=r"^node 1 has no 'order', but others have; give it to all nodes, or to"):
        as_structure(graph)
    with pytest.raises(StructPEError, match="the feature 'edge_relation' means something else as an attribute of n"):
        convert(Structure(("a",), [], features={"edge_relation": np.ones(0)}), "networkx")
    with pytest.raises(StructPEError, match="the graph has no node"):
        as_structure(networkx.Graph())
