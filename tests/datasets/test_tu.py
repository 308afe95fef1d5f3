from __future__ import annotations

import numpy as np
import pytest

from structpe.datasets import load
from structpe.errors import ReadError
from tests.datasets import corpus

# Of 21 graphs, three kinds in turn: a path of three, a triangle, and a node alone.
KINDS = ("3 -1\n7 1 1\n4 2 0 2\n7 1 1\n", "3 5\n4 2 1 2\n4 2 0 2\n4 2 0 1\n", "1 5\n9 0\n")
TEXT = "21\n" + "".join(KINDS[i % 3] for i in range(21))


@pytest.fixture
def folder(tmp_path):
    """Fold k tests graphs 2k - 2 and 2k - 1; the last graph is in no test part."""
    made = tmp_path / "TOY"
    (made / "10fold_idx").mkdir(parents=True)
    (made / "TOY.txt").write_text(TEXT)
    for k in range(1, 11):
        tested = [2 * k - 1, 2 * k - 2]
        (made / "10fold_idx" / f"test_idx-{k}.txt").write_text("\n".join(map(str, tested)))
        rest = [str(i) for i in range(21) if i not in tested]
        (made / "10fold_idx" / f"train_idx-{k}.txt").write_text("\n".join(rest) + "\n")
    return made


def test_graphs_are_those_of_the_file(folder):
    data = load("tu", folder)
    assert data.name == "TOY"
    path, triangle, alone = data.graphs[:3]
    assert path.edges.tolist() == [[0, 1], [1, 2]]
    assert triangle.edges.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert alone.edges.shape == (0, 2)
    assert not path.directed
    # Tags 4, 7, 9 are categories 0, 1, 2; classes -1 and 5 are 0 and 1.
    assert path.nodes == ("7", "4", "7")
    assert [g.features["x"].tolist() for g in (path, triangle, alone)] == [[[1], [0], [1]], [[0], [0], [0]], [[2]]]
    assert data.nodes.sizes == (3,)
    assert data.targets.tolist() == [0, 1, 1] * 7


def test_where_all_tags_are_alike_the_degree_is_the_category(folder):
    text = TEXT.replace("\n7 ", "\n0 ").replace("\n4 ", "\n0 ").replace("\n9 ", "\n0 ")
    (folder / "TOY.txt").write_text(text)
    data = load("tu", folder)
    assert [g.features["x"].tolist() for g in data.graphs[:3]] == [[[1], [2], [1]], [[2], [2], [2]], [[0]]]
    assert data.note.endswith("nodes have their degree as category")


def test_a_fold_selects_by_what_the_next_one_tests(folder):
    data = load("tu", folder)
    assert len(data.splits) == 10
    train, valid, test = data.splits[0]
    assert (test.tolist(), valid.tolist(), train.tolist()) == ([0, 1], [2, 3], list(range(4, 21)))
    train, valid, test = data.splits[9]
    assert (test.tolist(), valid.tolist(), train.tolist()) == ([18, 19], [0, 1], [*range(2, 18), 20])
    assert "optimistic" in data.note


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "TOY.txt: at its end: the first line says 0 graphs"),
        (TEXT.replace("21", "22", 1), "TOY.txt: at its end: graph 21 of 22 needs a line 'number-of-nodes class'"),
        (TEXT.replace("21", "20", 1), "the first line says 20 graphs, and the file has another number"),
        (TEXT[:-4], "TOY.txt: at its end: node 0 of 1 needs a line 'tag degree neighbours'"),
        (TEXT.replace("4 2 0 2", "4 2 0", 1), "TOY.txt: line 4: node 1 of 3 needs a line 'tag degree neighbours'"),
        (TEXT.replace("4 2 0 2", "4 2 0 3", 1), "TOY.txt: line 4: neighbours [0, 3] are not all nodes 0..2"),
        (
            TEXT.replace("4 2 0 2", "4 1 0", 1),
            "TOY.txt: line 5: the edge 1 - 2 is not listed once in the lines of both its ends",
        ),
        (
            TEXT.replace("7 1 1", "7 2 1 1", 1),
            "TOY.txt: line 5: the edge 0 - 1 is not listed once in the lines of both its ends",
        ),
        (
            TEXT.replace("3 -1", f"{10**15} -1", 1),
            "TOY.txt: line 6: node 3 of 1000000000000000 needs a line 'tag degree",
        ),
        (
            TEXT.replace("7 1 1", f"{2**63} 1 1", 1),
            "TOY.txt: line 3: whole numbers are needed; other features of nodes",
        ),
        (TEXT.replace("7 1 1", "7 1 1 0.5", 1), "TOY.txt: line 3: whole numbers are needed; other features of nodes"),
    ],
)
def test_damaged_graphs_are_named(folder, text, message):
    (folder / "TOY.txt").write_text(text)
    with pytest.raises(ReadError) as caught:
        load("tu", folder)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("test_idx-3.txt", "4\n21", "test_idx-3.txt: line 2: '21' is given; numbers of graphs from 0..20, each once"),
        ("test_idx-3.txt", "4 4", "test_idx-3.txt: line 1: '4' is given a second time; numbers of graphs from 0..20"),
        ("test_idx-3.txt", "4 6", "fold 3 trains on graphs that it tests, or lacks graphs that the next fold tests"),
        ("train_idx-3.txt", "0 1 2", "fold 3 trains on graphs that it tests, or lacks graphs that the next fold tests"),
        (
            "train_idx-3.txt",
            " ".join(map(str, [*range(2), *range(2, 4), *range(6, 20)])),
            "fold 3 names 20 of 21 graphs; it",
        ),
        ("train_idx-10.txt", None, "there is no file train_idx-10.txt in"),
    ],
)
def test_damaged_folds_are_named(folder, name, text, message):
    file = folder / "10fold_idx" / name
    file.unlink() if text is None else file.write_text(text)
    with pytest.raises(ReadError) as caught:
        load("tu", folder)
    assert message in str(caught.value)


# Graphs, mean nodes and mean edges as on the page of the collection.
@pytest.mark.parametrize(
    ("name", "graphs", "nodes", "edges", "classes", "sizes"),
    [
        ("MUTAG", 188, 17.93, 19.79, 2, (152, 18, 18)),
        pytest.param("PROTEINS", 1113, 39.06, 72.82, 2, (891, 111, 111), marks=pytest.mark.slow),
        pytest.param("ENZYMES", 600, 32.63, 62.14, 6, (480, 60, 60), marks=pytest.mark.slow),
        pytest.param("IMDBBINARY", 1000, 19.77, 96.53, 2, (800, 100, 100), marks=pytest.mark.slow),
    ],
)
def test_the_published_sets_have_their_published_sizes(name, graphs, nodes, edges, classes, sizes):
    data = load("tu", corpus("tu") / name)
    assert len(data.graphs) == graphs
    assert np.mean([graph.size for graph in data.graphs]) == pytest.approx(nodes, abs=0.005)
    assert np.mean([len(graph.edges) for graph in data.graphs]) == pytest.approx(edges, abs=0.011)
    assert data.objective.outputs == classes
    # What a fold trains by may differ by the graphs that stand in no test part.
    assert {tuple(map(len, split)) for split in data.splits} == {sizes}
    assert len(np.unique(np.concatenate([split.test for split in data.splits]))) == 10 * sizes[2]
