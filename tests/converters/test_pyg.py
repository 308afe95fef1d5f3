"""PyTorch Geometric: there and back, and graphs as users have them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.datasets import FakeDataset, FakeHeteroDataset, KarateClub

from structpe import StructPEError, Structure, as_structure, as_structures, convert, path
from tests.same import assert_same
from tests.strategies import structures
from tests.together import together

KINDS = [np.float32, np.float64, np.int64, np.int8, np.uint8, bool]


@st.composite
def featured(draw: st.DrawFn) -> Structure:
    """A structure with features of nodes and edges."""
    structure = draw(structures())
    random = np.random.default_rng(draw(st.integers(0, 99)))
    features = {}
    for name, rows in (("x", structure.size), ("mark", structure.size), ("edge_x", len(structure.edges))):
        if draw(st.booleans()):
            shape = (rows, *draw(st.sampled_from([(), (3,), (0,), (2, 2)])))
            features[name] = random.integers(0, 2, shape).astype(draw(st.sampled_from(KINDS)))
    return replace(structure, features=features)


@given(featured())
def test_there_and_back(structure: Structure) -> None:
    data = convert(structure, "pyg")
    assert_same(structure, as_structure(data))
    assert data.validate()


@given(featured())
def test_there_and_back_by_types(structure: Structure) -> None:
    assert_same(structure, as_structure(convert(structure, "pyg", hetero=True)))


@given(st.lists(st.integers(0, 2), min_size=1, max_size=8), st.data())
def test_types_come_back_where_labels_repeat(kinds: list[int], data: Any) -> None:
    node = st.integers(0, len(kinds) - 1)
    edges = data.draw(st.lists(st.tuples(node, node), max_size=12))
    relations = data.draw(st.lists(st.sampled_from(["cites", "writes"]), min_size=len(edges), max_size=len(edges)))
    x = {"x": np.arange(2 * len(kinds)).reshape(-1, 2), "edge_w": np.arange(len(edges))}
    for directed in (True, False):
        graph = Structure(tuple(f"kind {k}" for k in kinds), edges, tuple(relations), directed, root=0, features=x)
        assert_same(graph, as_structure(convert(graph, "pyg", hetero=True)))


@given(st.lists(featured(), min_size=1, max_size=3))
def test_a_batch_holds_several(graphs: list[Structure]) -> None:
    alike = [Structure(g.nodes, g.edges, directed=g.directed, root=0) for g in graphs]
    batch = Batch.from_data_list([convert(graph, "pyg") for graph in alike])
    for one, other in zip(alike, as_structures(batch), strict=True):
        assert_same(one, other)


def test_a_graph_of_ones_own() -> None:
    index = torch.tensor([[0, 1, 1, 2, 2, 2], [1, 0, 2, 1, 2, 0]])
    data = Data(
        x=torch.ones(3, 4, dtype=torch.bfloat16, requires_grad=True),
        edge_index=index,
        edge_attr=torch.tensor([5, 5, 6, 6, 7, 8]),
        y=torch.zeros(3),
        pos=torch.zeros(3, 2),
        smiles="CC",
    )
    structure = as_structure(data)
    assert structure.directed
    assert structure.nodes == ("", "", "")
    assert set(structure.features) == {"x", "pos", "edge_x"}
    assert structure.features["x"].dtype == np.float32
    assert as_structure(data, features=["y", "edge_attr"]).features.keys() == {"y", "edge_x"}
    data = data.edge_subgraph(torch.arange(6) < 5)
    structure = as_structure(data)
    assert not structure.directed
    assert structure.edges.tolist() == [[0, 1], [1, 2], [2, 2]]
    assert structure.features["edge_x"].tolist() == [5, 6, 7]
    assert as_structure(data, directed=True).edges.shape == (5, 2)


def test_directions_with_other_attributes_are_edges_of_their_own() -> None:
    index = torch.tensor([[0, 1, 0, 1], [1, 0, 1, 0]])
    data = Data(edge_index=index, edge_attr=torch.tensor([1, 2, 2, 1]), num_nodes=2)
    structure = as_structure(data)
    assert structure.edges.tolist() == [[0, 1], [1, 0]]
    assert structure.features["edge_x"].tolist() == [1, 2]
    data.edge_attr = torch.tensor([1, 2, 2, 3])
    assert as_structure(data).directed


def test_data_sets() -> None:
    karate = as_structure(KarateClub()[0])
    assert (karate.size, len(karate.edges), karate.directed) == (34, 78, False)
    dataset = FakeDataset(3, edge_dim=2)
    graphs = as_structures(dataset, directed=True)
    assert [graph.size for graph in graphs] == [data.num_nodes for data in dataset]
    assert graphs[2].name == "FakeDataset:2"
    assert graphs[0].features["edge_x"].shape == (dataset[0].num_edges, 2)
    typed = FakeHeteroDataset(1)[0]
    with pytest.raises(
        StructPEError, match=r"feature 'x' has different shapes in different types \(v0 \(\d+, \d+\), v1 .*'pad'"
    ):
        as_structure(typed)
    whole = as_structure(typed, widths="blocks")
    assert whole.features["x"].shape == (whole.size, sum(typed[kind].x.shape[1] for kind in typed.node_types))
    assert as_structure(typed, widths="pad").features["x"].shape[1] == max(
        typed[k].x.shape[1] for k in typed.node_types
    )
    assert set(whole.nodes) == set(typed.node_types)
    assert len(whole.edges) == typed.num_edges
    assert not as_structure(typed, features=[]).features


def test_blocks_keep_each_type_apart() -> None:
    data = HeteroData()
    data["paper"].x, data["author"].x, data["venue"].num_nodes = torch.ones(2, 2), torch.full((1, 3), 2.0), 1
    data["author", "writes", "paper"].edge_index = torch.tensor([[0, 0], [0, 1]])
    structure = as_structure(data, widths="blocks")
    assert structure.nodes == ("paper", "paper", "author", "venue")
    assert structure.edges.tolist() == [[2, 0], [2, 1]]
    assert structure.relations == ("writes", "writes")
    assert structure.features["x"].tolist() == [[1, 1, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 2, 2, 2], [0, 0, 0, 0, 0]]
    data["author", "writes", "paper"].edge_index = torch.tensor([[0, 1], [0, 1]])
    with pytest.raises(StructPEError, match=r"edge 1 of \('author', 'writes', 'paper'\) names node 1 of 'author', whi"):
        as_structure(data, widths="pad")


@together(
    "given, message",
    [
        ({"x": torch.ones(2, 1)}, r"the Data has no 'edge_index'; give one of shape \(2, edges\), empty for none"),
        ({"edge_index": torch.zeros(3, 2).long(), "num_nodes": 2}, r"has shape \(3, 2\); give \(2, edges\)"),
        ({"edge_index": torch.zeros(2, 3), "num_nodes": 2}, "has dtype float32; it numbers nodes"),
        ({"edge_index": torch.tensor([[0], [5]]), "num_nodes": 2}, r"edge 0 is 0 -> 5, but the 2 nodes are 0\.\.1"),
        (
            {"edge_index": torch.zeros(2, 0).long(), "x": torch.tensor([[0.0], [torch.nan]])},
            "'x' is not finite in r",
        ),
        (
            {"edge_index": torch.zeros(2, 0).long(), "x": torch.eye(2).to_sparse()},
            "'x' is a sparse_coo tensor; convert",
        ),
        ({"edge_index": torch.zeros(2, 0).long(), "num_nodes": 0}, "the graph has no node"),
        ({"edge_index": torch.zeros(2, 0).long(), "x": torch.ones(2), "batch": torch.tensor([0, 1])}, "several graphs"),
    ],
)
def test_what_is_wrong_is_said(given: dict[str, Any], message: str) -> None:
    with pytest.raises(StructPEError, match=message):
        as_structure(Data(**given))


def test_a_batch_of_several_types() -> None:
    graphs = [
        Structure(("a", "b"), [[0, 1]], ("r",), name=f"{i}", root=1, features={"x": np.ones(2)}) for i in range(3)
    ]
    batch = Batch.from_data_list([convert(graph, "pyg", hetero=True) for graph in graphs])
    for one, other in zip(graphs, as_structures(batch), strict=True):
        assert_same(one, other)


def test_attributes_of_ones_own_names() -> None:
    data = Data(
        edge_index=torch.tensor([[0], [1]]), num_nodes=2, labels=torch.tensor([3, 4]), name=None, place=torch.ones(2)
    )
    assert as_structure(data).nodes == ("", "")
    assert set(as_structure(data).features) == {"labels", "place"}
    data = convert(path(["a", "b", "c"]), "pyg")
    data.num_nodes, data.edge_index = 2, data.edge_index[:, :1]
    with pytest.raises(StructPEError, match="'labels' has 3 texts for 2 nodes or edges; some were added or"):
        as_structure(data)
    typed = convert(path(["a", "b", "a"]), "pyg", hetero=True)
    typed["a"].structure_place = torch.tensor([7, 8])
    with pytest.raises(
        StructPEError, match="have been left out or added since structpe made it; delete its attributes"
    ):
        as_structure(typed)


def test_options_that_do_not_fit_are_named() -> None:
    data = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1], [1, 2]]))
    with pytest.raises(StructPEError, match=r"undirected, but edge 0, 0 -> 1, has no counterpart 1 -> 0 with"):
        as_structure(data, directed=False)
    with pytest.raises(StructPEError, match="features names 'z'; attributes of this graph that are tensors: x"):
        as_structure(data, features=["z"])
    with pytest.raises(StructPEError, match=r"'pyg' has no option named 'direct'. Did you mean 'directed'"):
        as_structure(data, direct=False)
    with pytest.raises(StructPEError, match="the feature 'y' means something else in PyG; rename it"):
        convert(Structure(("a",), [], features={"y": np.ones(1)}), "pyg")
    with pytest.raises(StructPEError, match="node 1 has an empty label; types of nodes are labels"):
        convert(path(["a", ""]), "pyg", hetero=True)
    with pytest.raises(StructPEError, match="feature 'x' has dtype float128, which PyTorch lacks"):
        convert(Structure(("a",), [], features={"x": np.ones(1, np.longdouble)}), "pyg")
