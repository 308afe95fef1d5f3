"""Configurations: what is wrong is said in one sentence, and what is right survives writing and reading."""

from __future__ import annotations

from pathlib import Path

import pytest

from structpe.errors import ConfigError
from structpe.tasks import config as configurations
from structpe.tasks.graph_to_text.config import GraphToTextConfig
from structpe.tasks.runs import load_config, train
from tests.together import together

TEXT = """
data: {train: train.txt, dev: [a.txt, b.txt]}
training: {steps: 10, optimiser: {learning_rate: 1e-3}, hardware: {precision: bf16-mixed}}
model: {message_passing: gine}
position: [sinusoidal, {name: t5, encoding: {name: distance, max_distance: 4}}]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(TEXT)
    return path


def test_a_file_and_overrides(file: Path) -> None:
    config = load_config(file, ["training.steps=20", "decoder_position={name: t5}", "data.dev=", "data.test=c.txt"])
    assert (config.training.steps, config.training.optimiser.learning_rate) == (20, 1e-3)
    assert config.data.train == "train.txt"
    assert (config.data.dev, config.data.test) == (None, "c.txt")
    assert config.model.message_passing == "gine"
    assert config.position == [
        "sinusoidal",
        {"name": "t5", "encoding": {"name": "distance", "max_distance": 4}},
    ]
    assert config.decoder_position == {"name": "t5"}


def test_writing_and_reading_give_the_same(file: Path, tmp_path: Path) -> None:
    config = load_config(file)
    configurations.save(config, tmp_path / "again.yaml")
    assert load_config(tmp_path / "again.yaml") == config
    assert configurations.make(GraphToTextConfig, configurations.to_dict(config)) == config


def test_differences_are_named_by_their_keys(file: Path) -> None:
    one, other = load_config(file), load_config(file, ["training.steps=11", "position=t5", "data.dev=[a.txt]"])
    assert configurations.differences(one, other) == ["data.dev", "training.steps", "position"]
    assert configurations.differences(one, one) == []


@together(
    "override, text",
    [
        (
            "training.stepz=3",
            r"there is no key named 'training.stepz'\. Did you mean 'training.steps'\? Known: training",
        ),
        (
            "training.learning_rate=3",
            r"named 'training.learning_rate'\. Did you mean 'training.optimiser.learning_rate'\? Known: ",
        ),
        ("training.validate_every=3", r"Did you mean 'training.validation.every'\? Known: training.steps, training"),
        ("training.jobs=3", r"Did you mean 'training.hardware.jobs'\? Known: training.steps, training.batch_size"),
        ("training.optimiser.rate=3", r"no key named 'training.optimiser.rate'.* Known: training.optimiser.name, "),
        ("training.optimiser.warmup=-1", "^training.optimiser.warmup is -1; it must be 0 or more$"),
        ("training.optimiser.warmup=much", "^training.optimiser.warmup takes a whole number; given is 'much'$"),
        ("training.optimiser=SGD", "^training.optimiser takes a mapping; given is 'SGD'$"),
        ("trainig.steps=3", r"there is no key named 'trainig'\. Did you mean 'training'\? Known: data, prepare, model"),
        ("training.steps=many", "^training.steps takes a whole number; given is 'many'$"),
        (
            "training.hardware.precision=16",
            "^training.hardware.precision takes one of 'float32', 'bf16-mixed'; given is 16$",
        ),
        (
            "model.message_passing=gnn",
            "^model.message_passing: there is no convolution named 'gnn'. .*; or null for none$",
        ),
        ("data.train=[1, 2]", r"^data.train\[0\] takes text; given is 1$"),
        ("data.train=3", "^data.train takes text or a list of texts or null; given is 3$"),
        ("training=3", "^training takes a mapping; given is 3$"),
        (
            "data.train.x=3",
            "'data.train.x=3': data.train is 'train.txt', which has no key; give all of it: data.train=",
        ),
        ("training.steps", "^'training.steps' is not an override; write key=value, such as training.steps=100$"),
        ("training.steps={", "^'training.steps={': the value is not YAML"),
        ("training.steps=0", "^training.steps is 0; it must be 1 or more$"),
        ("training.steps=", "^training.steps takes a whole number; given is null$"),
        ("out=", "^out takes text; given is null$"),
        ("model.heads=0", "^model.heads is 0; it must be 1 or more$"),
        ("model.feedforward=-5", "^model.feedforward is -5; it must be 1 or more$"),
        ("model.dropout=1", "^model.dropout is 1.0; it must be 0 or more and below 1$"),
        (
            "model.kernel=fats",
            "^model.kernel: there is no attention kernel named 'fats'. Known: auto, ",
        ),
        ("search.beam=0", "^search.beam is 0; it must be 1 or more$"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(file: Path, override: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text) as caught:
        load_config(file, [override])
    assert "\n" not in str(caught.value)


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^there is no configuration file .*absent.yaml; check the path$"):
        load_config(tmp_path / "absent.yaml")
    told = r"^data\.train is null, and no items are given; name a file or folder \(data\.train\), or give items in Pyth"
    with pytest.raises(ConfigError, match=told):
        train(load_config(None))
    (tmp_path / "bad.yaml").write_text("a: b: c")
    with pytest.raises(
        ConfigError, match=r"bad.yaml: the file is not YAML: mapping values are not allowed .*line 1, column 5"
    ):
        load_config(tmp_path / "bad.yaml")
    (tmp_path / "list.yaml").write_text("[1]")
    with pytest.raises(ConfigError, match=r"list.yaml: a configuration is a mapping of keys; the file holds a list$"):
        load_config(tmp_path / "list.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"binary.yaml: the file is not UTF-8 text \(byte 0\); give a YAML file$"):
        load_config(tmp_path / "binary.yaml")
    with pytest.raises(ConfigError, match=r" is a folder; give the configuration file in it$"):
        load_config(tmp_path)
    (tmp_path / "twice.yaml").write_text("data: {train: a}\ntraining:\n  seed: 1\n  steps: 2\n  seed: 3\n")
    with pytest.raises(
        ConfigError, match=r"twice.yaml: line 5, column 3: the key 'seed' is given twice; keep one of them$"
    ):
        load_config(tmp_path / "twice.yaml")
    (tmp_path / "wrong.yaml").write_text("data: {train: a}\ntraining: {steps: many}")
    with pytest.raises(ConfigError, match=r"wrong.yaml: training.steps takes a whole number; given is 'many'$"):
        load_config(tmp_path / "wrong.yaml")
    (tmp_path / "unknown.yaml").write_text("dta: {}")
    with pytest.raises(ConfigError, match=r"unknown.yaml: there is no key named 'dta'. Did you mean 'data'\?"):
        load_config(tmp_path / "unknown.yaml")
