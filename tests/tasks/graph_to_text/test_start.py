"""A run begins with the weights and the vocabulary of another, or says why it cannot."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import structpe
from structpe.errors import ConfigError, StoreError
from structpe.tasks.graph_to_text.config import GraphToTextConfig
from structpe.tasks.runs import train
from tests.tasks.changes import with_training
from tests.tasks.graph_to_text.tiny import changed, resumed, split, tiny


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> GraphToTextConfig:
    """Of a finished run with 20 graphs."""
    config = tiny(tmp_path_factory.mktemp("first"), steps=4, validation={"every": 4}, checkpoint_every=4)
    train(config)
    return config


def later(first: GraphToTextConfig, folder: Path, **training: Any) -> GraphToTextConfig:
    """Of a run that begins with the first one, with other data and another dropout."""
    config = tiny(folder, **{"steps": 4, "validation": {"every": 4}, "checkpoint_every": 2, **training})
    data = replace(config.data, train=split(folder, "train", 9))
    return changed(config, data=data, start=first.out, model=replace(config.model, dropout=0.3))


def test_it_begins_with_the_best_weights_and_the_vocabulary(first: GraphToTextConfig, tmp_path: Path) -> None:
    config = later(first, tmp_path, steps=1, optimiser={"learning_rate": 1e-12, "weight_decay": 0.0})
    train(config)
    before, after = (load_file(Path(each.out) / "model.safetensors") for each in (first, config))
    assert before.keys() == after.keys()
    for name, tensor in before.items():
        torch.testing.assert_close(after[name], tensor, rtol=0, atol=1e-9)
    for name in ("tokenizer.json", "positions.json"):
        assert (tmp_path / "run" / name).read_bytes() == (Path(first.out) / name).read_bytes()


def test_it_resumes_to_the_bit_and_is_used_without_the_first(first: GraphToTextConfig, tmp_path: Path) -> None:
    shutil.copytree(first.out, tmp_path / "first")
    config = changed(later(first, tmp_path), start=str(tmp_path / "first"))
    config = changed(config, prepare=replace(config.prepare, bpe_dropout=0.2))
    whole, again = resumed(config)
    assert again == whole
    run = tmp_path / "run"
    (run / "result.json").unlink()
    start = tmp_path / "first"
    (start / "model.safetensors").write_bytes(whole)
    with pytest.raises(StoreError, match=r"first/model\.safetensors: the weights are those of another run: "):
        train(config)
    train(with_training(changed(first, out=str(start)), steps=1, optimiser={"warmup": 0}), fresh=True)
    with pytest.raises(StoreError, match=r"have changed since this run began: weights to start from\. Restore"):
        train(config)
    shutil.rmtree(start)
    assert len(list(structpe.load(run, "cpu").generate(str(config.data.dev)))) == 6


def test_what_it_cannot_begin_with(first: GraphToTextConfig, tmp_path: Path) -> None:
    config = later(first, tmp_path)
    wrong = changed(config, model=replace(config.model, width=32), position="nope")
    with pytest.raises(
        ConfigError, match=r"^start: .* has another model; they differ in model\.width, position\. Give"
    ):
        train(wrong)
    with pytest.raises(ConfigError, match=r"^start: .* is the folder of this run itself; choose another one \(out\)$"):
        train(changed(config, out=first.out))
    with pytest.raises(StoreError, match=r"^start: .*nowhere holds no config\.yaml; give the folder of a run"):
        train(changed(config, start=str(tmp_path / "nowhere")))
    shutil.copytree(first.out, tmp_path / "cut")
    (tmp_path / "cut" / "result.json").unlink()
    with pytest.raises(ConfigError, match=r"^start: the run in .*cut is not finished; finish it first$"):
        train(changed(config, start=str(tmp_path / "cut")))
    assert not (tmp_path / "run" / "config.yaml").exists()
