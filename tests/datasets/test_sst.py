from __future__ import annotations

import numpy as np
import pytest

from structpe.datasets import load
from structpe.errors import ReadError
from tests.datasets import corpus

TRAIN = "(4 (2 It) (3 (2 's) (3 good)))\n(2 (2 So) (2 so))\n(1 (2 -LRB-) (1 1\\/2))\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "train.txt").write_text(TRAIN, encoding="utf-8")
    (tmp_path / "dev.txt").write_text("(0 (2 It) (1 bad))\n\n", encoding="utf-8")
    (tmp_path / "test.txt").write_text("(2 (2 It) (2 's))\n(3 good)\n", encoding="utf-8")
    return tmp_path


def test_a_sentence_is_its_tree(folder):
    data = load("sst", folder)
    graph = data.graphs[0]
    assert graph.nodes == ("", "It", "", "'s", "good")
    assert graph.edges.tolist() == [[0, 1], [0, 2], [2, 3], [2, 4]]
    assert graph.directed
    assert (graph.root, graph.order.tolist()) == (0, [0, 1, 2, 3, 4])
    assert graph.parents().tolist() == [-1, 0, 0, 2, 2]
    assert graph.features["sentiment"].tolist() == [[4], [2], [3], [2], [3]]
    assert data.graphs[2].nodes == ("", "(", "1/2")
    assert data.graphs[5].edges.shape == (0, 2)


def test_words_are_those_of_the_training_part(folder):
    data = load("sst", folder)
    # Phrases are 1; in the order of their characters: 's ( 1/2 It So good so.
    assert data.graphs[0].features["x"].tolist() == [[1], [5], [1], [2], [7]]
    assert data.graphs[3].features["x"].tolist() == [[1], [5], [0]]
    assert data.nodes.sizes == (9,)


def test_the_root_is_the_target(folder):
    data = load("sst", folder)
    assert data.targets.tolist() == [4, 2, 1, 0, 2, 3]
    assert [part.tolist() for part in data.splits[0]] == [[0, 1, 2], [3], [4, 5]]
    assert data.objective.outputs == 5


def test_two_classes_leave_neutral_sentences_out(folder):
    data = load("sst", folder, binary=True)
    assert data.targets.tolist() == [1, 0, 0, 1]
    assert [part.tolist() for part in data.splits[0]] == [[0, 1], [2], [3]]
    assert data.objective.outputs == 2
    assert data.nodes.sizes == (7,)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("(2 (2 a) (2 b)", "dev.txt: line 2: 1 parentheses are not closed; each line is one tree in parentheses"),
        ("(2 a) b", "dev.txt: line 2: 'b' is outside of the tree; each line is one tree"),
        ("(2 a))", "dev.txt: line 2: ')' is outside of the tree"),
        ("(2 a) (2 b)", "dev.txt: line 2: '(2' is outside of the tree"),
        ("(7 a)", "dev.txt: line 2: a node has the class '7'; classes are the digits 0 to 4"),
        ("(²  a)", "dev.txt: line 2: a node has the class '²'"),
        ("( a)", "dev.txt: line 2: a node has the class ''"),
        ("(2 (2 a) b)", "dev.txt: line 2: the word 'b' is among other parts of its node; a node is a word or"),
        ("(2 b (2 a))", "dev.txt: line 2: the word 'b' is among other parts of its node"),
        ("(2 a b)", "dev.txt: line 2: the word 'b' is among other parts of its node"),
        ("(2 (2 a) (2))", "dev.txt: line 2: a node has neither a word nor parts; remove it"),
    ],
)
def test_a_damaged_tree_is_named(folder, line, message):
    (folder / "dev.txt").write_text(f"(2 a)\n{line}\n", encoding="utf-8")
    with pytest.raises(ReadError) as caught:
        load("sst", folder)
    assert message in str(caught.value)


def test_a_file_without_trees_is_refused(folder):
    (folder / "test.txt").write_text("\n")
    with pytest.raises(ReadError, match=r"test.txt: there is no tree in the file; bring back the original"):
        load("sst", folder)
    (folder / "test.txt").write_bytes(b"(2 caf\xe9)\n")
    with pytest.raises(ReadError, match=r"test.txt: line 1: byte 0xe9 at column 7 is not UTF-8"):
        load("sst", folder)


# Sizes of the standard splits, as Socher et al. (2013) give them.
@pytest.mark.slow
def test_the_published_trees_have_their_published_number():
    data = load("sst", corpus("sst_trees"))
    assert [len(part) for part in data.splits[0]] == [8544, 1101, 2210]
    assert [int((data.targets[part] != 2).sum()) for part in data.splits[0]] == [6920, 872, 1821]  # not neutral
    # Trees are binary: of n words, n - 1 phrases.
    words = [sum(label != "" for label in graph.nodes) for graph in data.graphs]
    assert [graph.size for graph in data.graphs] == [2 * n - 1 for n in words]
    assert np.array_equal(data.targets, [graph.features["sentiment"][0, 0] for graph in data.graphs])
