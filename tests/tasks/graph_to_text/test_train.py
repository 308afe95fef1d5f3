"""From graphs to a trained model, its texts and scores."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import structpe
from structpe.data import chunks
from structpe.data.bpe_dropout import ResampledExamples
from structpe.errors import ConfigError, EncodingError, PositionError, ReadError, StoreError, UnsupportedTerm
from structpe.formats import read
from structpe.nn.search import SearchConfig
from structpe.tasks.graph_to_text import task
from structpe.tasks.graph_to_text.config import GraphToTextConfig
from structpe.tasks.graph_to_text.generator import TextModel
from structpe.tasks.runs import train
from structpe.tasks.runs.text import GraphToTextRun
from structpe.tasks.training.result import Result, recorded_digest
from tests.tasks.changes import with_training
from tests.tasks.graph_to_text.tiny import changed, split, tiny


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> GraphToTextConfig:
    """Of a finished run, long enough to know its six texts by heart."""
    folder = tmp_path_factory.mktemp("trained")
    config = tiny(
        folder,
        steps=80,
        optimiser={"schedule": "constant", "learning_rate": 0.04},
        batch_size=6,
        validation={"every": 40},
        checkpoint_every=40,
    )
    six = split(folder, "train", 6)
    config = changed(config, data=replace(config.data, train=six, dev=six), model=replace(config.model, dropout=0.0))
    train(config)
    return config


def metrics(folder: str) -> dict[str, list[float]]:
    values: dict[str, list[float]] = {}
    with (Path(folder) / "metrics.csv").open() as file:
        for row in csv.DictReader(file):
            values.setdefault(row["metric"], []).append(float(row["value"]))
    return values


def test_the_loss_falls(config: GraphToTextConfig) -> None:
    losses = metrics(config.out)
    assert losses["loss"][-1] < 0.4 * losses["loss"][0]
    assert losses["dev_loss"][-1] < losses["dev_loss"][0]
    assert len(losses["loss"]) == 40
    assert any((Path(config.out) / "tensorboard").glob("events.*"))


@pytest.mark.slow
def test_a_line_comes_every_few_steps(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """They came at 10, 30 and 50: a line was left out where the one before was not a while ago."""
    config = tiny(tmp_path, steps=50, logs={"every": 10}, validation={"every": 50}, checkpoint_every=50)
    train(changed(config, data=replace(config.data, dev=None)))
    told = re.findall(r"^step (\d+) of 50  loss \d", capfd.readouterr().err, re.MULTILINE)
    assert told == ["10", "20", "30", "40", "50"]
    with (tmp_path / "run" / "metrics.csv").open() as file:
        logged = [row["step"] for row in csv.DictReader(file) if row["metric"] == "loss"]
    assert logged == told


def test_texts_come_in_the_order_of_the_items(config: GraphToTextConfig) -> None:
    assert isinstance(config.data.train, str)
    items = read(config.data.train, "amr").items
    done: list[tuple[int, int]] = []
    generator = structpe.load(config.out)
    texts = list(generator.generate(config.data.train, batch_size=3, progress=lambda *each: done.append(each)))
    assert [text.id for text in texts] == [item.id for item in items]
    assert [text.references for text in texts] == [item.texts for item in items]
    assert done == [(i, 6) for i in range(1, 7)]
    assert [text.text for text in texts[:5]] == [next(generator.generate([item])).text for item in items[:5]]


def test_what_it_saw_often_enough_it_can_write(config: GraphToTextConfig) -> None:
    assert isinstance(config.data.train, str)
    scores, texts = structpe.load(config.out).evaluate(config.data.train, SearchConfig(beam=1, longest=40))
    assert len(texts) == 6
    # How a processor rounds decides how many texts are learned by then: 5 of 6 after 90 steps, a chrF++ of 98, on one.
    assert scores.chrf > 60
    assert sum(text.text == text.references[0] for text in texts) > 1
    assert "|nw:2|" in scores.chrf_signature


def test_the_model_is_the_best_one(config: GraphToTextConfig) -> None:
    run = GraphToTextRun.of(config.out)
    (model, preparer), again = run.load(), run.config
    assert again == config
    assert not model.training
    assert preparer.vocabulary_size == 300


def test_a_finished_run_says_so(config: GraphToTextConfig, capfd: pytest.CaptureFixture[str]) -> None:
    before = (Path(config.out) / "model.safetensors").stat().st_mtime_ns
    result = train(with_training(changed(config, name="renamed"), hardware={"accelerator": "auto", "workers": 1}))
    assert result.steps == 80
    assert "this run is finished: 80 steps, as many as were asked for; best after" in capfd.readouterr().err
    assert (Path(config.out) / "model.safetensors").stat().st_mtime_ns == before


def test_a_run_of_another_configuration_is_not_gone_on_with(config: GraphToTextConfig) -> None:
    other = changed(config, training=replace(config.training, steps=70, seed=2), data=replace(config.data, test="x"))
    with pytest.raises(
        ConfigError, match=r"holds a run of another configuration; they differ in training.steps, training.seed\. Bring"
    ):
        train(other)


def test_the_same_seed_gives_the_same_model_and_a_fresh_run_begins_anew(tmp_path: Path) -> None:
    config = tiny(
        tmp_path,
        steps=2,
        validation={"every": 2},
        accumulate=2,
        optimiser={"schedule": "cosine", "clip": 0.0, "warmup": 1},
    )
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine.txt").write_text("not of the run")
    digests = []
    for seed in (1, 1, 2):
        train(changed(config, training=replace(config.training, seed=seed)), fresh=True)
        digests.append((tmp_path / "run" / "model.safetensors").read_bytes())
    assert digests[0] == digests[1] != digests[2]
    assert (tmp_path / "run" / "mine.txt").exists()


def test_training_stops_when_the_model_gets_no_better(tmp_path: Path) -> None:
    config = tiny(
        tmp_path, steps=50, optimiser={"learning_rate": 1e-9}, validation={"every": 1, "patience": 3, "metric": "chrf"}
    )
    result = train(config)
    assert result.stopped_early
    assert (result.steps, result.best_step) == (4, 1)
    assert set(result.best) == {"loss", "bleu", "chrf"}
    assert "4 steps, as the model got no better; best after 1: loss" in str(result)


def test_texts_of_a_part_of_the_split_decide_and_are_greedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[list[int], SearchConfig]] = []
    write = TextModel.write

    def told(self: Any, examples: Any, numbers: Any, batch_size: int, config: SearchConfig, device: Any) -> Any:
        asked.append((sorted(numbers), config))
        return write(self, examples, numbers, batch_size, config, device)

    monkeypatch.setattr(TextModel, "write", told)
    config = changed(tiny(tmp_path, steps=4, validation={"every": 2, "metric": "bleu"}), dev_texts=4)
    result = train(config)
    assert set(result.best) == {"loss", "bleu", "chrf"}
    assert result.best["bleu"] == max(metrics(config.out)["dev_bleu"])
    (first, search), (second, _) = asked
    assert first == second
    assert (len(first), set(first) <= set(range(6))) == (4, True)
    assert search == SearchConfig(beam=1, longest=12)
    asked.clear()
    train(changed(config, dev_texts=0, training=replace(config.training, seed=2, steps=2)), fresh=True)
    assert asked[0][0] == list(range(6))
    with pytest.raises(ConfigError, match="dev_texts is -1; give a number of items, or 0 for all"):
        changed(config, dev_texts=-1)


def test_the_model_that_is_scored_and_kept_is_the_mean_of_the_last_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = tiny(tmp_path, steps=6, validation={"every": 2}, checkpoint_every=6)
    seen: list[dict[str, torch.Tensor]] = []
    validate = task.GraphToText.validate

    def told(self: Any, *given: Any) -> dict[str, float]:
        seen.append({name: each.clone() for name, each in self.model.state_dict().items()})
        return validate(self, *given)

    monkeypatch.setattr(task.GraphToText, "validate", told)
    train(plain)
    alone = seen.copy()
    seen.clear()
    train(with_training(changed(plain, out=str(tmp_path / "mean")), validation={"average": 2}))
    for name, last in seen[2].items():
        torch.testing.assert_close(last, (alone[1][name] + alone[2][name]) / 2, rtol=1e-6, atol=1e-7)
        assert torch.equal(seen[0][name], alone[0][name])
    kept = load_file(tmp_path / "mean" / "model.safetensors")
    best = Result.load(tmp_path / "mean")
    assert best is not None
    assert all(torch.equal(kept[name], each) for name, each in seen[best.best_step // 2 - 1].items() if name in kept)


def test_with_less_precision_without_validation_and_with_workers(tmp_path: Path) -> None:
    config = tiny(tmp_path, steps=4, hardware={"precision": "bf16-mixed", "workers": 1})
    config = changed(config, data=replace(config.data, dev=None), model=replace(config.model, copy_units=True))
    result = train(config)
    assert (result.steps, result.best_step, result.best) == (4, 4, {})
    weights = GraphToTextRun.of(config.out).load()[0].state_dict()
    assert all(tensor.dtype == torch.float32 for tensor in weights.values())


def test_subwords_vary_in_training_only(tmp_path: Path) -> None:
    config = tiny(tmp_path)
    run = GraphToTextRun(changed(config, prepare=replace(config.prepare, bpe_dropout=0.3)))
    data = run.read()
    learned = run.learn(data)
    work = run.setup(data, learned)
    assert isinstance(work.examples, ResampledExamples)
    first, second = ([each.target.tolist() for each in work.examples.of(epoch, range(20))] for epoch in (0, 1))
    assert sum(one != other for one, other in zip(first, second, strict=True)) > 15
    assert isinstance(work.task, task.GraphToText)
    for example, item in zip(work.task.dev, data.dev, strict=True):
        assert example.target.tolist()[1:-1] == learned[0].tokenizer.encode(item.texts[0]).ids
    without = GraphToTextRun(config)
    assert isinstance(without.setup(data, without.learn(data)).examples, list)


def test_what_encodings_learn_of_the_training_graphs_is_kept(tmp_path: Path) -> None:
    config = tiny(tmp_path, steps=1)
    config = changed(config, position=["sinusoidal", "zhu-sum"], prepare=replace(config.prepare, graph="plain"))
    train(config)
    model, _ = GraphToTextRun.of(config.out).load()
    learned = [option for encoding in model.encoder.position.encodings for option in encoding.options().items()]
    assert any(":ARG0" in str(value) for _, value in learned)


def test_a_run_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(
        StoreError, match=r"holds no config.yaml; give the folder of a run, the 'out' of its configuration"
    ):
        GraphToTextRun.of(tmp_path).load()
    config = tiny(tmp_path)
    (tmp_path / "run").mkdir()
    from structpe.tasks.config import save

    save(config, tmp_path / "run" / "config.yaml")
    with pytest.raises(StoreError, match=r"holds no model.safetensors; training writes it at the first validation"):
        GraphToTextRun.of(config.out).load()


def test_data_that_cannot_be_learned_from(tmp_path: Path) -> None:
    config = tiny(tmp_path)
    with pytest.raises(ReadError, match=r"absent\.txt: there is no such file or folder; check the path"):
        train(changed(config, data=replace(config.data, train=str(tmp_path / "absent.txt"))))
    (tmp_path / "mute.txt").write_text("# ::id mute.1\n(a / ask-02)\n")
    with pytest.raises(
        ConfigError,
        match=r"mute\.txt: item 'mute.1' has no text to learn from .*; beside the graph there are: 'id', 'epigraph",
    ):
        train(changed(config, data=replace(config.data, train=str(tmp_path / "mute.txt"))), fresh=True)


def test_a_fresh_run_that_cannot_begin_leaves_the_earlier_one(tmp_path: Path) -> None:
    config = tiny(tmp_path, steps=1)
    train(config)
    before = {file.name: file.read_bytes() for file in (tmp_path / "run").iterdir() if file.is_file()}
    for wrong, error, text in [
        (
            {"position": "graformr"},
            PositionError,
            "no position model named 'graformr'. Did you mean 'graformer'",
        ),
        ({"decoder_position": "graformer"}, PositionError, "a decoder cannot use .* choose .* 'sinusoidal' or 't5'"),
        (
            {"decoder_position": {"name": "learned", "max_length": 4}},
            PositionError,
            "has 4 positions, this batch needs",
        ),
        (
            {"position": {"name": "learned", "max_length": 4}},
            PositionError,
            "has 4 positions, this batch needs",
        ),
        ({"position": "tpe"}, EncodingError, "it needs a tree whose edges lead away from the root"),
        ({"data": replace(config.data, dev=str(tmp_path / "absent.txt"))}, ReadError, "no such file or folder"),
    ]:
        with pytest.raises(error, match=text):
            train(changed(config, **wrong), fresh=True)
    assert {file.name: file.read_bytes() for file in (tmp_path / "run").iterdir() if file.is_file()} == before


def test_a_run_that_could_not_begin_is_in_nobodys_way(tmp_path: Path) -> None:
    config = tiny(tmp_path, steps=1)
    for wrong in (
        changed(config, position="tpe"),  # which is known when the graphs are encoded
        changed(config, position="shaw", model=replace(config.model, kernel="sdpa")),  # and this when a graph is read
    ):
        with pytest.raises((EncodingError, UnsupportedTerm)):
            train(wrong)
    assert train(config).steps == 1


@pytest.mark.slow
def test_a_run_does_not_depend_on_the_processes_that_encode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "STRUCTURES", 8)
    weights = []
    for jobs in (1, 2):
        (tmp_path / str(jobs)).mkdir()
        config = tiny(tmp_path / str(jobs), steps=2, hardware={"jobs": jobs})
        train(config)
        weights.append(recorded_digest(Path(config.out, "model.safetensors")))
    assert weights[0] == weights[1]


def test_more_gpus_than_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for accelerator, seen in (("gpu", 0), ("gpu", 1), ("auto", 1)):
        monkeypatch.setattr(torch.accelerator, "device_count", lambda seen=seen: seen)
        with pytest.raises(
            ConfigError, match=rf"training.hardware.devices is 2 .*{accelerator}.* sees {seen} GPUs here; ask for"
        ):
            train(tiny(tmp_path, hardware={"accelerator": accelerator, "devices": 2}))
    assert not (tmp_path / "run").exists()


def test_a_run_in_the_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "run").touch()
    with pytest.raises(ConfigError, match=r"run, where the run is to be, is a file; choose a folder \(out\)$"):
        train(tiny(tmp_path))


def test_damaged_files_of_a_run_are_named(tmp_path: Path) -> None:
    config = tiny(tmp_path, steps=1)
    train(config)
    folder = tmp_path / "run"
    for name in ("config.yaml", "tokenizer.json", "prepare.json", "positions.json", "model.safetensors"):
        file = folder / name
        content = file.read_bytes()
        flipped = bytearray(content)
        flipped[len(content) // 2] ^= 4
        for wrong in (b"", b"{}", b"[]", b"\xff\xfe", content[: len(content) // 2], bytes(flipped)):
            file.write_bytes(wrong)
            with pytest.raises(StoreError, match=rf"{name}.*; restore it, or train afresh") as caught:
                GraphToTextRun.of(config.out).load()
            assert str(caught.value).startswith(str(folder))
            if name != "model.safetensors":  # a finished run does not read its weights again
                with pytest.raises(StoreError, match=rf"{name}.*; restore it, or train afresh"):
                    train(config)
        file.write_bytes(content)
    GraphToTextRun.of(config.out).load()
    result = folder / "result.json"
    for wrong_text in ("{", result.read_text().replace('"steps": 1', '"steps": 2')):
        result.write_text(wrong_text)
        with pytest.raises(StoreError, match=r"result.json: the file is damaged .*; remove it, and the training goes"):
            train(config)
    (folder / "config.yaml").unlink()
    with pytest.raises(StoreError, match=r"the folder is damaged: it has no config.yaml; restore it, or train"):
        train(config)
    (folder / "SHA256SUMS").unlink()
    with pytest.raises(StoreError, match=r"holds files of a training, but no config.yaml; restore it, or train"):
        train(config)


@pytest.mark.parametrize("out", ["", "  "])
def test_a_run_without_a_folder_is_refused(tmp_path: Path, out: str) -> None:
    with pytest.raises(ConfigError, match=r"^out is empty; give the folder of the run, such as runs/first, or \. for"):
        tiny(tmp_path, steps=1).__class__(tiny(tmp_path).data, out=out)
