from __future__ import annotations

import numpy as np
import pytest

from structpe.datasets import load
from structpe.errors import ReadError
from tests.datasets import corpus


def content(**changed):
    """100 pairs: a path of three nodes, and an edge beside a node."""
    path, pair = [[0, 1, 1, 2], [1, 0, 2, 1]], [[0, 1], [1, 0]]
    made = {
        "x": np.array([0, 1, 0, 1, 1, 0] * 100, dtype=np.int8),
        "edge_index": np.array(np.concatenate([path, pair] * 100, axis=1), dtype=np.int16),
        "y": np.array([1, 0] * 100, dtype=np.int8),
        "n_nodes": np.full(200, 3, dtype=np.int16),
        "n_edges": np.array([4, 2] * 100, dtype=np.int16),
    }
    return {**made, **changed}


def test_graphs_are_those_of_the_file(tmp_path):
    np.savez(tmp_path / "EXP_GRAPHSAT.npz", **content())
    data = load("exp", tmp_path)
    assert [graph.edges.tolist() for graph in data.graphs[:3]] == [[[0, 1], [1, 2]], [[0, 1]], [[0, 1], [1, 2]]]
    assert [graph.nodes for graph in data.graphs[:2]] == [("0", "1", "0"), ("1", "1", "0")]
    assert data.graphs[1].features["x"].tolist() == [[1], [1], [0]]
    assert data.targets.tolist() == [1, 0] * 100


def test_folds_are_tenths_and_share_out_no_pair(tmp_path):
    np.savez(tmp_path / "EXP_GRAPHSAT.npz", **content())
    splits = load("exp", tmp_path).splits
    assert [tuple(map(len, split)) for split in splits] == [(162, 18, 20)] * 10
    assert splits[0].test.tolist() == list(range(20))
    assert splits[0].valid.tolist() == list(range(20, 38))
    assert splits[9].test.tolist() == list(range(180, 200))
    assert splits[9].valid.tolist() == list(range(162, 180))
    for split in splits:
        assert sorted(np.concatenate(split)) == list(range(200))
        assert all((part[::2] % 2 == 0).all() and (part[1::2] == part[::2] + 1).all() for part in split)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"x": np.zeros(599, dtype=int)},
            "EXP_GRAPHSAT.npz: x has shape (599,) and type int64; integers are needed, one per node",
        ),
        (
            {"x": np.zeros(600)},
            "x has shape (600,) and type float64; integers are needed, one per node, 6",
        ),
        ({"x": np.full(600, 2)}, "x[0] is 2; 0..1 is needed"),
        (
            {"edge_index": np.zeros((2, 5))},
            "edge_index has shape (2, 5) and type float64; (2, 600) integers are needed",
        ),
        ({"edge_index": np.full((2, 600), 3)}, "edge 0 is [3, 3] in graph 0, whose nodes are 0..2"),
        (
            {"edge_index": np.stack([np.zeros(600, int), np.ones(600, int)])},
            "each edge must be listed in both directions and join two nodes",
        ),
        ({"y": np.array([1, 1] * 100)}, "the 200 classes are not those of 10 or more pairs, one graph of each class"),
        ({"y": np.array([1, 2] * 100)}, "y[1] is 2; 0..1 is needed"),
        (
            {"y": np.array([1.0, 0.0] * 100)},
            "y has shape (200,) and type float64; integers are needed, a class for each",
        ),
        (
            {"y": np.array([1, 0] * 99)},
            "n_nodes has shape (200,) and type int16; integers are needed, a number for each of",
        ),
        ({"n_nodes": np.full(200, -3)}, "n_nodes[0] is -3; 1..65535 is needed"),
        ({"n_edges": np.array([3, 3] * 100)}, "each edge must be listed in both directions"),
    ],
)
def test_damage_is_named(tmp_path, changed, message):
    np.savez(tmp_path / "EXP_GRAPHSAT.npz", **content(**changed))
    with pytest.raises(ReadError) as caught:
        load("exp", tmp_path)
    assert message in str(caught.value)


def test_the_published_set_has_its_published_size():
    data = load("exp", corpus("expressivity/exp"))
    assert len(data.graphs) == 1200
    assert np.mean([graph.size for graph in data.graphs]) == pytest.approx(44.4, abs=0.1)
    assert np.bincount(data.targets).tolist() == [600, 600]
    assert [tuple(map(len, split)) for split in data.splits] == [(972, 108, 120)] * 10
    # The two graphs of a pair look alike: as many nodes of each degree.
    degrees = [sorted(np.bincount(graph.edges.reshape(-1)).tolist()) for graph in data.graphs]
    assert degrees[::2] == degrees[1::2]
