"""Trained models on graphs that they have not seen, without the data that they learned from."""

from __future__ import annotations

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import structpe
from structpe.data.features import Categories, Features, Numbers
from structpe.datasets import Benchmark, Split, load
from structpe.errors import ConfigError, ReadError, StoreError, StructPEError
from structpe.formats import read
from structpe.objectives import METRICS, OBJECTIVES, Objective
from structpe.objectives.link import Link
from structpe.objectives.sequence import Sequences
from structpe.structure import Structure
from structpe.tasks.config import make
from structpe.tasks.prediction.config import PredictionConfig
from structpe.tasks.prediction.predictor import Predictor, Signature
from structpe.tasks.runs import train
from structpe.tasks.runs.prediction import PredictionRun
from tests.cli.running import complaint, output
from tests.cli.running import structpe as command
from tests.tasks.prediction.test_pairs import config as pairs
from tests.tasks.prediction.tiny import MODEL, RWSE, TRAINING, data_in, single
from tests.together import together

HALOGENS = {"F": "light", "Cl": "light", "Br": "heavy"}


def table(folder: Path, count: int = 40) -> Path:
    """Chains with a halogen at the end, their length, whether it is chlorine, and what kind it is."""
    file = folder / "chains.csv"
    parts = ["train"] * (count // 2) + ["valid"] * (count // 4) + ["test"] * (count - count // 2 - count // 4)
    with file.open("w", newline="") as opened:
        writer = csv.writer(opened)
        writer.writerow(["id", "smiles", "carbons", "chlorine", "bromine", "weight", "part"])
        for i, part in enumerate(parts):
            carbons, halogen = 1 + i % 7, list(HALOGENS)[i % 3]
            flags = ["" if i == 3 else int(halogen == which) for which in ("Cl", "Br")]
            writer.writerow([f"m{i}", "C" * carbons + halogen, carbons, *flags, HALOGENS[halogen], part])
    return file


def config(folder: Path, objective: str, targets: list[str], **changed: Any) -> PredictionConfig:
    table(folder)
    options = {"file": "chains.csv", "targets": targets, "objective": objective, "split": "part"}
    return make(
        PredictionConfig,
        {
            "data": {"name": "smiles", "folder": str(folder), "options": options},
            "position": RWSE,
            "model": {**MODEL, "message_passing": "gine"},
            "training": TRAINING,
            "out": str(folder / "run"),
            **changed,
        },
    )


@pytest.fixture(scope="module")
def chains(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of regression, whose data are gone: they are not needed."""
    folder = tmp_path_factory.mktemp("chains")
    train(config(folder, "regression", ["carbons"]))
    (folder / "chains.csv").unlink()
    shutil.rmtree(folder / "encodings", ignore_errors=True)
    return folder / "run"


def test_predictions_of_the_test_part_have_the_error_that_the_run_reports(tmp_path: Path) -> None:
    given = config(tmp_path, "regression", ["carbons"])
    outcome = train(given)
    test = [
        item
        for item in read(tmp_path / "chains.csv", column="smiles", features="ogb")
        if item.metadata["part"] == "test"
    ]
    said = {"items": 10, "mae": outcome.test}
    assert json.loads(output("evaluate", given.out, "--json")) == pytest.approx(said, rel=1e-6)
    assert output("evaluate", given.out, "--split", "valid") == f"mae {outcome.valid:.4g}\n"
    (tmp_path / "chains.csv").rename(tmp_path / "gone.csv")  # the data are not needed
    lines = (tmp_path / "gone.csv").read_text(encoding="utf-8").splitlines()
    kept = [lines[0], *(line for line in lines if line.endswith(",test"))]
    (tmp_path / "test.csv").write_text("\n".join(kept) + "\n", encoding="utf-8")
    found = json.loads(output("evaluate", given.out, tmp_path / "test.csv", "--json"))
    assert found == pytest.approx(said, rel=1e-5)
    assert "chains.csv" in complaint("evaluate", given.out, code=1)
    shutil.rmtree(tmp_path / "encodings", ignore_errors=True)
    found = structpe.load(given.out).predict([item.structure for item in test])
    assert len(found) == len(test) == 10
    wanted = np.array([float(item.metadata["carbons"]) for item in test])
    assert np.abs(found.columns["carbons"] - wanted).mean() == pytest.approx(outcome.test, rel=1e-5)
    assert list(found.table()) == ["id", "carbons"]


def test_a_graph_is_predicted_alike_alone_and_among_others(tmp_path: Path) -> None:
    given = config(tmp_path, "multilabel", ["chlorine", "bromine"])
    train(given)
    predictor = structpe.load(given.out, "cpu")
    graphs = read(tmp_path / "chains.csv", features="ogb").structures
    found = predictor.predict(graphs)
    assert found.graph.tolist() == list(range(40))
    assert found.node is None
    alone = [predictor.predict(graph).scores[0] for graph in graphs[::4]]
    np.testing.assert_allclose(found.scores[::4], alone, rtol=1e-4, atol=1e-6)
    for k, name in enumerate(("chlorine", "bromine")):
        np.testing.assert_allclose(found.columns[name], 1 / (1 + np.exp(-found.scores[:, k])), rtol=1e-5)


def test_classes_have_their_names_and_probabilities(tmp_path: Path) -> None:
    given = config(tmp_path, "multiclass", ["weight"])
    outcome = train(given)
    items = read(tmp_path / "chains.csv", features="ogb")
    found = structpe.load(given.out).predict(items.structures)
    rows = found.table([item.id for item in items])
    assert list(rows) == ["id", "class", "p(heavy)", "p(light)"]
    np.testing.assert_allclose(rows["p(heavy)"] + rows["p(light)"], 1, rtol=1e-6)
    assert rows["class"].tolist() == ["heavy" if p > 0.5 else "light" for p in rows["p(heavy)"]]
    tested = [(row, item) for row, item in zip(rows["class"], items, strict=True) if item.metadata["part"] == "test"]
    assert np.mean([row == item.metadata["weight"] for row, item in tested]) == pytest.approx(outcome.test)
    predictor = structpe.load(given.out)
    for some in ([item for _, item in tested], [item for _, item in tested if item.metadata["weight"] == "light"]):
        right = [row == item.metadata["weight"] for row, item in tested if item in some]
        assert predictor.evaluate(some)[0] == {"accuracy": pytest.approx(np.mean(right))}
    with pytest.raises(ConfigError, match="the model knows no class 'odd'; it predicts heavy, light"):
        predictor.evaluate([replace(items[0], metadata={**items[0].metadata, "weight": "odd"})])
    with pytest.raises(ConfigError, match="there is no column named 'weight'"):
        predictor.evaluate([replace(items[0], metadata={})])


def test_nodes_are_predicted_one_by_one(tmp_path: Path) -> None:
    """The accuracy of the nodes of the test split is what the run reports; two graphs at once are as each alone."""
    data = {"name": "minesweeper", "folder": str(data_in(tmp_path))}
    given = single(tmp_path, data=data, position=[], model={"message_passing": "gcn"})
    outcome = train(given)
    benchmark = load("minesweeper", given.data.folder)
    (graph,) = benchmark.graphs
    predictor = structpe.load(given.out)
    found = predictor.predict(graph)
    assert found.node is not None
    assert found.node.tolist() == list(range(64))
    split = benchmark.splits[given.training.seed % 3].test
    scores, targets = found.scores[split], np.asarray(benchmark.targets)[split]
    assert METRICS[benchmark.objective.metric].of(scores, targets) == pytest.approx(outcome.test)
    small = Structure(("a", "b"), np.array([[0, 1]]), directed=False, features={"x": np.zeros((2, 2))})
    two = predictor.predict([graph, small])
    assert two.graph.tolist() == [0] * 64 + [1] * 2
    assert two.node is not None
    assert two.node.tolist() == [*range(64), 0, 1]
    np.testing.assert_allclose(two.scores[:64], found.scores, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(two.scores[64:], predictor.predict(small).scores, rtol=1e-4, atol=1e-6)
    assert list(two.table(["left", "right"])["id"][[0, -1]]) == ["left", "right"]
    with pytest.raises(ConfigError, match=r"the model predicts nodes, and targets of items are .*; score it on"):
        predictor.evaluate(graph)
    assert output("evaluate", given.out) == f"{outcome.metric} {outcome.test:.4g}\n"


def test_what_a_model_cannot_read_is_refused(chains: Path) -> None:
    predictor = structpe.load(chains)
    bare = Structure(("C", "C"), np.array([[0, 1]]), directed=False, name="ethane")
    told = (
        "ethane: the model reads 9 numbers of each of the nodes, and the graph has no features 'x'; let the reader "
        "'smiles' with column=smiles, features=ogb"
    )
    with pytest.raises(ConfigError, match=told):
        predictor.predict(bare)
    (good,) = read(_list(chains.parent / "one.smi", "CC"), features="ogb").structures
    with pytest.raises(ConfigError, match="features 'x' of nodes have shape"):
        predictor.predict(replace(good, features={**good.features, "x": good.features["x"][:, :3]}))
    x = good.features["x"].copy()
    x[:, 0] = [400, 0]
    with pytest.raises(ConfigError, match="column 0 has values from 0 to 400; it has 119 categories"):
        predictor.predict(replace(good, features={**good.features, "x": x}))
    with pytest.raises(ReadError, match="there is no item; give one or more"):
        predictor.predict([])
    with pytest.raises(ReadError, match="item 1: a text does not say what it is; give one of kind='amr'"):
        predictor.predict(["CC"])
    for device in ("gpu", "xpu:7", *(() if torch.cuda.is_available() else ("cuda", "cuda:1"))):
        with pytest.raises(
            ConfigError, match=rf"the device '{device}' cannot be used \(.*\); give one that PyTorch has"
        ):
            structpe.load(chains, device)


def _list(file: Path, *molecules: str) -> Path:
    file.write_text("".join(f"{each}\n" for each in molecules))
    return file


def test_features_that_the_model_does_not_read_are_ignored(chains: Path) -> None:
    predictor = structpe.load(chains)
    graphs = read(_list(chains.parent / "few.smi", "CCCl", "CCCCF"), features="ogb").structures
    more = [replace(g, features={**g.features, "mass": np.ones(g.size)}) for g in graphs]
    np.testing.assert_array_equal(predictor.predict(graphs).scores, predictor.predict(more).scores)


def test_numbers_that_are_not_finite_are_an_error(chains: Path) -> None:
    predictor = structpe.load(chains)
    for parameter in predictor.model.head.parameters():
        torch.nn.init.constant_(parameter, torch.nan)
    with pytest.raises(StructPEError, match="predicts numbers that are not finite: its training has diverged"):
        predictor.predict(read(_list(chains.parent / "c.smi", "CC"), features="ogb").structures)


def test_too_large_a_graph_is_refused_before_it_fills_the_memory(chains: Path) -> None:
    n = 20_001
    x = np.zeros((n, 9), dtype=np.int64)
    chain = Structure(("C",) * n, np.stack([np.arange(n - 1), np.arange(1, n)], 1), directed=False, name="polymer",
                      features={"x": x, "edge_x": np.zeros((n - 1, 3), dtype=np.int64)})  # fmt: skip
    with pytest.raises(ConfigError, match="polymer has 20001 nodes, and the model looks at all pairs of nodes"):
        structpe.load(chains).predict(chain)


def test_pairs_of_nodes_belong_to_one_graph(tmp_path: Path) -> None:
    given = pairs(tmp_path)
    train(given)
    with pytest.raises(ConfigError, match="predicts pairs of nodes of the graph that it has learned from"):
        structpe.load(given.out)


@together("nodes", [None, Categories((3, 4)), Numbers(5)])
@together("name", sorted(OBJECTIVES))
def test_a_signature_is_written_and_read_back(name: str, nodes: Features, tmp_path: Path) -> None:
    made: dict[str, Objective] = {
        "link": Link(2, "mrr", entities=7),
        "sequence": Sequences("graph", 5, "f1", length=3),
        "binary": OBJECTIVES["binary"]("graph", 1, "ap"),
    }
    objective = made.get(name) or OBJECTIVES[name]("node", 4, OBJECTIVES[name].metrics[0])
    names = tuple(f"größe {i}" for i in range(objective.outputs))
    signature = Signature(nodes, Categories((2,)), objective, names, "smiles", {"features": "ogb"})
    signature.save(tmp_path / "signature.json")
    assert Signature.load(tmp_path / "signature.json") == signature


def test_a_changed_signature_is_noticed(chains: Path, tmp_path: Path) -> None:
    shutil.copytree(chains, tmp_path / "run")
    file = tmp_path / "run" / "signature.json"
    file.write_text(file.read_text().replace("119", "118"))
    with pytest.raises(StoreError, match=r"signature\.json"):
        structpe.load(tmp_path / "run")
    (tmp_path / "alone.json").write_text('{"nodes": 1}')
    with pytest.raises(StoreError, match=r"alone\.json: the file is damaged"):
        Signature.load(tmp_path / "alone.json")


def test_a_benchmark_has_a_name_for_each_output_or_none() -> None:
    graph = Structure(("a",), np.zeros((0, 2)))
    one = np.array([0])
    with pytest.raises(ConfigError, match="1 names are given for 2 outputs; give one each"):
        Benchmark("b", [graph], one, (_one(),), OBJECTIVES["multiclass"]("graph", 2, "accuracy"), names=("a",))


def _one() -> Split:
    return Split(np.array([0]), np.array([], dtype=np.int64), np.array([], dtype=np.int64))


def test_the_command_writes_a_table(chains: Path, tmp_path: Path) -> None:
    file = tmp_path / "new.csv"
    file.write_text("id,smiles\nethane,CC\nbroken,C(\nbutane,CCCC\n")
    told = complaint("predict", chains, file, code=1)
    assert told.startswith("new.csv") or str(file) in told
    done = command("predict", chains, file, "--on-error", "skip", "--out", tmp_path / "out.csv")
    assert done.returncode == 0, done.stderr
    assert "skipped 1 of 3 items" in done.stderr
    with (tmp_path / "out.csv").open() as opened:
        rows = list(csv.DictReader(opened))
    assert [row["id"] for row in rows] == ["ethane", "butane"]
    graphs = read(file, on_error="skip", features="ogb").structures
    wanted = structpe.load(chains).predict(graphs).columns["carbons"]
    assert [np.float32(row["carbons"]) for row in rows] == wanted.tolist()
    single = tmp_path / "one.smi"
    single.write_text("CCF fluoroethane\n")
    lines = output("predict", chains, single).splitlines()
    assert lines[0] == "id,carbons"
    assert lines[1].startswith("fluoroethane,")
    assert len(lines) == 2


def test_the_command_writes_parquet(chains: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    _list(tmp_path / "two.smi", "CC a", "CCC b")
    output("predict", chains, tmp_path / "two.smi", "--out", tmp_path / "out.parquet")
    found = parquet.read_table(tmp_path / "out.parquet").to_pydict()
    graphs = read(tmp_path / "two.smi", features="ogb").structures
    assert found["id"] == ["a", "b"]
    assert found["carbons"] == structpe.load(chains).predict(graphs).columns["carbons"].tolist()


def test_the_command_says_what_it_cannot_do(chains: Path, tmp_path: Path) -> None:
    _list(tmp_path / "two.smi", "CC a")
    told = complaint("predict", chains, tmp_path / "two.smi", "--out", tmp_path / "out.xlsx")
    assert told.endswith("out.xlsx is not a table; give a name that ends in .csv or .parquet")
    told = complaint("predict", tmp_path, tmp_path / "two.smi", code=1)
    assert "holds no config.yaml" in told
    (tmp_path / "other.csv").write_text("id,molecule\na,CC\n")
    told = complaint("predict", chains, tmp_path / "other.csv", code=1)
    assert "there is no column" in told
    assert "give column=" in told
    assert output("predict", chains, tmp_path / "other.csv", "--option", "column=molecule").startswith("id,carbons\na,")


def test_windows_do_not_change_what_is_predicted(
    chains: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from structpe.cli import predict
    from structpe.cli.main import main

    _list(tmp_path / "many.smi", *("C" * (1 + i % 5) for i in range(11)))
    assert main(["predict", str(chains), str(tmp_path / "many.smi")]) == 0
    whole = capsys.readouterr().out
    monkeypatch.setattr(predict, "WINDOW", 3)
    assert main(["predict", str(chains), str(tmp_path / "many.smi")]) == 0
    parts = capsys.readouterr().out
    assert len(parts.splitlines()) == 12
    for mine, theirs in zip(parts.splitlines()[1:], whole.splitlines()[1:], strict=True):
        (a, x), (b, y) = mine.split(","), theirs.split(",")
        assert a == b
        assert float(x) == pytest.approx(float(y), rel=1e-4)


def test_a_run_is_loaded_by_its_kind(chains: Path) -> None:
    assert isinstance(structpe.load(chains), Predictor)
    model, signature = PredictionRun.of(chains).load()
    assert signature.names == ("carbons",)
    assert not model.training


def test_what_has_no_effect_on_a_score_is_refused(chains: Path) -> None:
    told = complaint("evaluate", chains, "--beam", "2")
    assert told == "--beam has no effect on a model that writes no texts; leave it out"
    told = complaint("evaluate", chains, chains.parent / "chains.csv", "--split", "valid")
    assert told == "--split has no effect beside FILE, which is scored as a whole; leave it out"
    told = complaint("evaluate", chains, "--on-error", "skip")
    assert told == "--on-error is an option of reading, and no file is given; give one, or leave --on-error out"
