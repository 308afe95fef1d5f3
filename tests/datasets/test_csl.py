from __future__ import annotations

import networkx
import numpy as np
import pytest

from structpe.datasets import load
from structpe.errors import ReadError
from tests.datasets import corpus

# Five folds of 150 graphs: each tests two of every ten numbers in a row, validates by the next two.
LINES = {
    part: "\n".join(",".join(str(i) for i in range(150) if (i - 2 * fold) % 10 in places) for fold in range(5))
    for part, places in {"test": {0, 1}, "val": {2, 3}, "train": {4, 5, 6, 7, 8, 9}}.items()
}


@pytest.fixture
def folder(tmp_path):
    for part, text in LINES.items():
        (tmp_path / f"CSL_{part}.index").write_text(text)
    return tmp_path


def as_networkx(structure):
    graph = networkx.Graph(structure.edges.tolist())
    graph.add_nodes_from(range(structure.size))
    return graph


def test_graphs_of_a_class_are_one_graph_and_classes_differ(folder):
    data = load("csl", folder)
    assert len(data.graphs) == 150
    assert data.targets.tolist() == [c for c in range(10) for _ in range(15)]
    assert data.objective.outputs == 10
    graphs = [as_networkx(graph) for graph in data.graphs]
    assert {(len(graph), graph.number_of_edges()) for graph in graphs} == {(41, 82)}
    assert {degree for graph in graphs for _, degree in graph.degree} == {4}
    assert all(networkx.is_isomorphic(graphs[15 * c], graphs[15 * c + 14]) for c in range(10))
    # Graphs of different spectra are different graphs.
    spectra = [np.linalg.eigvalsh(graph.adjacency()).round(6) for graph in data.graphs]
    assert len({tuple(spectrum + 0.0) for spectrum in spectra}) == 10


def test_copies_are_numbered_otherwise_and_alike_in_every_run(folder):
    one, two = load("csl", folder), load("csl", folder)
    assert all((a.edges == b.edges).all() for a, b in zip(one.graphs, two.graphs, strict=True))
    assert not networkx.utils.graphs_equal(as_networkx(one.graphs[0]), as_networkx(one.graphs[1]))


def test_loops_are_there_when_they_are_asked_for(folder):
    data = load("csl", folder, loops=True)
    assert [len(graph.edges) for graph in data.graphs] == [123] * 150
    # What the published files hold: 4 x 41 edges one way each, and a loop at every node.
    assert (data.graphs[7].adjacency() > 0).sum() == 205
    assert "with self-loops" in data.note


def test_folds_are_those_of_the_files(folder):
    data = load("csl", folder)
    assert [tuple(map(len, split)) for split in data.splits] == [(90, 30, 30)] * 5
    assert data.splits[1].test[:4].tolist() == [2, 3, 12, 13]
    assert data.splits[1].valid[:4].tolist() == [4, 5, 14, 15]


@pytest.mark.parametrize(
    ("part", "text", "message"),
    [
        (
            "val",
            "1,2\n3,x",
            "CSL_val.index: line 2: 'x' is given; numbers of graphs from 0..149, each",
        ),
        ("val", "1,2\n\n", "CSL_val.index: line 2: '' is given; numbers of graphs from 0..149, each"),
        ("val", "1,2", "CSL_val.index: there are 1 folds, but 5 in CSL_train.index"),
        ("test", LINES["val"], "fold 1 does not name each of the graphs 0..149 once"),
        ("train", None, "there is no file CSL_train.index in"),
    ],
)
def test_damaged_folds_are_named(folder, part, text, message):
    file = folder / f"CSL_{part}.index"
    file.unlink() if text is None else file.write_text(text)
    with pytest.raises(ReadError) as caught:
        load("csl", folder)
    assert message in str(caught.value)


def test_the_published_folds_have_each_class_alike():
    data = load("csl", corpus("expressivity/csl"))
    assert len(data.splits) == 5
    for split in data.splits:
        assert [np.bincount(data.targets[part]).tolist() for part in split] == [[9] * 10, [3] * 10, [3] * 10]
