from __future__ import annotations

import pickle
import struct
from collections import defaultdict

import numpy as np
import pytest
from scipy import sparse

from structpe.datasets import load
from structpe.errors import ConfigError, ReadError
from tests.datasets import corpus


class Python2Pickler(pickle._Pickler):
    """Writes texts of bytes as Python 2 did."""

    def text(self, value):
        self.write(b"T" + struct.pack("<i", len(value)) + value)

    dispatch = {**pickle._Pickler.dispatch, bytes: text}  # noqa: RUF012


def dump(file, value):
    """As Python 2, and NumPy and SciPy of its time, would have written it."""
    with file.open("wb") as stream:
        Python2Pickler(stream, protocol=2).dump(value)
    content = file.read_bytes()
    for new, old in (
        (b"numpy._core.multiarray", b"numpy.core.multiarray"),
        (b"scipy.sparse._csr", b"scipy.sparse.csr"),
    ):
        content = content.replace(b"c" + new + b"\n", b"c" + old + b"\n")
    file.write_bytes(content)


def one_hot(*classes):
    return np.eye(3, dtype=np.int32)[list(classes)]


def written(folder, subjects):
    """Papers of these subjects, the last three of them tested, with neither words nor citations."""
    none = sparse.csr_matrix(np.zeros((len(subjects) - 3, 4), dtype=np.float32))
    content = {
        "allx": none,
        "tx": none[:3],
        "ally": one_hot(*subjects[:-3]),
        "ty": one_hot(*subjects[-3:]),
        "y": one_hot(*subjects[:3]),
        "graph": defaultdict(list, {i: [] for i in range(len(subjects))}),
    }
    for part, value in content.items():
        dump(folder / f"ind.cora.{part}", value)
    tested = range(len(subjects) - 3, len(subjects))
    (folder / "ind.cora.test.index").write_text("".join(f"{i}\n" for i in tested))
    return folder


@pytest.fixture
def folder(tmp_path):
    """503 papers to train and select by, then 503..506 of which 505 is known by nothing but its citations."""
    words = np.zeros((503, 4), dtype=np.float32)
    words[0], words[1] = [1, 0, 1, 0], [0, 1, 0, 0]
    content = {
        "allx": sparse.csr_matrix(words),
        "tx": sparse.csr_matrix(np.array([[0, 0, 0, 1], [1, 1, 1, 1], [0, 2, 0, 0]], dtype=np.float32)),
        "ally": one_hot(2, 1, *[0] * 501),
        "ty": one_hot(0, 1, 2),
        "y": one_hot(2, 1, 0),
        "graph": defaultdict(list, {i: [] for i in range(507)} | {0: [1, 1, 506], 1: [0], 2: [2], 505: [0], 506: [0]}),
    }
    for part, value in content.items():
        dump(tmp_path / f"ind.cora.{part}", value)
    (tmp_path / "ind.cora.test.index").write_text("506\n503\n504\n")
    return tmp_path


def test_tested_papers_stand_where_their_numbers_say(folder):
    data = load("cora", folder, normalise=False)
    (graph,) = data.graphs
    x = graph.features["x"]
    assert (x.shape, x.dtype) == ((507, 4), np.float32)
    assert x[[0, 1, 503, 504, 505, 506]].tolist() == [
        [1, 0, 1, 0],
        [0, 1, 0, 0],
        [1, 1, 1, 1],
        [0, 2, 0, 0],
        [0, 0, 0, 0],
        [0, 0, 0, 1],
    ]
    assert data.targets[[0, 1, 2, 503, 504, 505, 506]].tolist() == [2, 1, 0, 1, 2, -1, 0]
    assert graph.edges.tolist() == [[0, 1], [0, 505], [0, 506]]
    train, valid, test = data.splits[0]
    assert (train.tolist(), (valid[0], valid[-1], len(valid)), test.tolist()) == (
        [0, 1, 2],
        (3, 502, 500),
        [503, 504, 506],
    )


def test_features_are_divided_by_their_sum(folder):
    x = load("cora", folder).graphs[0].features["x"]
    assert x[[0, 503, 504, 505]].tolist() == [[0.5, 0, 0.5, 0], [0.25] * 4, [0, 1, 0, 0], [0] * 4]


def test_a_drawn_split_takes_twenty_of_each_subject_then_others(tmp_path):
    folder = written(tmp_path, subjects=[0] * 700 + [1] * 600 + [2] * 400)
    data = load("cora", folder, drawn=123)
    train, valid, test = data.splits[0]
    assert (len(train), len(valid), len(test)) == (60, 500, 1000)
    assert len({*train.tolist(), *valid.tolist(), *test.tolist()}) == 1560, "no paper twice"
    assert np.bincount(data.targets[train]).tolist() == [20, 20, 20]
    assert (data.targets >= 0)[np.concatenate([valid, test])].all()
    assert data.note.startswith("split drawn with 123")
    assert load("cora", folder, drawn=123).splits[0].test.tolist() == test.tolist()
    assert load("cora", folder, drawn=124).splits[0].test.tolist() != test.tolist()


def test_a_drawn_split_needs_enough_papers(folder):
    with pytest.raises(ConfigError, match=r"takes 20 papers of each .*, then 500 and 1000; there are 502, 2, 2 of"):
        load("cora", folder, drawn=0)


class Command:
    def __reduce__(self):
        import os

        return os.system, ("true",)


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("graph", Command(), "ind.cora.graph: the file names posix.system, which no data needs; do not use it"),
        ("allx", sparse.coo_matrix(np.eye(2)), "the file names scipy.sparse._coo.coo_matrix, which no data"),
        ("allx", np.eye(2), "ind.cora.allx: a sparse matrix was expected, the file holds: array; bring"),
        ("ally", {0: [1]}, "ind.cora.ally: an array was expected, the file holds: dict; bring"),
        ("graph", {0: [0.5]}, "ind.cora.graph: lists of whole numbers were expected, the file holds: dict; bring"),
        ("graph", {0: [1], 2: []}, "ind.cora.graph: 2 papers are not numbered 0..1"),
        ("graph", {0: [-1], 1: []}, "ind.cora.graph: 2 papers are not numbered 0..1"),
        ("ty", one_hot(0, 1), "ind.cora.ty: rows of shape (2, 3) after (503, 3) do not fit 3 tested papers from"),
        ("ally", np.array([None]), "ind.cora.ally: the file holds values of dtype 'O8', numbers are needed; do"),
    ],
)
def test_what_does_not_belong_into_a_file_is_refused(folder, part, value, message):
    dump(folder / f"ind.cora.{part}", value)
    with pytest.raises(ReadError) as caught:
        load("cora", folder)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("pickled", "message"),
    [
        (b"cnumpy\nndarray\n(K\x01\x85X\x01\x00\x00\x00OC\x08" + b"\x11" * 8 + b"tR.", "the array of the file has no"),
        (
            b"cnumpy\nndarray\nK\x01\x85\x81(K\x01K\x02\x85K\x01K\x00C\x00tb.",
            "an array of something other than numbers; do not",
        ),
        (
            b"cnumpy.core.multiarray\n_reconstruct\n)\x81(K\x01K\x01\x85cnumpy\ndtype\nC\x02U1\x85RK\x00C\x00tb.",
            "b'U1'",
        ),
    ],
)
def test_what_stands_for_arrays_makes_no_others(folder, pickled, message):
    (folder / "ind.cora.ally").write_bytes(pickle.PROTO + b"\x03" + pickled)
    with pytest.raises(ReadError) as caught:
        load("cora", folder)
    assert message in str(caught.value)


def test_indices_that_lead_out_of_a_matrix_are_refused(folder):
    content = (folder / "ind.cora.tx").read_bytes()
    # The columns of the six numbers: 3, 0 to 3, and 1.
    columns = struct.pack("<6i", 3, 0, 1, 2, 3, 1)
    assert content.count(columns) == 1
    (folder / "ind.cora.tx").write_bytes(content.replace(columns, struct.pack("<6i", 3, 0, 1, 2, 10**8, 1)))
    with pytest.raises(ReadError, match=r"ind.cora.tx: the file is damaged \(ValueError: indices must be < 4\)"):
        load("cora", folder)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("503 x", "ind.cora.test.index: line 1: 'x' is given; numbers of papers from 0..506, each once, are"),
        ("503 503 504", "ind.cora.test.index: line 1: '503' is given a second time; numbers of papers from 0..506"),
        ("503 504\n507", "ind.cora.test.index: line 2: '507' is given; numbers of papers from 0..506, each once"),
        ("502 503 504", "ind.cora.tx: rows of shape (3, 4) after (503, 4) do not fit 3 tested papers from number 502"),
    ],
)
def test_wrong_numbers_of_papers_are_named(folder, text, message):
    (folder / "ind.cora.test.index").write_text(text)
    with pytest.raises(ReadError) as caught:
        load("cora", folder)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        (
            "ally",
            one_hot(*[0] * 502),
            "ind.cora.ally: there are subjects of 502 papers, and the words of 503; bring back",
        ),
        (
            "ally",
            np.eye(3, dtype=np.int32)[[0] * 503] * 2,
            "ind.cora.ally: a 1 in each row is needed, and 0 elsewhere; none",
        ),
        (
            "ty",
            np.ones((3, 3), dtype=np.int32),
            "ind.cora.ty: a 1 in each row is needed, and 0 elsewhere; paper 0 has not",
        ),
        ("ty", np.zeros(3, dtype=np.int32), "ind.cora.ty: a 1 in each row is needed"),
        (
            "y",
            one_hot(2, 1, 1),
            "ind.cora.y: the subjects are not those of the first papers of .ally; bring back the orig",
        ),
        ("y", one_hot(*[0] * 504), "ind.cora.y: the subjects are not those of the first papers of .ally"),
    ],
)
def test_subjects_that_do_not_fit_are_named(folder, part, value, message):
    dump(folder / f"ind.cora.{part}", value)
    with pytest.raises(ReadError) as caught:
        load("cora", folder)
    assert message in str(caught.value)


def test_a_cut_file_is_named(folder):
    file = folder / "ind.cora.tx"
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(ReadError, match=r"ind.cora.tx: the file is damaged \(.*\); bring back the original"):
        load("cora", folder)


# Counts of the public files: Kipf and Welling (2017) count citations with those given twice.
@pytest.mark.parametrize(
    ("name", "papers", "edges", "words", "classes", "parts"),
    [("cora", 2708, 5278, 1433, 7, (140, 500, 1000)), ("citeseer", 3327, 4552, 3703, 6, (120, 500, 1000))],
)
def test_the_published_graphs_have_their_published_sizes(name, papers, edges, words, classes, parts):
    data = load(name, corpus("planetoid"))
    (graph,) = data.graphs
    assert (graph.size, len(graph.edges), *graph.features["x"].shape) == (papers, edges, papers, words)
    assert (data.objective.outputs, tuple(map(len, data.splits[0]))) == (classes, parts)
    assert np.bincount(data.targets[data.splits[0].train]).tolist() == [20] * classes
    assert (data.targets == -1).sum() == {"cora": 0, "citeseer": 15}[name]
    assert (data.targets[np.concatenate(data.splits[0])] >= 0).all()
    sums = graph.features["x"].sum(axis=1)
    assert np.isclose(sums, 1).sum() == {"cora": 2708, "citeseer": 3312}[name]


def test_pubmed_without_its_features_is_refused():
    with pytest.raises(ReadError, match=r"there is no file ind.pubmed.allx in .*; give the folder that holds it"):
        load("pubmed", corpus("planetoid"))


def test_the_drawn_split_is_the_one_that_luo_et_al_train_on():
    """The numbers are those that ``class_rand_splits`` of their code gives after ``torch.manual_seed(123)``."""
    split = load("cora", corpus("planetoid"), drawn=123).splits[0]
    firsts = [part[:4].tolist() for part in split]
    assert firsts == [[1332, 1923, 2136, 530], [2333, 2163, 2135, 864], [1554, 243, 430, 1657]]
