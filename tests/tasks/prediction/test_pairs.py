"""Link prediction: queries, filtered ranks of a whole run against plain loops, and runs that are interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from structpe.datasets import load
from structpe.errors import ConfigError
from structpe.tasks.config import make, merged
from structpe.tasks.prediction.config import PredictionConfig, PredictionTraining
from structpe.tasks.prediction.sources import SOURCES, Data
from structpe.tasks.prediction.task import Prediction
from structpe.tasks.runs import load_run, train
from structpe.tasks.runs.prediction import PredictionRun
from structpe.tasks.training.lightning_module import Checkpoints
from tests.tasks.prediction.tiny import TRAINING

EMBEDDINGS = {"width": 16, "layers": 0, "attention": None, "message_passing": None}


def families(folder: Path, people: int = 24) -> Path:
    """A chain of parents: ``child`` is the other way of ``parent``, ``grandparent`` two steps of it."""
    triples = [f"p{i}\tparent\tp{i + 1}" for i in range(people - 1)]
    triples += [f"p{i + 1}\tchild\tp{i}" for i in range(people - 1)]
    triples += [f"p{i}\tgrandparent\tp{i + 2}" for i in range(people - 2)]
    triples += [f"p{i}\tis\t{'even' if i % 2 == 0 else 'odd'}" for i in range(people)]
    order = np.random.default_rng(0).permutation(len(triples))
    folder.mkdir(parents=True, exist_ok=True)
    for part, numbers in zip(
        ("train", "valid", "test"), np.split(order, [len(order) - 20, len(order) - 10]), strict=True
    ):
        (folder / f"{part}.txt").write_text("".join(triples[i] + "\n" for i in numbers), encoding="utf-8")
    return folder


def config(folder: Path, **changed: Any) -> PredictionConfig:
    data = {"name": "knowledge-graph", "folder": str(families(folder / "kg"))}
    parts = {
        "model": {**EMBEDDINGS, **changed.pop("model", {})},
        "training": merged(PredictionTraining, TRAINING, changed.pop("training", {})),
    }
    return make(PredictionConfig, {"data": data, "out": str(folder / "run"), **parts, **changed})


def made(given: PredictionConfig) -> tuple[PredictionRun, Data]:
    run = PredictionRun(given)
    chosen = run.read()
    model = run.model(run.learn(chosen))
    return run, SOURCES["pair"].data(given, chosen.benchmark, chosen.split, model, run.encodings)


def test_a_triple_asks_for_its_tail_and_for_its_head(tmp_path: Path) -> None:
    given = config(tmp_path)
    _, data = made(given)
    benchmark = load("knowledge-graph", given.data.folder)
    batch = data.collate(data.train[:3])
    triples = benchmark.targets[data.train[:3]].tolist()
    queries = [query for h, r, t in triples for query in ([h, r, 0], [t, r, 1])]
    assert batch.queries.tolist() == queries
    assert batch.target.tolist() == [[answer] for h, _, t in triples for answer in (t, h)]
    assert len(batch.graph) == 26  # 24 people, even, odd


def test_what_completes_a_query_in_any_split_is_left_out_of_its_rank(tmp_path: Path) -> None:
    given = config(tmp_path)
    _, data = made(given)
    triples = load("knowledge-graph", given.data.folder).targets.tolist()
    for part in (data.valid, data.test):
        batch = data.scored(part)
        for (node, relation, reverse), row in zip(batch.queries.tolist(), batch.target.tolist(), strict=True):
            known = {h if reverse else t for h, r, t in triples if (r, t if reverse else h) == (relation, node)}
            assert set(row) - {-1} == known
            assert row[0] in known
        assert data.scored.owners(batch).tolist() == [i // 2 for i in range(2 * len(part))]


@pytest.mark.parametrize("readout", ["distmult", "complex", "transe"])
def test_scores_of_a_run_are_those_of_plain_loops(readout: str, tmp_path: Path) -> None:
    given = config(tmp_path, model={"readout": readout})
    outcome = train(given)
    model, _ = PredictionRun.of(given.out).load()
    benchmark = load("knowledge-graph", given.data.folder)
    triples = benchmark.targets.tolist()
    data = made(given)[1]
    ranks = []
    with torch.no_grad():
        scores = model(data.collate(range(len(triples)))).tolist()
    for number in benchmark.splits[0].test.tolist():
        h, r, t = triples[number]
        for row, answer, known in (
            (scores[2 * number], t, {c for a, b, c in triples if (a, b) == (h, r)}),
            (scores[2 * number + 1], h, {a for a, b, c in triples if (b, c) == (r, t)}),
        ):
            left = [score for entity, score in enumerate(row) if entity == answer or entity not in known]
            above, equal = sum(s > row[answer] for s in left), sum(s == row[answer] for s in left)
            ranks.append(above + (equal + 1) / 2)
    expected = {f"hits@{k}": sum(rank <= k for rank in ranks) / len(ranks) for k in (1, 3, 10)}
    assert outcome.test == pytest.approx(sum(1 / rank for rank in ranks) / len(ranks), rel=1e-6)
    assert outcome.others == pytest.approx(expected)
    assert str(outcome).startswith(f"mrr {outcome.test:.4g}, hits@1 ")


def test_links_are_learned(tmp_path: Path) -> None:
    """Of 26 entities, a random order has an MRR of about 0.15."""
    training = {
        "steps": 150,
        "batch_size": 32,
        "validation": {"every": 50},
        "checkpoint_every": 150,
        "optimiser": {"learning_rate": 0.05},
    }
    assert train(config(tmp_path, model={"readout": "complex"}, training=training)).test > 0.4


def test_a_graph_network_may_make_the_vectors(tmp_path: Path) -> None:
    model = {"layers": 1, "message_passing": "gine", "norm": "layer", "readout": "distmult"}
    outcome = train(config(tmp_path, model=model, position={"name": "rwse", "encoding": {"name": "random-walk"}}))
    assert 0 < outcome.test <= 1
    assert load_run(outcome_folder := tmp_path / "run").load()[0].position.encodings, outcome_folder


def test_a_split_that_is_shared_out_is_scored_as_a_whole(tmp_path: Path) -> None:
    run, data = made(config(tmp_path))
    chosen = run.read()
    task = Prediction(run.model(run.learn(chosen)).eval(), chosen.benchmark.objective, [], data.scored)
    cpu = torch.device("cpu")
    with torch.no_grad():
        whole = task.scores(data.test, cpu, 0, 1, lambda mine: [mine])
        found = [task._score(data.test, range(share, len(data.test), 3), cpu) for share in range(3)]
        assert task.scores(data.test, cpu, 0, 3, lambda mine: found) == pytest.approx(whole, rel=1e-6)


def test_a_run_that_was_killed_ends_as_if_it_had_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    through = train(config(tmp_path, model={"input_dropout": 0.2}, out=str(tmp_path / "one")))
    half, usual = (
        config(tmp_path, model={"input_dropout": 0.2}, out=str(tmp_path / "two")),
        Checkpoints.on_train_batch_end,
    )

    def stopping(self: Checkpoints, trainer: Any, *given: Any, **named: Any) -> None:
        usual(self, trainer, *given, **named)
        if trainer.global_step == 6:
            raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "on_train_batch_end", stopping)
        with pytest.raises(RuntimeError, match="killed"):
            train(half)
    resumed = train(half)
    assert (resumed.test, resumed.valid, resumed.others) == (through.test, through.valid, through.others)
    one, two = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two"))
    assert one == two


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"sampling": {"parts": 64}},
            "here pairs of nodes are, some of them in each step: leave sampling out",
        ),
        (
            {"model": {"readout": "sum"}},
            "readout is 'sum', which has the level 'graph'; .* choose one of complex, dis",
        ),
        ({"model": {"readout": "complex", "width": 15}}, "model: width is 15; complex needs an even width"),
        (
            {"training": {"validation": {"metric": "accuracy"}}},
            "training.validation.metric takes 'official', 'loss' or 'mrr'; given is 'accuracy'",
        ),
    ],
)
def test_what_does_not_fit(changed: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        train(config(tmp_path, **changed))
