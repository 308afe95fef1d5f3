"""What a library cannot carry is refused, or said to be lost; never dropped in silence, and None never becomes a text.

For all converters: new ones are found by the registry, and must be entered here or keep everything.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import networkx
import numpy as np
import pandas
import pytest
import torch
from torch_geometric.data import Data, HeteroData

from structpe import StructPEError, Structure, as_structure, convert
from structpe.errors import ConversionError, MissingExtra
from structpe.formats import CONVERTERS, import_dgl
from structpe.formats.triples import triples

FIELDS = {
    "labels": ("nodes",),
    "relations": ("relations",),
    "directed": ("directed",),
    "order": ("order",),
    "root": ("root",),
    "units": ("units", "owner"),
    "name": ("name",),
}
MATRIX = {"labels", "relations", "order", "root", "units", "name", "features"}
LOST = {
    "conllu": {"order", "units", "features"},
    "dgl": {"name"},
    "numpy": MATRIX,
    "penman": {"order", "units", "features"},
    "rdflib": {"order", "root", "units", "features", "name"},
    "rdkit": {"order", "root", "units", "features"},
    "scipy": MATRIX,
    "spacy": {"order", "units", "features", "name"},
}
"""What each converter loses, as the docstring of its module must say."""
WAYS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "numpy": ({}, {"kind": "adjacency"}),
    "rdflib": ({"base": "http://example.org/"}, {}),
    "rdkit": ({"neutral": True}, {}),
}
"""Options of both directions."""
TREE = Structure(
    ("N", "C", "O"),
    np.array([[2, 1], [1, 0]]),
    ("single", "double"),
    order=np.array([1, 0, 2]),
    root=2,
    features={"x": np.array([4, 5, 6]), "edge_weight": np.array([2.0, 3.0])},
    name="mine",
)
KINDS = {
    "tree": TREE,
    "undirected": replace(TREE, directed=False),
    "units": TREE.with_units(["N", "C1", "C2", "O"], [0, 1, 1, 2]),
    "undirected with units": replace(TREE, directed=False).with_units(["N", "C1", "C2", "O"], [0, 1, 1, 2]),
}
WRITERS = sorted(name for name, known in CONVERTERS.items() if known.write is not None)


def lost_by(name: str, made: Structure) -> set[str] | None:
    """What does not come back; None if the structure is refused."""
    to, back = WAYS.get(name, ({}, {}))
    try:
        found = as_structure(convert(made, name, **to), **back)
    except StructPEError:
        return None
    lost = {word for word, fields in FIELDS.items() if any(parts(made, f) != parts(found, f) for f in fields)}
    kept = [key for key, value in made.features.items() if np.array_equal(value, found.features.get(key, ()))]
    return lost | ({"features"} if len(kept) < len(made.features) else set()) | edges_lost(made, found)


def parts(structure: Structure, field: str) -> Any:
    """A field, but for what depends on the order of nodes: labels as a set; the root by its label."""
    value = getattr(structure, field)
    if field in ("nodes", "relations"):
        return sorted(text.removeprefix(":") for text in value)  # PENMAN's roles have a colon
    if field == "root":
        return None if value is None else structure.nodes[value]
    return value.tolist() if isinstance(value, np.ndarray) else value


def edges_lost(made: Structure, found: Structure) -> set[str]:
    pairs = [
        sorted(
            tuple(each.nodes[end] for end in (edge if made.directed else sorted(edge))) for edge in each.edges.tolist()
        )
        for each in (made, found)
    ]
    return {"edges"} if pairs[0] != pairs[1] and any(found.nodes) else set()


@pytest.mark.parametrize("name", WRITERS)
def test_a_field_comes_back_or_is_refused_or_said_to_be_lost(name: str) -> None:
    if name == "dgl":
        imported_dgl()
    found = [lost for made in KINDS.values() if (lost := lost_by(name, made)) is not None]
    assert found, "everything is refused"
    assert set().union(*found) == LOST.get(name, set())
    doc = " ".join((sys.modules[CONVERTERS[name].read.__module__].__doc__ or "").split())
    said = " ".join(sentence for sentence in re.split(r"[.:]\s", doc) if "lost" in sentence).lower()
    for word in LOST.get(name, set()):
        assert word in said, f"the module does not say that {word} are lost"


def imported_dgl() -> Any:
    try:
        return import_dgl()
    except MissingExtra:
        pytest.skip("DGL is not released for this Python or machine")


def of_networkx(nodes: dict[str, Any], edges: dict[str, Any]) -> Any:
    graph = networkx.DiGraph([(0, 1), (1, 2)])
    for attributes, own in ((nodes, graph.nodes), (edges, graph.edges)):
        for name, values in attributes.items():
            for key, value in zip(own, values, strict=True):
                if value is not ...:
                    own[key][name] = value
    return graph


def of_node_link(nodes: dict[str, Any], edges: dict[str, Any]) -> Any:
    return networkx.node_link_data(of_networkx(nodes, edges), edges="links")


def of_pyg(nodes: dict[str, Any], edges: dict[str, Any]) -> Any:
    data = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
    for name, values in {**nodes, **{f"edge_{name}": values for name, values in edges.items()}}.items():
        data[name] = tensor_or_list(values)
    return data


def of_hetero(nodes: dict[str, Any], edges: dict[str, Any]) -> Any:
    data = HeteroData()
    data["a"].num_nodes = 3
    data["a", "r", "a"].edge_index = torch.tensor([[0, 1], [1, 2]])
    for name, values in nodes.items():
        data["a"][name] = tensor_or_list(values)
    for name, values in edges.items():
        data["a", "r", "a"][name] = tensor_or_list(values)
    return data


def of_row(nodes: dict[str, Any], edges: dict[str, Any]) -> Any:
    named = {f"edge_{name}": values for name, values in edges.items()}
    return {"edge_index": [[0, 1], [1, 2]], "num_nodes": 3, **nodes, **named}


def of_frame(nodes: dict[str, Any], edges: dict[str, Any]) -> Any:
    return pandas.DataFrame([of_row(nodes, edges)])


def of_dgl(nodes: dict[str, Any], edges: dict[str, Any], hetero: bool = False) -> Any:
    dgl = imported_dgl()
    ends = (torch.tensor([0, 1]), torch.tensor([1, 2]))
    graph = dgl.heterograph({("a", "r", "a"): ends}) if hetero else dgl.graph(ends)
    for name, values in nodes.items():
        graph.ndata[name] = torch.tensor(values)
    for name, values in edges.items():
        graph.edata[name] = torch.tensor(values)
    return graph


def of_typed_dgl(nodes: dict[str, Any], edges: dict[str, Any]) -> Any:
    return of_dgl(nodes, edges, hetero=True)


def tensor_or_list(values: list[Any]) -> Any:
    return values if any(isinstance(value, str) for value in values) else torch.tensor(values)


Made = Callable[[dict[str, Any], dict[str, Any]], Any]
WITH_NUMBERS: tuple[Made, ...] = (
    of_networkx, of_node_link, of_pyg, of_hetero, of_row, of_frame, of_dgl, of_typed_dgl,
)  # fmt: skip
"""Every way to give nodes and edges attributes of one's own."""
WITH_TEXTS = WITH_NUMBERS[:6]


@pytest.mark.parametrize("made", WITH_NUMBERS)
def test_attributes_of_nodes_and_edges_are_kept_apart(made: Made) -> None:
    found = as_structure(made({"age": [1, 2, 3]}, {"age": [4, 5]}))
    assert {name: value.tolist() for name, value in found.features.items()} == {"age": [1, 2, 3], "edge_age": [4, 5]}


@pytest.mark.parametrize("made", WITH_NUMBERS)
def test_a_name_of_edges_is_not_one_of_nodes(made: Made) -> None:
    with pytest.raises(ConversionError) if made not in (of_pyg, of_row, of_frame) else pytest.warns() as caught:
        as_structure(made({"edge_age": [1, 2, 3]}, {}))
    assert "'edge_age'" in str(caught.value if made not in (of_pyg, of_row, of_frame) else caught[0].message)
    assert not as_structure(made({"edge_age": [1, 2, 3]}, {}), features=[]).features


@pytest.mark.parametrize("made", WITH_TEXTS)
def test_words_of_nodes_are_left_out_with_a_word(made: Made) -> None:
    thing = made({"club": ["x", "y", "x"]}, {"kind": ["r", "s"]})
    with pytest.warns(
        UserWarning, match=r"^left out, as features of a structure are numbers with a row per no"
    ) as said:
        assert not as_structure(thing).features
    told = " ".join(str(each.message) for each in said)
    assert "'club'" in told
    assert "kind'" in told
    assert as_structure(thing, features=[]).size == 3


@pytest.mark.parametrize("made", WITH_NUMBERS)
def test_a_misspelt_name_is_an_error(made: Made) -> None:
    with pytest.raises(ConversionError, match=r"^(row 0: )?features names 'agee'; .* age"):
        as_structure(made({"age": [1, 2, 3]}, {}), features=["agee"])
    if made is of_networkx:
        for option in ("label", "relation"):
            with pytest.raises(ConversionError, match=f"^{option} names 'agee', which none of the . has; they have: a"):
                as_structure(made({"age": [1, 2, 3]}, {"age": [1, 2]}), **{option: "agee"})


@pytest.mark.parametrize("missing", [None, float("nan"), np.float64("nan"), pandas.NA, pandas.NaT, ...])
def test_a_missing_value_is_no_text(missing: Any) -> None:
    """None, NaN and NA, as if the attribute were absent."""
    graph = of_networkx({"label": [missing, "b", "c"]}, {"relation": [missing, "s"]})
    graph.graph["name"] = None if missing is ... else missing
    found = as_structure(graph)
    assert (found.nodes, found.relations, found.name) == (("0", "b", "c"), ("", "s"), "")
    for name, at in (("age", "nodes"), ("weight", "edges")):
        values = [missing, 2, 3] if at == "nodes" else [missing, 2]
        graph = of_networkx({name: values}, {}) if at == "nodes" else of_networkx({}, {name: values})
        with pytest.raises(
            ConversionError, match=f"has no '{name}', but others do; give it to all .*, or leave it out"
        ):
            as_structure(graph)
        assert not as_structure(graph, features=[]).features
        alone = of_networkx({name: [missing] * 3}, {})
        assert not as_structure(alone).features


@pytest.mark.parametrize(
    "thing",
    [
        {"edge_index": [[0], [1]], "labels": ["a", None]},
        {"edge_index": [[0], [1]], "num_nodes": 2, "relations": ["r"], "units": ["a", None], "owner": [0, 1]},
        Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2, labels=["a", None]),
        {"nodes": ["a", None]},
        {"nodes": ["a", "b"], "edges": [[0, 1]], "relations": [None]},
        {"nodes": ["a"], "units": [None], "owner": [0]},
        {"nodes": [{"id": None}]},
        {"nodes": [{"id": 0}], "links": [{"source": 0, "target": None}]},
        [("a", None, "b")],
        pandas.DataFrame({"a": ["x", None]}),
    ],
)
def test_a_missing_text_is_an_error(thing: Any) -> None:
    with pytest.raises(StructPEError):
        as_structure(thing)


def test_a_name_that_is_none_is_none() -> None:
    assert as_structure(Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2, name=None)).name == ""
    penman = pytest.importorskip("penman")
    graph = penman.decode("(a / b)")
    graph.metadata["id"] = None
    assert as_structure(graph.__class__(graph.triples, metadata={})).name == ""


def test_two_names_of_one_feature() -> None:
    two = torch.ones(2, 1)
    with pytest.raises(ConversionError, match="'edge_attr' and 'edge_x' are two names for one feature"):
        as_structure(of_pyg({}, {"attr": [1, 2], "x": [3, 4]}))
    data = of_hetero({}, {"age": [1, 2]})
    data["a", "r", "a"].edge_age = two
    with pytest.raises(ConversionError, match="have an attribute with 'edge_' before its name and without; rename one"):
        as_structure(data)


@pytest.mark.parametrize("columns", [("source", "target"), ("Source", "Target", "weight"), ("src", "dst")])
def test_a_table_of_edges_is_not_one_of_columns(columns: tuple[str, ...]) -> None:
    frame = pandas.DataFrame({name: [0, 1, 2] for name in columns})
    with pytest.raises(
        ConversionError, match=r"looks like a list of edges; .*\.from_pandas_edgelist\(frame, '"
    ) as caught:
        as_structure(frame)
    told = re.search(r"networkx\.from_pandas_edgelist\(.*?\)", str(caught.value))
    assert told is not None
    assert as_structure(eval(told[0])).size == 3
    frame.iloc[0, 0] = 5
    assert as_structure(frame, columns=list(columns)).nodes == columns


def test_a_table_of_triples_is_said_how_to_read() -> None:
    facts = [("isle", "partOf", "sea"), ("sea", "partOf", "world")]
    frame = pandas.DataFrame(facts, columns=["head", "relation", "tail"])
    with pytest.raises(ConversionError, match=r"for triples give frame\[") as caught:
        as_structure(frame)
    told = re.search(r"frame\[.*\.tolist\(\)", str(caught.value))
    assert told is not None
    found = as_structure(eval(told[0]))
    assert (found.nodes, found.relations) == (triples(facts).nodes, triples(facts).relations)
