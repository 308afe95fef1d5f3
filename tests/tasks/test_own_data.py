"""Training on what one has in Python: items, mappings and graphs of networkx in place of files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import structpe
from structpe.datasets import load
from structpe.errors import ConfigError, ReadError, StructPEError, StructureError
from structpe.formats import read
from structpe.tasks import DataConfig, GraphToTextConfig
from structpe.tasks.runs.base import load_config, run_of
from tests.tasks.prediction.tiny import data_in

ITEMS = [{"facts": [(f"Osk {i % 3}", "teacher", "Ida")], "text": f"Ida taught Osk {i % 3}."} for i in range(12)]
CPU = {"hardware": {"accelerator": "cpu"}}
TEXTS: dict[str, Any] = {
    "prepare": {"vocabulary": 300},
    "model": {"width": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "feedforward": 16},
    "training": {"steps": 2, "batch_size": 4, "checkpoint_every": 2, "validation": {"every": 2}, **CPU},
    "search": {"beam": 1, "longest": 4},
}
GRAPHS: dict[str, Any] = {
    "task": "prediction",
    "data": {"options": {"targets": ["size"]}},
    "position": "rwse",
    "model": {"width": 16, "layers": 1, "heads": 2, "readout": "sum"},
    "training": {"steps": 4, "batch_size": 8, "optimiser": {"warmup": 1}, "validation": {"every": 2}, **CPU},
}


def test_items_train_as_their_file_does(tmp_path: Path) -> None:
    """The same weights, to the bit; a run goes on with the same items only; files are then read by a reader."""
    file = tmp_path / "a.jsonl"
    file.write_text("".join(json.dumps(item) + "\n" for item in ITEMS), encoding="utf-8")
    ways: dict[str, tuple[dict[str, Any], Any]] = {
        "file": ({"train": str(file), "dev": str(file)}, None),
        "mappings": ({}, {"train": ITEMS, "dev": ITEMS}),
        "items": ({}, {"train": read(file), "dev": str(file)}),
        "both": ({"dev": str(file)}, list(map(dict, ITEMS))),
    }
    for name, (named, data) in ways.items():
        config = {**TEXTS, "data": named, "out": str(tmp_path / name)}
        assert structpe.train(config, data=data).steps == 2
    found = [load_file(tmp_path / name / "model.safetensors") for name in ways]
    assert all(torch.equal(each[name], found[0][name]) for each in found for name in found[0])
    config = {**TEXTS, "out": str(tmp_path / "mappings")}
    assert structpe.train(config, data={"train": ITEMS, "dev": ITEMS}).steps == 2  # it is finished
    writer = structpe.load(tmp_path / "mappings", "cpu")
    assert len(list(writer.generate(ITEMS))) == len(list(writer.generate(read(file)))) == 12
    with pytest.raises(ConfigError, match="the run has no reader of its own, as it has learned from items, or its"):
        writer.generate(file)


def test_a_bad_item_is_named_before_a_text_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    structpe.train({**TEXTS, "out": str(tmp_path / "run")}, data=ITEMS)
    writer = structpe.load(tmp_path / "run", "cpu")
    monkeypatch.setattr(writer, "_generated", None)
    long = {"facts": [("a", "r", "b" * 4000)], "id": "long"}
    for act in (writer.generate, writer.evaluate):
        with pytest.raises(StructureError, match=r"^item 2: 'x': triple 1 is"):
            act([ITEMS[0], {"facts": [("a", "b")], "id": "x"}])
        with pytest.raises(StructureError, match=r"^item 70 \('long'\): .*has 4\d\d\d units, longest_source is 512"):
            act([*ITEMS * 5, *ITEMS[:9], {**long, "text": "x"}], batch_size=1)
    with pytest.raises(ConfigError, match=r"^item 2 \('2'\) has no reference text to be scored against; leave it out$"):
        writer.evaluate([ITEMS[0], {"facts": [("a", "r", "b")]}])
    monkeypatch.undo()
    writer.config = replace(writer.config, data=DataConfig(reader="facts", options={"subject": "s"}, on_error="skip"))
    (new := tmp_path / "new.tsv").write_text("id\ts\tp\to\n1\tŌж\tr\tIda\n", encoding="utf-8")
    with pytest.warns(UserWarning, match=r"no unit for 'Ō', 'ж', .*; model.copy_units and training texts"):
        assert len(list(writer.generate(new))) == 1
    with pytest.raises(ConfigError, match=r"new\.tsv: item '1' has no text .*; to write only, use generate$"):
        writer.evaluate(new)
    new.write_text("who\tp\to\nOsk\tr\tIda\n")
    with pytest.raises(ReadError, match=r"no column 's'; .*The run keeps this option; --reader NAME, or struct"):
        writer.generate(new)


@pytest.mark.parametrize(
    ("config", "data", "error", "message"),
    [
        ({}, [], ReadError, "^data, train: there is no item; give one or more"),
        ({}, [*ITEMS, {"facts": [("a", "b")], "id": "q"}], StructureError, "^data, train: item 13: 'q': triple 1 is"),
        ({}, [{"facts": [("a", "r", "b")]}], ConfigError, "item '1' has no text to learn from or to be scored against"),
        ({}, {"trian": ITEMS}, ConfigError, "data has the key 'trian'; give 'train' and 'dev', or a list of items"),
        (
            {"data": {"train": "a.txt"}},
            ITEMS,
            ConfigError,
            "data.train names files, and items are given as data; leave",
        ),
        ({}, None, ConfigError, "data.train is null, and no items are given; name a file or folder"),
        (
            {"training": {"validation": {"metric": "chrf"}}},
            ITEMS,
            ConfigError,
            "training.validation.metric is 'chrf', which has no effect, as data.dev is null",
        ),
    ],
)
def test_what_is_wrong_with_items_is_said(
    config: dict[str, Any], data: Any, error: type[StructPEError], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        structpe.train({**TEXTS, "out": str(tmp_path / "run"), **config}, data=data)
    assert not (tmp_path / "run" / "config.yaml").exists()


def test_items_in_the_place_of_files_are_sent_to_theirs(tmp_path: Path) -> None:
    config = GraphToTextConfig(DataConfig(ITEMS), out=str(tmp_path / "run"))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"data\.train names files, and {'facts': .* is no path; give items as data"):
        structpe.train(config)


def test_texts_are_needed_where_one_learns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What lacks them is named, with what is there, or skipped and counted; an option in the wrong place is sent on."""
    rows = "".join(f"{i // 2}\tOsk {i}\tteacher\tIda\t{'Ida.' * (i < 6)}\n" for i in range(12))
    (file := tmp_path / "a.tsv").write_text(f"id\ts\tp\to\tsentence\n{rows}")

    def items(**more: Any) -> Any:
        return run_of(load_config({**TEXTS, "data": {"train": str(file), "reader": "facts", **more}})).read().train

    with pytest.raises(ConfigError, match=r"a\.tsv: item '3' has no text .*; leave it out, .* \(on_error: skip"):
        items()
    asked = r"no text .* of 6 \(the option text is 'txt'\); .* there are: 'sentence'\. Name"
    with pytest.raises(ConfigError, match=asked):
        items(options={"text": "txt"}, on_error="skip")
    with pytest.raises(ConfigError, match=r"'data.subject'; as an option of the reader 'facts', it is data.options.s"):
        items(subject="s")
    assert [item.id for item in items(on_error="skip")] == ["0", "1", "2"]
    assert "skipped 3 of 6 items, which have no text: '3', '4', '5'" in capsys.readouterr().err


def ring(size: int, edges: bool = False) -> Any:
    graph = networkx.cycle_graph(size)
    for node in graph:
        graph.nodes[node]["x"] = node % 2
    for one, other in graph.edges if edges else ():
        graph.edges[one, other]["x"] = 0.5
    return graph


def test_graphs_with_targets_are_predicted(tmp_path: Path) -> None:
    """From Python and from node-link JSON; new graphs are mappings, graphs of networkx, or items."""
    sizes = [3 + i % 5 for i in range(30)]
    graphs = [{"structure": ring(size), "size": size} for size in sizes]
    outcome = structpe.train({**GRAPHS, "out": str(tmp_path / "items")}, data=graphs)
    plain = [networkx.node_link_data(ring(size), edges="edges") | {"size": size} for size in sizes]
    (tmp_path / "rings.json").write_text(json.dumps(plain), encoding="utf-8")
    data = {"folder": str(tmp_path), "options": {"file": "rings.json", "targets": ["size"]}}
    same = structpe.train({**GRAPHS, "data": data, "out": str(tmp_path / "file")})
    assert (same.test, same.valid) == (outcome.test, outcome.valid)
    predictor = structpe.load(tmp_path / "items", "cpu")
    found = predictor.predict([ring(4), {"structure": ring(4)}, read(tmp_path / "rings.json")[1]])
    np.testing.assert_allclose(found.scores, found.scores[[0, 0, 0]], rtol=1e-5)


def test_the_features_of_graphs_say_what_they_are(tmp_path: Path) -> None:
    plain = [networkx.node_link_data(ring(5, edges=True), edges="edges") | {"kind": kind} for kind in "abab"]
    (tmp_path / "rings.json").write_text(json.dumps(plain), encoding="utf-8")
    found = load("graphs", tmp_path, file="rings.json", targets=["kind"], objective="multiclass")
    assert found.nodes is not None
    assert found.edges is not None
    assert (repr(found.nodes), repr(found.edges)) == ("Categories(sizes=(2,))", "Numbers(columns=1)")
    assert (found.names, found.targets.tolist(), found.note) == (("a", "b"), [0, 1, 0, 1], "random split")
    with pytest.raises(ReadError, match=r"rings\.json: rings\.json:1: 'a' in column 'kind' is not a finite number"):
        load("graphs", tmp_path, file="rings.json", targets=["kind"])


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"data": {"options": {"targets": ["sise"]}}}, "data: there is no column named 'sise'. Did you mean 'size'"),
        ({"data": {}}, "data: data needs the option 'targets'; it takes a list of texts"),
        (
            {"data": {"options": {"targets": ["size"], "file": "a"}}},
            "options.file is of a file, and items",
        ),
        ({"data": {"name": "smiles"}}, "name is 'smiles', and items are given as data; leave the name out"),
    ],
)
def test_what_is_wrong_with_graphs_is_said(config: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        structpe.train({**GRAPHS, "out": str(tmp_path / "run"), **config}, data=[{"structure": ring(4), "size": 4}] * 9)


def test_a_benchmark_is_data_too(tmp_path: Path) -> None:
    benchmark = load("zinc-stand-in", data_in(tmp_path))
    config = {**GRAPHS, "out": str(tmp_path / "run")}
    with pytest.raises(ConfigError, match="a benchmark is given as data, and has its own targets; leave options out"):
        structpe.train(config, data=benchmark)
    named = {"name": "zinc-stand-in", "folder": str(tmp_path / "data")}
    given = structpe.train({**config, "data": {}}, data=benchmark)
    assert given.test == structpe.train({**config, "data": named, "out": str(tmp_path / "named")}).test
