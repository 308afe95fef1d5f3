"""Names of functions as OGB's example makes them; scores as by OGB's own evaluators."""

from __future__ import annotations

import numpy as np
import pytest

from structpe.data.features import Categories
from structpe.datasets import load
from structpe.datasets.ogb import _imported, _token_targets
from structpe.errors import ConfigError, ReadError
from structpe.objectives.metrics import END, METRICS, UNKNOWN
from tests.datasets.ogb_files import table, tables

pytest.importorskip("ogb", reason="ogb is not installed")


@pytest.fixture
def code(tmp_path):
    folder = tmp_path / "ogbg_code2"
    tables(
        folder,
        [{"edges": [[0, 1], [0, 2], [2, 3]], "nodes": 4}, *[{"edges": [[0, 1]], "nodes": 2}] * 2],
        "project",
        node__feat=[[0, 9], [1, 3], [1, 9], [2, 0], [0, 9], [1, 1], [0, 9], [2, 2]],
        node_depth=[0, 1, 1, 22, 0, 1, 0, 1],
        node_dfs_order=[0, 1, 2, 3, 0, 1, 0, 1],
        node_is_attributed=[0, 1, 0, 1, 0, 1, 0, 1],
        graph__label=["set the value", "get value", "set a b c d e set"],
    )
    (folder / "mapping").mkdir()
    table(folder / "mapping" / "typeidx2type", ["type idx,type", "0,Module", "1,Name", "2,None"])
    table(folder / "mapping" / "attridx2attr", ["attr idx,attr", *(f"{i},a{i}" for i in range(10))])
    return tmp_path


def test_code_is_trees_and_the_words_of_names(code):
    benchmark = load("ogbg-code2", code, words=2)
    tree = benchmark.graphs[0]
    assert tree.is_tree()
    assert tree.nodes == ("Module", "Name", "Name", "None")
    assert (tree.root, tree.order.tolist(), tree.relations) == (0, [0, 1, 2, 3], ("child",) * 3)
    assert tree.features["x"].tolist() == [[0, 9, 0], [1, 3, 1], [1, 9, 1], [2, 0, 20]]
    assert benchmark.nodes == Categories((3, 10, 21))
    assert benchmark.edges is None
    assert (benchmark.objective.outputs, benchmark.objective.length) == (4, 5)
    # Of the words of the one training name, "set" and "the" come first; they are 2 and 3.
    assert benchmark.targets.tolist() == [
        [2, 3, UNKNOWN, END, END, 2, 3, -4, -1, -1, -1],
        [UNKNOWN, UNKNOWN, END, END, END, -2, -3, -1, -1, -1, -1],
        [2, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, 2, -3, -4, -5, -6, -7],
    ]


def test_code_with_edges_from_token_to_token(code):
    benchmark = load("ogbg-code2", code, next_tokens=True)
    graph = benchmark.graphs[0]
    assert graph.edges.tolist() == [[0, 1], [0, 2], [2, 3], [1, 3]]
    assert graph.relations == ("child",) * 3 + ("next",)
    assert graph.features["edge_x"].tolist() == [[0], [0], [0], [1]]
    assert benchmark.edges == Categories((2,))


def test_code_without_its_tables(code):
    with pytest.raises(ConfigError, match="the vocabulary has 0 words; give one at least"):
        load("ogbg-code2", code, words=0)
    table(code / "ogbg_code2/mapping/typeidx2type", ["type idx,type", "0,Module"])
    with pytest.raises(ReadError, match=r"a node has a type beyond the 1 of mapping/typeidx2type.csv.gz"):
        load("ogbg-code2", code)
    table(code / "ogbg_code2/mapping/typeidx2type", ["idx,name", "0,Module"])
    with pytest.raises(
        ReadError, match=r"typeidx2type.csv.gz: no table with a column 'type' \('type'\); fetch it again"
    ):
        load("ogbg-code2", code)
    (code / "ogbg_code2/mapping/typeidx2type.csv.gz").unlink()
    with pytest.raises(ReadError, match=r"there is no file typeidx2type.csv.gz in"):
        load("ogbg-code2", code)


# Scores are those of OGB's own evaluators.


@pytest.mark.parametrize(("name", "metric", "tasks"), [("ogbg-molpcba", "ap", 128), ("ogbg-moltox21", "rocauc", 12)])
def test_labels_are_scored_as_by_ogb(name, metric, tasks):
    numbers = np.random.default_rng(0)
    prediction = numbers.normal(size=(60, tasks)).astype(np.float32)
    target = np.where(numbers.random((60, tasks)) < 0.3, np.nan, numbers.random((60, tasks)) < 0.1).astype(np.float32)
    target[:, 0] = 0
    expected = _imported("ogb.graphproppred").Evaluator(name).eval({"y_true": target, "y_pred": prediction})[metric]
    assert METRICS[metric].of(prediction, target) == pytest.approx(expected, abs=1e-12)


def test_numbers_and_classes_are_scored_as_by_ogb():
    numbers, package = np.random.default_rng(1), _imported("ogb.graphproppred")
    prediction, target = numbers.normal(size=(2, 50, 1))
    target[::7] = np.nan
    expected = package.Evaluator("ogbg-mollipo").eval({"y_true": target, "y_pred": prediction})["rmse"]
    assert METRICS["rmse"].of(prediction, target) == pytest.approx(expected, abs=1e-12)
    scores, classes = numbers.normal(size=(50, 37)), numbers.integers(0, 37, size=50)
    classes[:20] = scores[:20].argmax(axis=1)
    asked = {"y_true": classes[:, None], "y_pred": scores.argmax(axis=1)[:, None]}
    for evaluator in (package.Evaluator("ogbg-ppa"), _imported("ogb.nodeproppred").Evaluator("ogbn-arxiv")):
        assert METRICS["accuracy"].of(scores, classes) == pytest.approx(evaluator.eval(asked)["acc"], abs=1e-12)


def test_names_are_scored_as_by_ogb():
    numbers = np.random.default_rng(2)
    words = [f"w{i}" for i in range(12)]
    places = {word: place for place, word in enumerate(words[:8], 2)}  # four words are not in the vocabulary
    names = [numbers.choice(words, size=numbers.integers(1, 9)).tolist() for _ in range(200)]
    scores = numbers.normal(size=(200, 5, 10)) + 0.5 * (np.arange(10) == END)
    spoken = [""] * 10
    for word, place in places.items():
        spoken[place] = word
    spoken[UNKNOWN] = "__UNK__"
    said = [[spoken[i] for i in picks[: [*picks.tolist(), END].index(END)]] for picks in scores.argmax(axis=-1)]
    assert {len(each) for each in said} == set(range(6))
    evaluator = _imported("ogb.graphproppred").Evaluator("ogbg-code2")
    expected = evaluator.eval({"seq_ref": names, "seq_pred": said})["F1"]
    targets = _token_targets(names, places)
    assert METRICS["f1"].of(scores, targets) == pytest.approx(expected, abs=1e-12)
    assert METRICS["f1"].of(scores.argmax(axis=-1), targets) == METRICS["f1"].of(scores, targets)
