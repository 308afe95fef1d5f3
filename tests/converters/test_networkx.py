"""networkx: there and back, and graphs as users have them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given

from structpe import StructPEError, Structure, as_structure, convert, path
from structpe.formats import read
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
    with pytest.raises(StructPEError, match=r"^node 1 has no 'order', but others do; give it to all nodes, or to"):
        as_structure(graph)
    with pytest.raises(StructPEError, match="the feature 'edge_relation' means something else as an attribute of n"):
        convert(Structure(("a",), [], features={"edge_relation": np.ones(0)}), "networkx")
    with pytest.raises(StructPEError, match="the graph has no node"):
        as_structure(networkx.Graph())


@given(structures())
def test_the_node_link_form_comes_back(structure: Structure) -> None:
    """As networkx writes it, as JSON, and with D3's name of the edges."""
    graph = convert(structure, "networkx")
    for edges in ("edges", "links"):
        data = json.loads(json.dumps(networkx.node_link_data(graph, edges=edges)))
        assert_same(as_structure(data), as_structure(graph))


def test_a_graph_of_d3() -> None:
    nodes = [{"id": "Myriel", "group": 1}, {"id": "Napoleon", "group": 1}, {"id": ["a", 1], "group": 2}]
    links: list[Any] = [{"source": "Napoleon", "target": "Myriel", "value": 1}]
    found = as_structure({"nodes": nodes, "links": links})
    assert (found.nodes, sorted(found.edges[0])) == (("Myriel", "Napoleon", "('a', 1)"), [0, 1])
    assert {name: value.tolist() for name, value in found.features.items()} == {"group": [1, 1, 2], "edge_value": [1]}
    assert as_structure({"nodes": nodes, "links": links}, name="mine", features=["group"]).name == "mine"
    for wrong, message in [
        (
            {"nodes": [{"id": 0}, {"name": "b"}]},
            "a node or edge in node-link form has no 'id': {'name': 'b'}; give it one",
        ),
        ({"nodes": [{"id": 0}, "b"]}, "a node or edge in node-link form has no 'id': 'b'"),
        ({"nodes": [{"id": 0}, {"id": 0}]}, "two nodes have the id 0; ids of nodes differ"),
        ({"nodes": nodes, "links": [{"source": "Myriel"}]}, "in node-link form has no 'target'"),
        ({"nodes": nodes, "links": [{"source": "Myriel", "target": 2}]}, "an edge names 2, but no node has this id"),
        ({"nodes": [{"id": {"a": 1}}]}, "the id {'a': 1} is not a text or number"),
        ({"nodes": [{"id": [[1]]}]}, r"the id ([1],) is not a text or number"),
        ({"nodes": nodes, "links": 3}, "'links' is 3; give the list of edges"),
    ]:
        with pytest.raises(StructPEError) as caught:
            as_structure(wrong)
        assert message in str(caught.value)
    with pytest.raises(StructPEError, match="'directed' is a key of a graph in node-link form, and not an option"):
        as_structure({"nodes": nodes}, directed=True)


def test_files_that_networkx_reads(tmp_path: Path) -> None:
    graph = networkx.DiGraph([("a", "b")])
    graph.add_edge("b", "c", weight=2)
    graph["a"]["b"]["weight"] = 1
    networkx.write_gml(graph, tmp_path / "a.gml")
    with pytest.raises(StructPEError, match=r"no reader claims '.gml' files, but networkx reads them; in Python, give"):
        read(tmp_path / "a.gml")
    networkx.write_graphml(graph, tmp_path / "a.graphml")
    assert_same(as_structure(networkx.read_graphml(tmp_path / "a.graphml")), as_structure(graph))
    assert_same(read(tmp_path / "a.graphml")[0].structure, as_structure(graph), ("name",))
    networkx.write_graphml(networkx.empty_graph(2), tmp_path / "b.graphml")
    assert as_structure(networkx.read_graphml(tmp_path / "b.graphml")).size == 2


def test_units_that_are_no_list_are_named() -> None:
    graph = networkx.path_graph(2)
    networkx.set_node_attributes(graph, "ab", "units")
    with pytest.raises(
        StructPEError, match="'units' of a node is 'ab'; give the list of its units, or rename the attri"
    ):
        as_structure(graph)
