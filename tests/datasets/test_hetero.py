from __future__ import annotations

import numpy as np
import pytest

from structpe.datasets import BENCHMARKS, load
from structpe.datasets.nodes import PUBLISHED
from structpe.errors import ConfigError, ReadError
from structpe.objectives.classification import Binary, Multiclass
from tests.datasets import corpus


def content(**changed):
    """Four nodes on a path, one edge given both ways, and two splits."""
    made = {
        "node_features": np.array([[0.5, 1], [0, 2], [0, 3], [0, 4]], dtype=np.float32),
        "node_labels": np.array([0, 1, 1, 0]),
        "edges": np.array([[0, 1], [1, 0], [2, 1], [2, 3]]),
        "train_masks": np.array([[1, 1, 0, 0], [0, 0, 1, 1]], dtype=bool),
        "val_masks": np.array([[0, 0, 1, 0], [1, 0, 0, 0]], dtype=bool),
        "test_masks": np.array([[0, 0, 0, 1], [0, 1, 0, 0]], dtype=bool),
    }
    return {name: value for name, value in {**made, **changed}.items() if value is not None}


def test_two_classes_are_one_question(tmp_path):
    np.savez(tmp_path / "tolokers.npz", **content())
    data = load("tolokers", tmp_path)
    assert data.targets.tolist() == [[0], [1], [1], [0]]
    assert data.objective == Binary("node", 1, "rocauc")
    (graph,) = data.graphs
    assert graph.edges.tolist() == [[0, 1], [1, 2], [2, 3]]
    assert not graph.directed
    assert graph.features["x"].dtype == np.float32
    assert graph.features["x"].tolist() == [[0.5, 1], [0, 2], [0, 3], [0, 4]]
    assert [[part.tolist() for part in split] for split in data.splits] == [[[0, 1], [2], [3]], [[2, 3], [0], [1]]]
    assert data.note == "2 published splits; seed s has split s"


def test_more_classes_are_scored_by_accuracy(tmp_path):
    np.savez(tmp_path / "actor.npz", **content(node_labels=np.array([0, 2, 1, 0])))
    data = load("actor", tmp_path)
    assert data.targets.tolist() == [0, 2, 1, 0]
    assert data.objective == Multiclass("node", 5, "accuracy")


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_published_graph_is_read_from_its_file(tmp_path, name):
    file = f"{name.replace('-', '_')}.npz"
    np.savez(tmp_path / file, **content())
    data = load(name, tmp_path)
    assert data.name == name
    assert data.objective.metric == ("rocauc" if PUBLISHED[name][0] == 2 else "accuracy")
    assert file in str(BENCHMARKS[name].load.__doc__)


def test_a_file_of_ones_own_has_as_many_classes_as_its_labels(tmp_path):
    np.savez(tmp_path / "mine.npz", **content(node_labels=np.array([0, 2, 1, 0])))
    assert load("npz", tmp_path, file="mine.npz").objective.outputs == 3
    assert load("npz", tmp_path, file="mine.npz", classes=7).objective.outputs == 7
    with pytest.raises(ReadError, match=r"mine.npz: node_labels are from 0 to 2; 0..1 are needed"):
        load("npz", tmp_path, file="mine.npz", classes=2)
    with pytest.raises(ConfigError, match="classes is 1; give 2 or more, or leave it out"):
        load("npz", tmp_path, file="mine.npz", classes=1)
    with pytest.raises(ReadError, match=r"there is no file other\.npz in"):
        load("npz", tmp_path, file="other.npz")
    np.savez(tmp_path / "mine.npz", **content(node_labels=np.array([0, 10**9, 1, 0])))
    with pytest.raises(ReadError, match=r"node_labels are from 0 to 1000000000; 0..3 are needed"):
        load("npz", tmp_path, file="mine.npz")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"node_labels": np.array([0, 2, 1, 0])},
            "minesweeper.npz: node_labels are from 0 to 2; 0..1 are needed; bring b",
        ),
        ({"node_labels": np.array([0, -1, 1, 0])}, "node_labels are from -1 to 1; 0..1 are needed"),
        (
            {"node_labels": np.array([0, 0.5, 1, 0])},
            "node_labels have shape (4,) and dtype float64; an integer for each",
        ),
        (
            {"node_labels": np.zeros((0,), dtype=int)},
            "node_labels have shape (0,) and dtype int64; an integer for each",
        ),
        (
            {"node_features": np.array([[np.nan], [1], [2], [3]])},
            "node_features have dtype float64, or are not all fin",
        ),
        ({"node_features": np.array([["a"]] * 4)}, "node_features have dtype <U1, or are not all finite"),
        ({"edges": np.array([[0, 4]])}, "edges name nodes from 0 to 4; nodes are 0..3"),
        ({"edges": np.array([[-1, 2]])}, "edges name nodes from -1 to 2; nodes are 0..3"),
        ({"edges": np.array([[0.5, 2]])}, "edges have shape (1, 2) and dtype float64; a row (source, target)"),
        ({"val_masks": np.zeros((2, 4), dtype=bool)}, "val_masks has no node in split 0; at least one is needed"),
        (
            {"test_masks": np.array([[1, 0, 0, 1], [0, 1, 0, 0]], dtype=bool)},
            "the masks of split 0 overlap, at node 0 and 0 others; bring back the original",
        ),
        (
            {"val_masks": np.zeros((2, 3), dtype=bool)},
            "val_masks has shape (2, 3) and dtype bool; a row of 4 booleans",
        ),
        ({"test_masks": np.zeros((2, 4))}, "test_masks has shape (2, 4) and dtype float64; a row of 4 booleans"),
        ({"test_masks": np.zeros((1, 4), dtype=bool)}, "the masks are for 2, 2 and 1 splits; give the same number"),
        ({"edges": None}, "there is no array 'edges'; the file has node_features, node_labels"),
        ({"edges": np.array([[0, 1, 2]])}, "edges have shape (1, 3) and dtype int64; a row (source, target) is needed"),
        ({"node_features": np.zeros(4)}, "node_features have shape (4,); a row for each of 4 nodes is needed"),
        (
            {"node_labels": np.array([{}, 1, 0, 1], dtype=object)},
            "not a file of arrays (Object arrays cannot be",
        ),
    ],
)
def test_damage_is_named(tmp_path, changed, message):
    np.savez(tmp_path / "minesweeper.npz", **content(**changed))
    with pytest.raises(ReadError) as caught:
        load("minesweeper", tmp_path)
    assert message in str(caught.value)


# Nodes, edges and features as Platonov et al. (2023) count them; for actor as the authors' files do.
@pytest.mark.parametrize(
    ("name", "nodes", "edges", "features", "parts"),
    [
        ("minesweeper", 10_000, 39_402, 7, (5000, 2500, 2500)),
        pytest.param("tolokers", 11_758, 519_000, 10, (5879, 2939, 2940), marks=pytest.mark.slow),
        ("actor", 7600, 26_659, 932, (3648, 2432, 1520)),
    ],
)
def test_the_published_graphs_have_their_published_sizes(name, nodes, edges, features, parts):
    data = load(name, corpus("hetero"))
    (graph,) = data.graphs
    assert (graph.size, len(graph.edges), graph.features["x"].shape[1]) == (nodes, edges, features)
    assert [tuple(map(len, split)) for split in data.splits] == [parts] * 10
    assert all(len(np.unique(np.concatenate(split))) == nodes for split in data.splits)
