from __future__ import annotations

import io
import os
import shutil
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from structpe.data.features import Categories, Numbers
from structpe.datasets import load
from structpe.datasets.ogb import _imported
from structpe.datasets.ogb import load as load_file
from structpe.errors import ConfigError, ReadError
from structpe.formats.smiles import molecule
from structpe.objectives.classification import Multiclass, Multilabel
from tests.datasets.ogb_files import own_graphs, saved, table, tables

pytest.importorskip("ogb", reason="ogb is not installed")


@pytest.fixture
def graphs(tmp_path):
    return own_graphs(tmp_path)


def test_graphs_of_your_own(graphs):
    benchmark = load("ogb-graph", graphs)
    assert benchmark.name == "ogbg-mine"
    assert [graph.directed for graph in benchmark.graphs] == [False] * 3
    # A loop was given twice, as anything else; each of the two is its own way back.
    assert benchmark.graphs[0].edges.tolist() == [[0, 1], [1, 2], [2, 2], [2, 2]]
    assert benchmark.graphs[0].features["edge_x"].tolist() == [[0], [1], [2], [2]]
    assert benchmark.graphs[2].edges.shape == (0, 2)
    assert benchmark.graphs[1].nodes == ("0", "1", "2")
    assert benchmark.graphs[1].name == "ogbg-mine:1"
    assert benchmark.nodes == Categories((3, 5))
    assert benchmark.edges == Numbers(1)
    assert benchmark.objective == Multilabel("graph", 2, "rocauc")
    assert np.array_equal(benchmark.targets, [[0, np.nan], [1, 1], [np.nan, 0]], equal_nan=True)
    assert [part.tolist() for part in benchmark.splits[0]] == [[0], [1], [2]]


def test_the_second_time_graphs_come_from_the_processed_file(graphs):
    first = load("ogb-graph", graphs)
    (graphs / "mine" / "raw" / "data.npz").unlink()
    again = load("ogb-graph", graphs)
    assert os.listdir(graphs / "mine" / "processed") == ["data_processed"]
    for one, other in zip(first.graphs, again.graphs, strict=True):
        assert one.edges.tolist() == other.edges.tolist()
        assert one.features["x"].tolist() == other.features["x"].tolist()
    assert type(again.graphs[0].features["x"]) is np.ndarray
    assert np.array_equal(first.targets, again.targets, equal_nan=True)


def test_a_graph_of_your_own(tmp_path):
    graph = {"edge_index": np.array([[0, 1, 2], [1, 2, 0]]), "num_nodes": 4, "node_feat": np.eye(4, 2)}
    folder = saved(tmp_path, "ogbn", [graph], np.array([[2], [0], [1], [2]]), ("multiclass classification", "acc", 3))
    for _ in range(2):
        benchmark = load("ogb-node", folder)
        (graph,) = benchmark.graphs
        assert graph.directed
        assert graph.edges.tolist() == [[0, 1], [1, 2], [2, 0]]
        assert graph.nodes == ("node",) * 4
        assert (benchmark.nodes, benchmark.edges) == (Numbers(2), None)
        assert benchmark.targets.tolist() == [2, 0, 1, 2]
        assert benchmark.objective == Multiclass("node", 3, "accuracy")
        assert [part.tolist() for part in benchmark.splits[0]] == [[0], [1], [2, 3]]


def test_unknown_classes_and_tasks_that_are_not_known(tmp_path):
    graph = {"edge_index": np.zeros((2, 0), dtype=int), "num_nodes": 3}
    labels = np.array([[1.0], [np.nan], [0.0]])
    folder = saved(tmp_path, "ogbn", [graph], labels, ("multiclass classification", "acc", 2))
    assert load("ogb-node", folder).targets.tolist() == [1, -1, 0]
    meta = load_file(folder / "meta_dict.pt")
    for change, message in (
        (
            {"eval metric": "hits@20"},
            "ogbn-mine: there is no metric 'hits@20' of OGB here; known: acc, rocauc, ap, rmse",
        ),
        ({"num tasks": 2}, "ogbn-mine: 2 tasks with classes are not supported; one is"),
        ({"is hetero": "True"}, "the graph has nodes of several types"),
    ):
        torch.save({**meta, **change}, folder / "meta_dict.pt")
        with pytest.raises(ConfigError, match=message):
            load("ogb-node", folder)


def test_ogb_is_left_as_it_was(graphs, capfd):
    modules = [_imported(name) for name in ("ogb.graphproppred.dataset", "ogb.io.read_graph_raw", "ogb.utils.url")]
    before, loading = [dict(vars(module)) for module in modules], torch.load
    capfd.readouterr()
    load("ogb-graph", graphs)
    assert [dict(vars(module)) for module in modules] == before
    assert torch.load is loading
    assert capfd.readouterr() == ("", "")
    assert "check" not in {thread.name.rpartition("(")[2].rstrip(")") for thread in threading.enumerate()}


@pytest.mark.parametrize(
    ("gone", "message"),
    [
        ("meta_dict.pt", "meta_dict.pt: there is no such file; fetch the whole data set"),
        ("mine", "raw/data.npz or raw/graph-label.npz is missing; unpack mine.zip into this folder"),
        ("mine/raw/graph-label.npz", "raw/data.npz or raw/graph-label.npz is missing"),
        ("mine/RELEASE_v1.txt", r"ogb asks: 'Will you update the dataset now\? \(y/N\)'; remove its folder and fetch"),
        ("mine/split", r"OGB's loader cannot read it \(FileNotFoundError: .*train.csv.gz'\); fetch or make it again"),
    ],
)
def test_missing_files_are_named(graphs, gone, message):
    (shutil.rmtree if (graphs / gone).is_dir() else os.remove)(graphs / gone)
    with pytest.raises(ReadError, match=message):
        load("ogb-graph", graphs)


def test_damaged_files_are_named(graphs):
    with pytest.raises(ReadError, match=r"node-label.npz is missing; .* a data set for the prediction of nodes"):
        load("ogb-node", graphs)
    torch.save({"version": 1}, graphs / "meta_dict.pt")
    with pytest.raises(ReadError, match=r"meta_dict.pt: it lacks 'binary'; make it by DatasetSaver.get_meta_dict"):
        load("ogb-graph", graphs)
    torch.save([1], graphs / "meta_dict.pt")
    with pytest.raises(ReadError, match="it is not a dictionary"):
        load("ogb-graph", graphs)


def test_a_processed_file_of_something_else(graphs):
    torch.save({"graphs": [{"num_nodes": 2}], "labels": np.zeros((1, 2))}, graphs / "mine/processed/data_processed")
    with pytest.raises(ReadError, match="ogbg-mine:0: it is not a graph: there is no edge_index of shape"):
        load("ogb-graph", graphs)
    graph = {"num_nodes": 2, "edge_index": np.zeros((2, 0), dtype=int)}
    torch.save({"graphs": [graph], "labels": ["a"]}, graphs / "mine/processed/data_processed")
    with pytest.raises(ReadError, match=r"the labels have shape \(1,\) and dtype <U1; give numbers, \(items, tasks\)"):
        load("ogb-graph", graphs)


# The tables that OGB gives.


TEXTS = ("CC(=O)O", "c1ccccc1", "N#C[C@H](F)Cl", "[Na+].[Cl-]")


def molecules(folder: Path) -> None:
    made = [_imported("ogb.utils.mol").smiles2graph(text) for text in TEXTS]
    tables(
        folder,
        [{"edges": graph["edge_index"].T[::2], "nodes": graph["num_nodes"]} for graph in made],
        "scaffold",
        node__feat=np.concatenate([graph["node_feat"] for graph in made]),
        edge__feat=np.concatenate([graph["edge_feat"][::2] for graph in made]),
        graph__label=[0, 1, 0, 1],
    )


def check_molecules(benchmark: Any) -> None:
    for graph, text in zip(benchmark.graphs, TEXTS, strict=True):
        expected = molecule(text, features="ogb")
        assert graph.nodes == expected.nodes
        assert graph.relations == expected.relations
        assert graph.edges.tolist() == expected.edges.tolist()
        assert not graph.directed
        assert graph.features["x"].tolist() == expected.features["x"].tolist()
        assert graph.features["edge_x"].tolist() == expected.features["edge_x"].tolist()
    assert benchmark.nodes == Categories(tuple(_imported("ogb.utils.features").get_atom_feature_dims()))
    assert benchmark.edges == Categories(tuple(_imported("ogb.utils.features").get_bond_feature_dims()))
    assert benchmark.targets.tolist() == [[0], [1], [0], [1]]


def test_molecules_of_ogb(tmp_path):
    molecules(tmp_path / "ogbg_molhiv")
    check_molecules(load("ogbg-molhiv", tmp_path))
    shutil.rmtree(tmp_path / "ogbg_molhiv" / "raw")
    check_molecules(load("ogbg-molhiv", tmp_path))


def test_what_is_not_there_is_fetched_by_hand_or_by_ogb(tmp_path, monkeypatch):
    by_hand = (
        "fetch http://snap.stanford.edu/ogb/data/graphproppred/csv_mol_download/hiv.zip, unpack it in "
        f"{tmp_path}, and rename the unpacked folder 'hiv' to 'ogbg_molhiv'"
    )
    with pytest.raises(ReadError) as caught:
        load("ogbg-molhiv", tmp_path)
    assert str(caught.value) == f"{tmp_path}/ogbg_molhiv: there is no such folder; give download=True, or {by_hand}"

    def offline(url: str) -> Any:
        raise urllib.error.URLError("no network")

    monkeypatch.setattr(urllib.request, "urlopen", offline)
    with pytest.raises(ReadError) as caught:
        load("ogbg-molhiv", tmp_path, download=True)
    assert "it could not be fetched from http://snap.stanford.edu" in str(caught.value)
    assert str(caught.value).endswith(f"(URLError: <urlopen error no network>); {by_hand}")

    molecules(tmp_path / "server" / "hiv")
    shutil.make_archive(str(tmp_path / "hiv"), "zip", tmp_path / "server")

    class Answer:
        def __init__(self) -> None:
            self.stream = io.BytesIO((tmp_path / "hiv.zip").read_bytes())

        def read(self, size: int) -> bytes:
            return self.stream.read(size)

        def info(self) -> dict[str, int]:
            return {"Content-Length": 2 << 30}  # more than a gigabyte: ogb asks

    target = tmp_path / "data"
    target.mkdir()
    monkeypatch.setattr(urllib.request, "urlopen", lambda url: Answer())
    check_molecules(load("ogbg-molhiv", target, download=True))
    monkeypatch.setattr(urllib.request, "urlopen", offline)
    check_molecules(load("ogbg-molhiv", target, download=True))


def test_another_version_is_no_question(tmp_path):
    molecules(tmp_path / "ogbg_molhiv")
    (tmp_path / "ogbg_molhiv" / "RELEASE_v1.txt").unlink()
    with pytest.raises(
        ReadError, match=r"ogbg_molhiv: this is not version 1 of ogbg-molhiv \(no file RELEASE_v1.txt\)"
    ):
        load("ogbg-molhiv", tmp_path)
    shutil.rmtree(tmp_path / "ogbg_molhiv" / "raw")
    with pytest.raises(ReadError, match=r"it holds neither raw/edge.csv.gz nor raw/data.npz; give download=True"):
        load("ogbg-molhiv", tmp_path)


def test_a_category_out_of_range_is_named(tmp_path):
    molecules(tmp_path / "ogbg_molhiv")
    table(tmp_path / "ogbg_molhiv/raw/node-feat", [[500] * 9] * 17)
    with pytest.raises(
        ConfigError, match="ogbg-molhiv: the node features: column 0 has values from 0 to 500; it has 119"
    ):
        load("ogbg-molhiv", tmp_path)


def test_a_damaged_table_is_named(tmp_path):
    molecules(tmp_path / "ogbg_molhiv")
    (tmp_path / "ogbg_molhiv/raw/edge.csv.gz").write_text("no gzip")
    with pytest.raises(ReadError, match=r"ogbg_molhiv: OGB's loader cannot read it \(BadGzipFile"):
        load("ogbg-molhiv", tmp_path)


def test_ppa(tmp_path):
    tables(
        tmp_path / "ogbg_ppa",
        [{"edges": [[0, 1], [1, 2]], "nodes": 3}, {"edges": [[1, 0]], "nodes": 2}, {"edges": [[0, 1]], "nodes": 2}],
        "species",
        edge__feat=np.linspace(0, 1, 28).reshape(4, 7),
        graph__label=[36, 0, 5],
    )
    benchmark = load("ogbg-ppa", tmp_path)
    assert [graph.edges.tolist() for graph in benchmark.graphs] == [[[0, 1], [1, 2]], [[1, 0]], [[0, 1]]]
    assert not benchmark.graphs[0].directed
    assert (benchmark.nodes, benchmark.edges, benchmark.objective.outputs) == (None, Numbers(7), 37)
    assert benchmark.targets.tolist() == [36, 0, 5]


def test_arxiv(tmp_path):
    tables(
        tmp_path / "ogbn_arxiv",
        [{"edges": [[0, 1], [2, 1]], "nodes": 3}],
        "time",
        node__feat=np.full((3, 4), 0.5),
        node_year=[2017, 2018, 2019],
        node__label=[39, 0, 4],
    )
    benchmark = load("ogbn-arxiv", tmp_path)
    assert benchmark.graphs[0].edges.tolist() == [[0, 1], [2, 1]]
    assert benchmark.graphs[0].directed
    assert benchmark.nodes == Numbers(4)
    assert benchmark.objective.outputs == 40
    assert benchmark.targets.tolist() == [39, 0, 4]


def test_products_are_undirected(tmp_path):
    tables(
        tmp_path / "ogbn_products",
        [{"edges": [[0, 1], [2, 1]], "nodes": 3}],
        "sales_ranking",
        node__feat=np.full((3, 4), 0.5),
        node__label=[46, 0, 4],
    )
    (graph,) = load("ogbn-products", tmp_path).graphs
    assert not graph.directed
    assert graph.edges.tolist() == [[0, 1], [2, 1]]
