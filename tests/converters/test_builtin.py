"""Python's own objects: texts, lists of triples, rows of data sets, syntax trees."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from structpe import StructPEError, Structure, as_structure
from structpe.formats.amr import graph
from structpe.formats.smiles import molecule
from tests.modules import ROOT
from tests.together import together


def alike(one: Structure, other: Structure) -> bool:
    same = ("nodes", "relations", "directed", "root", "units")
    return (
        all(getattr(one, name) == getattr(other, name) for name in same)
        and np.array_equal(one.edges, other.edges)
        and one.features.keys() == other.features.keys()
        and all(np.array_equal(value, other.features[name]) for name, value in one.features.items())
    )


@pytest.mark.parametrize(
    "text", ["(b / bark-01 :ARG0 (d / dog))", "# ::id 3\n# ::snt A dog barks.\n(b / bark-01\n  :ARG0 (d / dog))"]
)
def test_penman_is_recognised(text: str) -> None:
    assert alike(as_structure(text), graph(text))
    assert as_structure(text).nodes == ("bark-01", "dog")


def test_brackets_are_recognised() -> None:
    found = as_structure("(S (NP (PRP It)) (VP (VBZ works)))")
    assert found.nodes == ("S", "NP", "It", "VP", "works")
    assert found.edges.tolist() == [[0, 1], [1, 2], [0, 3], [3, 4]]


def test_smiles_have_features_when_asked() -> None:
    assert alike(as_structure("CCO", kind="smiles"), molecule("CCO"))
    assert alike(as_structure("CCO", kind="smiles", features="ogb"), molecule("CCO", features="ogb"))
    assert as_structure("CCO", kind="smiles", name="ethanol").name == "ethanol"


def test_words_and_graph6() -> None:
    assert as_structure("a path graph", kind="tokens").nodes == ("a", "path", "graph")
    assert as_structure("Bw", kind="graph6").edges.tolist() == [[0, 1], [0, 2], [1, 2]]


@together(
    "thing, options, text",
    [
        ("CCO", {}, "a text does not say what it is; give one of kind='amr', kind='ptb', kind='smiles'"),
        ("CCO", {"kind": "smils"}, "there is no kind of text named 'smils'. Did you mean 'smiles'?"),
        ("a b", {"kind": "tokens", "features": "ogb"}, "options of kind='smiles'; the kind is 'tokens'"),
        ("def :", {"kind": "python"}, "the text is not Python that can be parsed (invalid syntax"),
        ("a\0b", {"kind": "python"}, "the text is not Python that can be parsed"),
        ("(b / bark-01", {}, ""),
        ([1, 2], {}, "triples (subject, relation, object) of texts, but number 0 is int 1"),
        ([("a", "r", "b"), ("a", "r")], {}, "but number 1 is tuple ('a', 'r'); convert several objects one by one"),
        ([], {}, ""),
        ({}, {}, "this one has nothing"),
        ({"a": 1}, {}, "with 'edge_index', or a structure, with 'nodes' and 'edges'; this one has 'a'"),
        ({"edge_index": [[0], [1]]}, {}, "the row has no 'num_nodes', 'node_feat' or 'x' to count nodes"),
        (
            {"edge_index": {"a": 1}, "num_nodes": 2},
            {},
            "'edge_index' of the row is a dict; give a list of sou",
        ),
        (
            {"edge_index": "0 1", "num_nodes": 2},
            {},
            "'edge_index' of the row is a str; give a list of sources",
        ),
        ({"edge_index": [[0], [1]], "num_nodes": "1000000000"}, {}, "num_nodes is '1000000000'; give a whole number"),
        ({"edge_index": [[0], [1]], "num_nodes": 2.0}, {}, "num_nodes is 2.0; give a whole number"),
        ({"edge_index": [[0], [1]], "num_nodes": [2, 3]}, {}, "num_nodes is array([2, 3]); give a whole number"),
        ({"edge_index": [[0], [1]], "num_nodes": 10**10}, {}, "the row has 10,000,000,000 nodes, and 134,217,728 are"),
        ({"edge_index": [[0], [1]], "num_nodes": 2, "root": 1.7}, {}, "root is 1.7; give a whole number, 0 or more"),
        ({"edge_index": [[0], [1]], "num_nodes": 2, "root": "1"}, {}, "root is '1'; give a whole number, 0 or more"),
        ({"edge_index": [[0, 1], [1]], "num_nodes": 2}, {}, "'edge_index' of the row has parts of diff"),
        ({"edge_index": [[0, 5], [1, 0]], "num_nodes": 2}, {}, "edge 1 is 5 -> 0, but the 2 nodes are 0..1"),
        ({"edge_index": [[0, 1]], "num_nodes": 2}, {}, "has shape (1, 2); give (2, edges)"),
        ({"edge_index": [[0.5], [1.0]], "num_nodes": 2}, {}, "it numbers nodes: integers"),
        (
            {"edge_index": [[0], [1]], "x": [[1], [2]], "node_feat": [[1], [2]]},
            {},
            "the row has 'node_feat' and 'x', which are two names for one thing; leave one out",
        ),
        ({"nodes": ["a"], "edgs": []}, {}, "a structure has no option named 'edgs'. Did you mean 'edges'?"),
        ({"nodes": ["a"]}, {"directed": True}, "are keys of a mapping with 'nodes', not options"),
        (np.array([[0, 1], [1, 2]]), {}, "kind='edge_index' for sources and targets of edges"),
        (np.zeros((3, 2), dtype=np.int64), {"kind": "edge_index"}, "has shape (3, 2); give (2, edges)"),
        (np.array([[0, 3], [1, 0]]), {"kind": "edge_index", "size": 2}, "edge 1 is 3 -> 0, but the 2 nodes are 0..1"),
    ],
)
def test_what_cannot_be_converted_is_named(thing: Any, options: dict[str, Any], text: str) -> None:
    with pytest.raises(StructPEError) as error:
        as_structure(thing, **options)
    assert text in str(error.value)


def test_triples_are_a_knowledge_graph() -> None:
    found = as_structure([["Orrin", "partOf", "Isles"], ("Osk", "birthPlace", "Orrin")])
    assert found.nodes == ("Orrin", "Isles", "Osk")
    assert found.edges.tolist() == [[0, 1], [2, 0]]
    assert found.relations == ("partOf", "birthPlace")


@given(
    st.integers(1, 6).flatmap(
        lambda n: st.tuples(
            st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), st.integers(0, 2)), max_size=9)
        )
    ),
    st.sampled_from(["list", "array", "tensor"]),
    st.booleans(),
)
def test_a_row_is_what_pyg_makes_of_it(drawn: tuple[int, list[tuple[int, int, int]]], form: str, both: bool) -> None:
    n, edges = drawn
    edges = [each for u, v, kind in edges for each in ((u, v, kind), (v, u, kind))] if both else edges
    index = np.array([each[:2] for each in edges], dtype=np.int64).reshape(-1, 2).T
    kinds = np.array([each[2:] for each in edges], dtype=np.int64).reshape(-1, 1)
    x = np.arange(2 * n).reshape(n, 2)
    change = {"list": np.ndarray.tolist, "array": np.asarray, "tensor": torch.from_numpy}[form]
    row = {
        "edge_index": change(index),
        "node_feat": change(x),
        "edge_attr": change(kinds),
        "num_nodes": n,
        "y": [[1.0]],
    }
    if form == "list" and not edges:
        row["edge_attr"] = None  # a list cannot say that its rows would have one number
        kinds = None
    data = Data(x=torch.from_numpy(x), edge_index=torch.from_numpy(index), num_nodes=n)
    if kinds is not None:
        data.edge_attr = torch.from_numpy(kinds)
    assert alike(as_structure(row), as_structure(data))


def test_a_row_has_labels_and_a_name() -> None:
    row = {"edge_index": [[0], [1]], "labels": ["a", "b"], "relations": ["r"], "name": "first"}
    found = as_structure(row)
    assert (found.nodes, found.relations, found.name, found.directed) == (("a", "b"), ("r",), "first", True)
    assert as_structure(row, name="other").name == "other"


def test_a_target_is_a_feature_on_demand() -> None:
    row = {"edge_index": [[0], [1]], "x": [[1.0], [2.0]], "y": [0, 1]}
    assert list(as_structure(row).features) == ["x"]
    assert as_structure(row, features=["y"]).features["y"].tolist() == [0, 1]


def test_fields_of_a_structure() -> None:
    row = {
        "nodes": ["a", "b"],
        "edges": [[0, 1]],
        "relations": ["r"],
        "directed": False,
        "order": [1, 0],
        "root": 1,
        "features": {"x": [[1], [2]]},
    }
    found = as_structure(row)
    assert (found.nodes, found.relations, found.directed, found.root) == (("a", "b"), ("r",), False, 1)
    assert found.order is not None
    assert found.order.tolist() == [1, 0]
    assert found.features["x"].tolist() == [[1], [2]]
    assert as_structure({"nodes": ["alone"]}).edges.shape == (0, 2)


def test_an_edge_index_is_an_array_of_its_kind() -> None:
    index = np.array([[0, 1, 1, 2], [1, 0, 2, 1]])
    for given_index in (index, torch.from_numpy(index)):
        found = as_structure(given_index, kind="edge_index", size=5)
        assert (found.size, found.directed, found.edges.tolist()) == (5, False, [[0, 1], [1, 2]])
    assert as_structure(index, kind="edge_index", directed=True).edges.tolist() == index.T.tolist()
    assert as_structure(np.zeros((2, 0), dtype=np.int64), kind="edge_index", size=1).size == 1


def test_source_code_is_a_tree() -> None:
    found = as_structure("f(x)\n", kind="python")
    assert found.nodes == ("Module", "Expr", "Call", "Name", "f", "Name", "x")
    assert found.edges.tolist() == [[0, 1], [1, 2], [2, 3], [3, 4], [2, 5], [5, 6]]
    assert found.relations == ("body", "value", "func", "id", "args", "id")
    assert alike(found, as_structure(ast.parse("f(x)\n")))
    assert "Load" in as_structure(ast.parse("f(x)"), context=True).nodes
    assert as_structure("None", kind="python").nodes[-2:] == ("Constant", "None")
    assert as_structure('x = ""', kind="python").nodes[-1] == "''"


@pytest.mark.parametrize("file", ["structpe/structure.py", "structpe/registry.py", "tests/modules.py"])
def test_every_node_of_real_code_is_there(file: str) -> None:
    """Against ``ast.walk``, which goes through the tree in another order."""
    tree = ast.parse(Path(ROOT / file).read_text(encoding="utf-8"))
    found = as_structure(tree)
    classes = {type(node).__name__ for node in ast.walk(tree)} - {"Load", "Store", "Del"}
    for name in classes:
        count = sum(type(node).__name__ == name for node in ast.walk(tree))
        assert found.nodes.count(name) >= count  # an identifier may have the name of a class
    assert len(found.edges) == found.size - 1
    assert (found.edges[:, 0] < found.edges[:, 1]).all()


def test_code_may_be_deep() -> None:
    assert as_structure("x = " + "-" * 80 + "1", kind="python").nodes.count("UnaryOp") == 80
