from __future__ import annotations

import numpy as np
import pytest

from structpe.benchmarks import load
from structpe.errors import ReadError
from tests.corpora import corpus


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
        ({"x": np.zeros(599)}, "EXP_GRAPHSAT.npz: there are 599 nodes, but the graphs have 600 in all; bring back"),
        ({"edge_index": np.zeros((2, 5))}, "there are 5 edges, but the graphs have 600 in all"),
        ({"y": np.array([1, 1] * 100)}, "the 200 classes are not those of 10 or more pairs, one graph of each class"),
        ({"y": np.array([1, 0] * 99)}, "198 classes, 200 numbers of nodes and 200 numbers of edges do not fit"),
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
