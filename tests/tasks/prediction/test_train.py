"""One run: what decides, what is looked at when, what is written, what is refused."""

from __future__ import annotations

import csv
import pickle
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import multiprocessing

from structpe.data.batch import Example
from structpe.datasets import load
from structpe.errors import ConfigError, EncodingError, ReadError, StructPEError
from structpe.objectives.regression import Regression
from structpe.tasks.prediction.report import Outcome
from structpe.tasks.prediction.sources import SOURCES
from structpe.tasks.prediction.task import Prediction
from structpe.tasks.runs import prediction, train
from structpe.tasks.runs.prediction import PredictionRun
from tests.representatives import only
from tests.tasks.changes import with_training
from tests.tasks.prediction.tiny import data_in, single

NODES = {"position": [], "model": {"message_passing": "gcn", "attention": None}}


def nodes(folder: Path, **changed: Any) -> Any:
    data = {"name": "minesweeper", "folder": str(data_in(folder))}
    return single(folder, data=data, **{**NODES, **changed})


def metrics(folder: str, name: str) -> dict[int, float]:
    with (Path(folder) / "metrics.csv").open() as file:
        return {int(row["step"]): float(row["value"]) for row in csv.DictReader(file) if row["metric"] == name}


def test_a_run_leaves_what_its_page_says(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    config = single(tmp_path)
    outcome = train(config)
    folder = Path(config.out)
    made = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    sealed = {"config.yaml", "position.json", "signature.json", "SHA256SUMS"}
    assert made == sealed | {"structpe.json", "model.safetensors", "metrics.csv", "tensorboard", "result.json"}
    assert any((folder / "tensorboard").glob("events.out.tfevents.*"))
    assert outcome == Outcome.load(folder)
    assert set(metrics(config.out, "dev_mae")) == {4, 8, 12}
    assert outcome.valid == min(metrics(config.out, "dev_mae").values())
    assert outcome.data == "ZINC-12k (stand-in training molecules)"
    assert outcome.note.startswith("official validation and test molecules")
    assert outcome.encoding_seconds > 0
    assert outcome.training.step_seconds > 0
    assert outcome.training.cpu_seconds > 0
    assert outcome.training.epochs == pytest.approx(12 / 5)  # 40 graphs in batches of 8
    assert outcome.training.peak_bytes > 50 * 2**20

    before = (folder / "model.safetensors").stat().st_mtime_ns
    assert train(replace(config, name="renamed")) == outcome
    assert (folder / "model.safetensors").stat().st_mtime_ns == before
    assert "this run is finished: mae" in capfd.readouterr().err
    other = replace(config, training=replace(config.training, steps=20, seed=5))
    with pytest.raises(
        ConfigError, match=r"another configuration; they differ in training\.steps, training\.seed\. Br"
    ):
        train(other)


def test_the_test_split_is_looked_at_once_at_the_end_by_the_best_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[tuple[Sequence[Example], dict[str, torch.Tensor]]] = []
    scores = Prediction.scores

    def told(self: Prediction, examples: Sequence[Example], *rest: Any) -> dict[str, float]:
        looked.append((examples, {name: t.clone() for name, t in self.model.state_dict().items()}))
        return scores(self, examples, *rest)

    monkeypatch.setattr(Prediction, "scores", told)
    course = iter([3.0, 1.0, 2.0])  # the last model is not the best
    monkeypatch.setattr(Prediction, "validate", lambda *given: {"loss": 1.0, "mae": next(course)})
    config = single(tmp_path)
    outcome = train(config)
    assert (outcome.training.best_step, outcome.valid) == (8, 1.0)
    wanted = np.load(tmp_path / "data" / "zinc12k_test.npz")["y"]
    ((examples, weights),) = looked
    assert [float(example.target[0]) for example in examples] == wanted.tolist()
    best = load_file(Path(config.out) / "model.safetensors")
    assert all(torch.equal(weights[name], best[name]) for name in best)


@pytest.mark.parametrize(
    ("make", "name", "course", "best_step", "steps"),
    [
        (single, "mae", [0.5, 0.4, 0.6, 0.45, 0.3], 2, 4),  # less is better: two in a row are worse than 0.4
        (nodes, "rocauc", [0.5, 0.4, 0.6, 0.45, 0.3, 0.9], 3, 5),
    ],
)
def test_it_stops_by_the_official_metric(
    make: Any, name: str, course: list[float], best_step: int, steps: int, tmp_path: Path, monkeypatch: Any
) -> None:
    left = iter(course)
    monkeypatch.setattr(Prediction, "validate", lambda *given: {"loss": 1.0, name: next(left)})
    result = train(make(tmp_path, training={"validation": {"every": 1, "patience": 2}})).training
    assert (result.best_step, result.steps, result.stopped_early) == (best_step, steps, True)
    assert result.best[name] == course[best_step - 1]


def test_a_split_that_is_shared_out_is_scored_as_a_whole(tmp_path: Path) -> None:
    """Against the mean over molecules that go through the model one at a time; shares are of unlike size."""
    task, examples = parts(single(tmp_path))
    examples = examples[:11]
    cpu = torch.device("cpu")
    with torch.no_grad():
        found = [task._score(examples, range(share, 11, 3), cpu) for share in range(3)]
        shared = task.scores(examples, cpu, 0, 3, lambda mine: found)
        alone = [float(task.model(task.collate([each]))) for each in examples]
    wanted = np.mean([abs(p - float(each.target[0])) for p, each in zip(alone, examples, strict=True)])
    assert shared["mae"] == pytest.approx(wanted, rel=1e-5)
    assert shared["loss"] == pytest.approx(wanted, rel=1e-5)


def parts(config: Any) -> tuple[Prediction, list[Example]]:
    """The task of a run with a fresh model, and its test examples."""
    data = load(config.data.name, config.data.folder)
    run = PredictionRun(config)
    model = run.model(run.learn(run.read()))
    made = SOURCES["graph"].data(config, data, data.splits[0], model.eval(), Path(config.out) / "encodings")
    return Prediction(model, data.objective, [], made.scored), list(made.test)


def test_the_seed_chooses_the_split(tmp_path: Path) -> None:
    config = nodes(tmp_path)
    data = load("minesweeper", config.data.folder)
    assert len(data.splits) == 3
    for seed, number in ((0, 0), (2, 2), (4, 1)):
        seeded = replace(config, training=replace(config.training, seed=seed))
        assert prediction._split(seeded, data) is data.splits[number]
        assert prediction._split(replace(seeded, split=1), data) is data.splits[1]
    with pytest.raises(ConfigError, match="split is 3; minesweeper has 3, counted from 0"):
        prediction._split(replace(config, split=3), data)
    none = data.splits[0]._replace(valid=np.array([], dtype=np.int64))
    waiting = with_training(replace(config, split=0), validation={"patience": 3})
    with pytest.raises(
        ConfigError, match=r"no validation split, which patience looks at; set training\.validation\.patience to 0"
    ):
        prediction._split(waiting, replace(data, splits=(none,)))


def test_nodes_are_learned(tmp_path: Path) -> None:
    """The label is seen in a noisy feature and in the neighbours' features: better than chance, if splits fit."""
    outcome = train(nodes(tmp_path, training={"steps": 60, "validation": {"every": 20}, "checkpoint_every": 60}))
    assert outcome.metric == "rocauc"
    assert outcome.test > 0.8


@pytest.fixture
def forks(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Processes of several devices are forks, which begin at once; what a new process would be sent is pickled here."""
    from structpe.tasks.training import fit

    strategy, sent = fit.DDPStrategy, []
    begin = multiprocessing.start_processes

    def begun(function: Any, args: list[Any], **how: Any) -> Any:
        sent.append(pickle.dumps((function, args[:4])))  # the last is a queue
        return begin(function, args=args, **how)

    monkeypatch.setattr(fit, "DDPStrategy", lambda **how: strategy(**{**how, "start_method": "fork"}))
    monkeypatch.setattr(multiprocessing, "start_processes", begun)
    return sent


@pytest.mark.slow
@pytest.mark.timeout(280)
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded, use of fork:DeprecationWarning")
def test_two_devices_do_what_one_does(tmp_path: Path, forks: list[bytes]) -> None:
    """Without dropout, whose draws differ, and with a norm over each node alone. New processes: in graph_to_text."""
    configs = [
        single(
            tmp_path / str(count),
            model={"norm": "layer", "dropout": 0.0},
            position={"name": "t5", "encoding": "undirected-distance"},
            training={"hardware": {"devices": count}},
        )
        for count in (1, 2)
    ]
    one, two = (train(config) for config in configs)
    assert len(forks) == 1
    for name in ("loss", "dev_mae", "dev_loss"):
        mine, theirs = (metrics(config.out, name) for config in configs)
        assert mine == pytest.approx(theirs, rel=1e-3)
    assert two.test == pytest.approx(one.test, rel=1e-3)


def test_unknown_targets_do_not_count(tmp_path: Path) -> None:
    told, known = torch.tensor([[1.0], [5.0]], requires_grad=True), torch.tensor([[2.5], [float("nan")]])
    total, count = Regression("graph", 1, "mae").loss(told, known)
    total.backward()
    assert (float(total.detach()), int(count)) == (1.5, 1)
    assert told.grad is not None
    assert told.grad.tolist() == [[-1.0], [0.0]]


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        (
            {"training": {"optimiser": {"learning_rate": 1e30}}},
            StructPEError,
            "training has diverged; lower training.optimiser.learning_rate",
        ),
        ({"position": "sinusoidal"}, EncodingError, "order"),
        (
            {"training": {"validation": {"metric": "accuracy"}}},
            ConfigError,
            "training.validation.metric takes 'official', 'loss' or 'mae'",
        ),
        (
            {"model": {"attention": None}, "position": "t5"},
            ConfigError,
            "model: the position model acts on attention only, and this model has none",
        ),
    ],
)
def test_what_cannot_be_trained(changed: Any, error: type[Exception], message: str, tmp_path: Path) -> None:
    with pytest.raises(error) as caught:
        train(single(tmp_path, **changed))
    assert message in str(caught.value)


def test_a_metric_that_there_is_not_is_told_before_graphs_are_encoded(tmp_path: Path) -> None:
    config = single(tmp_path, training={"validation": {"metric": "accuracy"}})
    with pytest.raises(
        ConfigError, match=r"^training\.validation\.metric takes 'official', 'loss' or 'mae'; given is 'accuracy'$"
    ):
        train(config)
    assert not (Path(config.out).parent / "encodings").exists()


def test_data_that_are_not_there_or_damaged(tmp_path: Path) -> None:
    config = single(tmp_path)
    with pytest.raises(ReadError, match=r"data: benchmark 'zinc-stand-in': there is no folder nowhere; give the one"):
        train(replace(config, data=replace(config.data, folder="nowhere")))
    with pytest.raises(ConfigError, match=r"data: option 'train' of benchmark .* takes a whole number; given is 'a'"):
        train(replace(config, data=replace(config.data, options={"train": "a"})))
    file = data_in(tmp_path) / "zinc12k_val.npz"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(ReadError, match=r"zinc12k_val\.npz: not a file of arrays \(File is not a zip file\)"):
        train(config)
    assert not (Path(config.out) / "config.yaml").exists()


@pytest.mark.parametrize("model", only([{}, {"head_layers": 1}, {"readout": "sum"}], {"readout": "sum"}))
def test_numbers_of_any_scale_are_learned_from_their_median_on(model: dict[str, Any], tmp_path: Path) -> None:
    """Twelve steps of Adam could not come from 0 to a thousand."""
    data = data_in(tmp_path)
    for name in ("zinc_altpool23k", "zinc12k_val", "zinc12k_test"):
        arrays = dict(np.load(data / f"{name}.npz"))
        np.savez(data / f"{name}.npz", **{**arrays, "y": arrays["y"] + 1000})
    assert train(single(tmp_path, model=model)).test < 50


@pytest.mark.parametrize(
    ("device", "many", "pinned"), [("cuda", True, True), ("cuda", False, False), ("cpu", True, False)]
)
def test_batches_of_many_graphs_are_made_for_the_device(
    device: str, many: bool, pinned: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No GPU is needed to see what is handed to the training."""
    given: list[Any] = []
    monkeypatch.setattr("structpe.tasks.training.fit.fit", lambda *words, **named: given.extend(words))
    for place in ("training.folder", "prediction.sources"):
        monkeypatch.setattr(f"structpe.tasks.{place}.device_of", lambda config: torch.device(device))
    run = PredictionRun(single(tmp_path) if many else nodes(tmp_path))
    data = run.read()
    run._train(run.setup(data, run.learn(data)), fresh=True)
    assert given[1].pinned is pinned
    if many:
        assert given[1].collate.device == device
