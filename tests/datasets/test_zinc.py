from __future__ import annotations

import numpy as np
import pytest

from structpe.datasets import load
from structpe.errors import ReadError
from tests.datasets import corpus
from tests.tasks.prediction.tiny import molecules


@pytest.fixture
def folder(tmp_path):
    return molecules(tmp_path)


def test_molecules_are_what_the_arrays_say(folder):
    with np.load(folder / "zinc12k_val.npz") as content:
        sizes, edges, targets = content["n_nodes"], content["n_edges"], content["y"]
    data = load("zinc-stand-in", folder)
    valid = data.splits[0].valid
    assert [data.graphs[i].size for i in valid] == sizes.tolist()
    assert [2 * len(data.graphs[i].edges) for i in valid] == edges.tolist()
    assert data.targets[valid].reshape(-1).tolist() == targets.tolist()


def put(name, place, value):
    def change(arrays):
        arrays[name][place] = value

    return change


def cut(name):
    def change(arrays):
        arrays[name] = arrays[name][..., :-1]

    return change


def one_way(arrays):
    arrays["edge_index"][:, 0] = arrays["edge_index"][::-1, 0]


def another_type(arrays):
    arrays["edge_attr"][0] = arrays["edge_attr"][0] % 3 + 1


def of_floats(arrays):
    arrays["x"] = arrays["x"] + 0.5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("n_nodes", 0, 2), "x has shape ("),
        (put("n_nodes", 3, -1), "n_nodes[3] is -1; 1..65535 is needed"),
        (put("n_edges", 3, 1 << 40), "n_edges[3] is 1099511627776; 0..65535 is needed"),
        (put("edge_index", (0, 0), 99), "bond 0 is [99, 1] in molecule 0, whose atoms are 0.."),
        (put("edge_index", (1, 1), -1), "bond 1 is [1, -1] in molecule 0, whose atoms are 0.."),
        (put("x", 5, 28), "x[5] is 28; 0..27 is needed"),
        (put("edge_attr", 2, 0), "edge_attr[2] is 0; 1..3 is needed"),
        (put("y", 1, np.nan), "y[1] is nan; a finite number is needed"),
        (cut("edge_attr"), "edge_attr has shape ("),
        (cut("edge_index"), "edge_index has shape (2, "),
        (
            cut("n_edges"),
            "n_edges has shape (11,) and type int64; integers are needed, a number for",
        ),
        (of_floats, "type float64; integers are needed, one per node, "),
        (one_way, "each bond must be listed in both directions with the same type and join two atoms"),
        (another_type, "each bond must be listed in both directions with the same type and join two atoms"),
    ],
)
def test_arrays_that_do_not_fit_together_are_refused(folder, change, message):
    file = folder / "zinc12k_val.npz"
    with np.load(file) as content:
        arrays = dict(content)
    change(arrays)
    np.savez(file, **arrays)
    with pytest.raises(ReadError) as caught:
        load("zinc-stand-in", folder)
    assert "zinc12k_val.npz: " in str(caught.value)
    assert message in str(caught.value)
    assert str(caught.value).endswith("; bring back the original")


@pytest.mark.slow
def test_the_published_molecules_fit_together():
    data = load("zinc-stand-in", corpus("zinc12k"), train=10)
    assert [len(part) for part in data.splits[0]] == [10, 1000, 1000]
