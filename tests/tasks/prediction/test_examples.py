"""Encodings are kept on disk for all runs: those of one list of graphs are never taken for those of another."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from structpe.data import chunks, store
from structpe.data.store import fingerprint, key
from structpe.encodings import ENCODINGS
from structpe.structure import Structure, path
from structpe.tasks.prediction.encodings import encode
from tests.together import together

NUMBERS = np.arange(6.0)
GRAPH = Structure(
    ("a", "b", "c"),
    np.array([[0, 1], [1, 2]]),
    ("x", "y"),
    root=0,
    features={"first": NUMBERS[:3], "second": NUMBERS[3:]},
    name="file:1",
)


def test_graphs_that_differ_in_their_units_alone_have_encodings_of_their_own(tmp_path: Path) -> None:
    depth = ENCODINGS["depth"]()
    two = GRAPH.with_units(("a", "b", "c", "c"), [0, 1, 2, 2])
    for graph, depths in ((GRAPH, [0, 1, 2]), (two, [0, 1, 2, 2])):
        assert encode([graph], [depth], tmp_path).of(0)[depth].values.tolist() == depths


def test_what_another_version_has_encoded_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    depth = ENCODINGS["depth"]()
    for change in (lambda: None, lambda: monkeypatch.setattr(type(depth), "version", 99)):
        change()
        encode([GRAPH], [depth], tmp_path)
    monkeypatch.setattr(store, "__version__", "0.0.0")
    encode([GRAPH], [depth], tmp_path)
    assert len(list(tmp_path.glob("depth-*/index.json"))) == 3


@together(
    "change",
    [
        lambda: replace(GRAPH, features={"first": NUMBERS[3:], "second": NUMBERS[:3]}),
        lambda: replace(GRAPH, features={"second": NUMBERS[:3], "third": NUMBERS[3:]}),
        lambda: replace(GRAPH, features={**GRAPH.features, "first": NUMBERS[:3, None]}),
        lambda: replace(GRAPH, nodes=("a", "b", "d")),
        lambda: replace(GRAPH, relations=("x", "x")),
        lambda: replace(GRAPH, edges=np.array([[0, 1], [2, 1]])),
        lambda: replace(GRAPH, order=np.array([2, 1, 0])),
        lambda: replace(GRAPH, root=1),
        lambda: replace(GRAPH, directed=False),
        lambda: GRAPH.with_units(("a", "b", "c"), [0, 1, 2]),
    ],
)
def test_a_fingerprint_looks_at_all_that_encodings_may_look_at(change: Callable[[], Structure]) -> None:
    assert fingerprint([change()]) != fingerprint([GRAPH])


def test_a_feature_is_not_taken_for_a_part_of_the_graph_with_its_name() -> None:
    orders = [
        replace(GRAPH, features={"order": NUMBERS[:3]}, order=np.array(order)) for order in ([0, 1, 2], [2, 1, 0])
    ]
    assert fingerprint(orders[:1]) != fingerprint(orders[1:])


def test_a_fingerprint_does_not_look_at_names() -> None:
    assert fingerprint([replace(GRAPH, name="elsewhere:1")]) == fingerprint([GRAPH])


@pytest.mark.slow
def test_several_processes_write_the_stores_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "STRUCTURES", 2)
    graphs, encodings = [GRAPH] * 5, [ENCODINGS[name]() for name in ("depth", "distance")]
    for jobs in (1, 2):
        encode(graphs, encodings, tmp_path / str(jobs), jobs)
    one, two = (
        {str(file.relative_to(tmp_path / jobs)): file.read_bytes() for file in tmp_path.glob(f"{jobs}/*/*")}
        for jobs in "12"
    )
    assert one == two
    assert len(one) >= 8


def test_processes_are_started_for_several_parts_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("structpe.system.workers.ProcessPoolExecutor", None)  # to start one would be an error
    assert len(encode([GRAPH] * 5, [ENCODINGS["depth"]()], tmp_path, 4).of(4)) == 1


def test_processes_are_sent_the_place_of_encodings_and_not_their_numbers(tmp_path: Path) -> None:
    """Of several devices, and of data loaders: each opens the store itself, and reads what it needs."""
    distance = ENCODINGS["distance"]()
    graphs = [path(["x"] * 100, name=str(i)) for i in range(20)]
    opened = encode(graphs, [distance], tmp_path)
    rows = [opened.of(number) for number in range(20)]
    sent = pickle.dumps(rows)
    assert len(sent) < 100 * 20 < sum(row[distance].index.nbytes for row in rows)
    for row, mine in zip(pickle.loads(sent), rows, strict=True):
        assert list(row) == list(mine) == [distance]
        assert len(row) == 1
        assert row[distance].pairs().tolist() == mine[distance].pairs().tolist()


def test_a_key_differs_with_all_that_numbers_may_depend_on(monkeypatch: pytest.MonkeyPatch) -> None:
    distance = ENCODINGS["distance"]
    told = [key("a", distance(max_distance=3)), key("b", distance(max_distance=3)), key("a", distance(max_distance=4))]
    for place, name in ((store, "FORMAT"), (store, "__version__"), (distance, "version")):
        with monkeypatch.context() as patch:
            patch.setattr(place, name, 99)
            told.append(key("a", distance(max_distance=3)))
    assert len(set(told)) == 6
    assert told[0] == key("a", distance(max_distance=3))
