from __future__ import annotations

import networkx
import numpy as np
import pytest

from structpe.datasets.expressivity import KINDS, brec_pairs
from structpe.errors import ReadError
from tests.datasets import corpus


def texts(count):
    graphs = [networkx.gnp_random_graph(6, 0.5, seed=seed) for seed in range(count)]
    return [networkx.to_graph6_bytes(graph, header=False).decode().strip() for graph in graphs]


def test_neighbouring_graphs_are_a_pair_however_they_are_stored(tmp_path):
    flat = texts(40)
    np.save(tmp_path / "4vtx.npy", np.array(flat))
    np.save(tmp_path / "dr.npy", np.array(flat, dtype="S").reshape(20, 2))
    pairs = brec_pairs(tmp_path, "4vtx", "dr")
    assert [pair.kind for pair in pairs] == ["4vtx"] * 20 + ["dr"] * 20
    for seed in (0, 7):
        pair = pairs[seed]
        assert pair.first.edges.tolist() == sorted(map(list, networkx.gnp_random_graph(6, 0.5, seed=2 * seed).edges))
        assert pair.second.edges.tolist() == pairs[20 + seed].second.edges.tolist()
        assert pair.second.name == f"4vtx {2 * seed + 1}"


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.array(texts(38)), "dr.npy: an array of 40 texts is needed, this one is of 38 <U4; bring back the original"),
        (np.zeros(40), "dr.npy: an array of 40 texts is needed, this one is of 40 float64"),
        (
            np.array([*texts(39), "DQcc"]),
            "dr.npy: 'DQcc' is not the text of a graph in graph6; restore",
        ),
        (np.array([{}] * 40), "dr.npy: not a file of arrays (Object arrays cannot be loaded"),
        (None, "there is no file dr.npy in"),
    ],
)
def test_damage_is_named(tmp_path, array, message):
    if array is not None:
        np.save(tmp_path / "dr.npy", array)
    with pytest.raises(ReadError) as caught:
        brec_pairs(tmp_path, "dr")
    assert message in str(caught.value)


def test_an_unknown_kind_is_refused(tmp_path):
    with pytest.raises(ReadError, match="BREC has no pairs of kind 'easy'; known: basic, regular, str, extension"):
        brec_pairs(tmp_path, "easy")


def test_the_published_pairs_are_there():
    pairs = brec_pairs(corpus("expressivity/brec"))
    assert len(pairs) == 400
    assert {kind: sum(pair.kind == kind for pair in pairs) for kind in KINDS} == KINDS
    assert all(pair.first.size == pair.second.size for pair in pairs)
    assert max(pair.first.size for pair in pairs) == 198
    # Graphs of a pair look alike: as many nodes of each degree.
    for pair in pairs:
        first, second = (sorted(np.bincount(graph.edges.reshape(-1)).tolist()) for graph in pair[1:])
        assert first == second
