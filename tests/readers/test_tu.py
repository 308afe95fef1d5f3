"""Graph sets of TU Dortmund."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from structpe.datasets import load
from structpe.errors import ReadError
from structpe.formats import read
from tests.datasets import corpus

FILES = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n5, 4\n4, 5\n",
    "graph_indicator": "1\n1\n1\n2\n2\n3\n",
    "graph_labels": "-1\n1\n1\n",
    "node_labels": "7\n8\n7\n9\n9\n0\n",
    "edge_labels": "1\n1\n2\n2\n3\n3\n",
    "node_attributes": "0.5, 1\n1, 2\n2, 3\n3, 4\n4, 5\n5, 6\n",
    "graph_attributes": "0.1, 0.2\n0.3, 0.4\n0.5, 0.6\n",
}


def written(folder: Path, **changes: str | None) -> Path:
    for name, text in {**FILES, **changes}.items():
        if text is not None:
            (folder / f"S_{name}.txt").write_text(text)
    return folder / "S_A.txt"


def test_a_set_is_read_with_all_its_files(tmp_path: Path) -> None:
    first, second, third = read(written(tmp_path), "tu")
    assert first.structure.nodes == ("7", "8", "7")
    assert first.structure.edges.tolist() == [[0, 1], [1, 2]]
    assert first.structure.relations == ("1", "2")
    assert not first.structure.directed
    assert first.structure.features["x"].tolist() == [[0.5, 1], [1, 2], [2, 3]]
    assert first.metadata == {"label": -1, "attributes": (0.1, 0.2)}
    assert (second.structure.edges.tolist(), second.structure.relations) == ([[0, 1]], ("3",))
    assert (third.structure.size, len(third.structure.edges), third.id) == (1, 0, "3")


def test_most_files_may_be_missing(tmp_path: Path) -> None:
    without = dict.fromkeys(("graph_labels", "node_labels", "edge_labels", "node_attributes", "graph_attributes"))
    first, *_ = read(written(tmp_path, **without), "tu")
    assert first.structure.nodes == ("", "", "")
    assert first.structure.relations == ()
    assert (first.metadata, dict(first.structure.features)) == ({}, {})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"graph_indicator": None}, "there is no file S_graph_indicator.txt next to it; restore it"),
        (
            {"graph_indicator": "1\n1\n1\n2\n1\n3\n"},
            "the graph indicator must have one number from 1 on per line, nev",
        ),
        ({"graph_indicator": "1\n1\n1\n2\n2\n4\n"}, "a graph has no node"),
        ({"graph_indicator": "0\n1\n1\n2\n2\n3\n"}, "the graph indicator must have"),
        ({"A": "1, 9\n"}, "an edge has a node out of 1..6"),
        ({"A": "0, 1\n"}, "an edge has a node out of 1..6"),
        ({"A": "1, 2\n3, 4\n"}, "the edge of line 2 joins nodes of two graphs"),
        (
            {"edge_labels": "1\n1\n2\n5\n3\n3\n"},
            "lines 3 and 4 are one undirected edge with different labels; correct",
        ),
        (
            {"edge_attributes": "0.1\n0.2\n1\n1\n1\n1\n"},
            "lines 1 and 2 are one undirected edge with different attributes; correct one",
        ),
        ({"A": "1\n"}, "a line has 1 numbers; two are needed"),
        ({"A": "1, 2\n1, 2, 3\n"}, "line 2: S_A.txt has 3 numbers here and 2 before"),
        ({"A": "1, x\n"}, "line 1: '1, x' in S_A.txt has other text than numbers"),
        ({"A": f"1, {9**40}\n"}, "S_A.txt has a number beyond 64 bits"),
        ({"node_labels": "1\n"}, "S_node_labels.txt has 1 lines for 6 nodes; restore the original"),
        ({"edge_labels": "1\n"}, "S_edge_labels.txt has 1 lines for 6 edges"),
        ({"graph_labels": "1\n"}, "S_graph_labels.txt has 1 lines for 3 graphs"),
        ({"graph_indicator": ""}, "an edge has a node out of 1..0"),
    ],
)
def test_what_does_not_fit_is_said(tmp_path: Path, changes: dict[str, str | None], message: str) -> None:
    file = written(tmp_path, **changes)
    with pytest.raises(ReadError, match=re.escape(message)) as caught:
        read(file, "tu")
    assert str(file) in str(caught.value)


def test_an_empty_set_and_another_file_are_refused(tmp_path: Path) -> None:
    empty = dict.fromkeys(FILES, "")
    with pytest.raises(ReadError, match="there is no item in the file"):
        read(written(tmp_path, **empty), "tu")
    with pytest.raises(
        ReadError, match=r"the file is called S_graph_labels.txt; give the one whose name ends in _A.txt"
    ):
        read(tmp_path / "S_graph_labels.txt", "tu")


def test_a_folder_is_not_searched(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=r"reader 'tu' reads single files; give one of this folder"):
        read(written(tmp_path).parent, "tu")


def test_it_is_the_same_set_as_in_the_format_of_gin(tmp_path: Path) -> None:
    graphs = load("tu", corpus("tu/MUTAG"))
    pairs, owners, labels, first = [], [], [], 1
    for number, graph in enumerate(graphs.graphs, 1):
        for a, b in graph.edges.tolist():
            pairs += [(a + first, b + first), (b + first, a + first)]
        owners += [number] * graph.size
        labels += list(graph.nodes)
        first += graph.size
    texts = {
        "A": "".join(f"{a}, {b}\n" for a, b in pairs),
        "graph_indicator": "".join(f"{owner}\n" for owner in owners),
        "graph_labels": "".join(f"{target}\n" for target in graphs.targets),
        "node_labels": "".join(f"{label}\n" for label in labels),
        **dict.fromkeys(("edge_labels", "node_attributes", "graph_attributes")),
    }
    found = read(written(tmp_path, **texts), "tu")
    assert [item.metadata["label"] for item in found] == graphs.targets.tolist()
    for item, graph in zip(found, graphs.graphs, strict=True):
        assert item.structure.nodes == graph.nodes
        np.testing.assert_array_equal(item.structure.edges, graph.edges)


def test_labels_of_a_file_that_is_not_sorted_stay_with_their_edges(tmp_path: Path) -> None:
    files = {
        "A": "2,3\n3,2\n1,2\n2,1\n",
        "graph_indicator": "1\n1\n1\n",
        "edge_labels": "5\n5\n7\n7\n",
        "edge_attributes": "0.5\n0.5\n0.7\n0.7\n",
    }
    without = dict.fromkeys(("graph_labels", "node_labels", "node_attributes", "graph_attributes"))
    structure = read(written(tmp_path, **without, **files), "tu")[0].structure
    found = zip(structure.edges.tolist(), structure.relations, structure.features["edge_x"].tolist(), strict=True)
    assert sorted(found) == [([0, 1], "7", [0.7]), ([1, 2], "5", [0.5])]
