"""Knowledge graphs with held-out triples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from structpe.data.features import Categories
from structpe.datasets import load
from structpe.errors import ConfigError, ReadError
from structpe.objectives.link import Link
from tests.datasets import corpus

TRAIN = "Ida\tteaches\tOsk\nOsk\tfrom\tOrrin\nIda\tfrom\tOrrin\n"
PARTS = {"train": TRAIN, "valid": "Osk\tteaches\tIda\n", "test": "Ida\tknows\tMar\nOrrin\tteaches\tIda\n"}


def written(folder: Path, **changed: str) -> Path:
    for part, text in {**PARTS, **changed}.items():
        (folder / f"{part}.txt").write_text(text, encoding="utf-8")
    return folder


def test_the_graph_has_all_entities_and_the_triples_of_training_only(tmp_path: Path) -> None:
    data = load("knowledge-graph", written(tmp_path))
    (graph,) = data.graphs
    assert graph.nodes == ("Ida", "Osk", "Orrin", "Mar")
    assert (graph.edges.tolist(), graph.directed) == ([[0, 1], [1, 2], [0, 2]], True)
    assert graph.relations == ("teaches", "from", "from")
    assert graph.features["x"].tolist() == [[0], [1], [2], [3]]
    assert graph.features["edge_x"].tolist() == [[2], [0], [0]]  # from, knows, teaches
    assert (data.nodes, data.edges) == (Categories((4,)), Categories((3,)))
    assert data.targets.tolist() == [[0, 2, 1], [1, 0, 2], [0, 0, 2], [1, 2, 0], [0, 1, 3], [2, 2, 0]]
    assert [part.tolist() for part in data.splits[0]] == [[0, 1, 2], [3], [4, 5]]
    assert data.objective == Link(3, "mrr", 4)
    assert data.name == tmp_path.name


def test_columns_and_metric_may_be_others(tmp_path: Path) -> None:
    turned = {part: "".join(_turned(line) for line in text.splitlines()) for part, text in PARTS.items()}
    data = load("knowledge-graph", written(tmp_path, **turned), columns="rht", metric="hits@3")
    assert data.targets[0].tolist() == [0, 2, 1]
    assert data.objective.metric == "hits@3"


def _turned(line: str) -> str:
    head, relation, tail = line.split("\t")
    return f"{relation}\t{head}\t{tail}\n"


@pytest.mark.parametrize(
    ("changed", "options", "error", "message"),
    [
        (
            {"test": "Ida\tknows\tMar\nOsk\tfrom\tOrrin\n"},
            {},
            ConfigError,
            "the triple ('Osk', 'from', 'Orrin') is in two of the files, and 0 others; keep each in one",
        ),
        ({"test": "Ida\tknows\n"}, {}, ReadError, "triple; give subject, relation and object"),
        ({}, {"columns": "hrr"}, ReadError, "columns is 'hrr'; give h, r, t"),
        ({}, {"metric": "accuracy"}, ConfigError, "metric is 'accuracy'; the objective 'link' takes mrr or hits@1 or"),
    ],
)
def test_what_does_not_fit(
    tmp_path: Path, changed: dict[str, str], options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        load("knowledge-graph", written(tmp_path, **changed), **options)
    assert message in str(caught.value)


def test_a_file_that_is_missing(tmp_path: Path) -> None:
    (written(tmp_path) / "valid.txt").unlink()
    with pytest.raises(ReadError, match=r"there is no file valid\.txt in"):
        load("knowledge-graph", tmp_path)


def test_a_triple_twice_in_training_is_two_edges(tmp_path: Path) -> None:
    data = load("knowledge-graph", written(tmp_path, train=TRAIN + "Ida\tteaches\tOsk\n"))
    assert len(data.splits[0].train) == len(data.graphs[0].edges) == 4


@pytest.mark.parametrize(
    ("name", "columns", "entities", "relations", "parts"),
    [
        ("umls", "hrt", 135, 46, (5216, 652, 661)),
        ("nations", "rht", 14, 56, (1619, 202, 203)),
        pytest.param("WN18RR", "hrt", 41105, 11, (86835, 3034, 3134), marks=pytest.mark.slow),
    ],
)
def test_published_graphs(name: str, columns: str, entities: int, relations: int, parts: tuple[int, ...]) -> None:
    # These copies are not those of all papers: Nations often has 1,992 triples of 55 relations, and the synsets of
    # WN18RR have names here, 41,105 of them, where their numbers were 40,943.
    data = load("knowledge-graph", corpus(f"kg/{name}/train.txt").parent, columns=columns)
    assert (data.objective.entities, data.objective.outputs) == (entities, relations)
    assert tuple(map(len, data.splits[0])) == parts
    assert np.array_equal(np.sort(data.graphs[0].features["x"][:, 0]), np.arange(entities))
