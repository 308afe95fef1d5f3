"""Two processes that share the parameters out do what one does, and either goes on with what the other has begun."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from structpe.tasks.runs import train
from structpe.tasks.training.result import KEY, VERSION, WEIGHTS, digest
from tests.tasks.changes import with_training
from tests.tasks.graph_to_text.tiny import changed, tiny
from tests.tasks.prediction.tiny import single

pytestmark = [pytest.mark.slow, pytest.mark.timeout(280)]
TWO: dict[str, Any] = {"hardware": {"devices": 2, "strategy": "fsdp"}}


def state(config: Any, step: int) -> dict[str, torch.Tensor]:
    return load_file(Path(config.out) / "checkpoints" / f"step-{step:08}" / "tensors.safetensors")


def test_text_is_learned_as_by_one_and_resumes_with_either(tmp_path: Path) -> None:
    """With a search in each validation, which calls parts of the model. Without dropout, whose draws differ."""
    configs = {}
    for name, training in (("one", {}), ("two", TWO)):
        (tmp_path / name).mkdir()
        config = tiny(tmp_path / name, steps=8, validation={"metric": "chrf"}, **training)
        configs[name] = changed(config, model=replace(config.model, dropout=0.0))
    one, two = (train(config) for config in configs.values())
    assert two.best == pytest.approx(one.best, rel=1e-3)
    mine, theirs = (state(config, 8) for config in configs.values())
    assert list(mine) == list(theirs)
    for name in mine:
        # The bias of keys moves all scores of a query alike: its gradient is rounding error, which Adam makes large.
        if "key_value.bias" not in name and name.startswith("state_dict."):
            torch.testing.assert_close(theirs[name], mine[name], rtol=1e-3, atol=1e-4)

    # As if the two had been killed after their sixth step: they go on, and so does one alone with the same checkpoint.
    ended = []
    for name, training in (("both", TWO), ("alone", {"hardware": {"devices": 1, "strategy": "ddp"}})):
        config = configs["two"]
        config = with_training(changed(config, out=str(tmp_path / name)), **training)
        shutil.copytree(configs["two"].out, config.out)
        shutil.rmtree(Path(config.out) / "checkpoints" / "step-00000008")
        (Path(config.out) / "result.json").unlink()
        written = Path(config.out) / "config.yaml"
        hardware = config.training.hardware
        written.write_text(written.read_text().replace("devices: 2", f"devices: {hardware.devices}"))
        written.write_text(written.read_text().replace("strategy: fsdp", f"strategy: {hardware.strategy}"))
        (Path(config.out) / "SHA256SUMS").unlink()
        if name == "alone":  # another run by its configuration: weights that name no run are taken
            weights = load_file(Path(config.out) / WEIGHTS)
            save_file(weights, Path(config.out) / WEIGHTS, metadata={KEY: f"{VERSION}:{digest(weights)}"})
        train(config)
        ended.append(state(config, 8))
    for name in theirs:
        assert torch.equal(ended[0][name], theirs[name]), name
        if "key_value.bias" not in name and name.startswith("state_dict."):
            torch.testing.assert_close(ended[1][name], theirs[name], rtol=1e-3, atol=1e-4)


def test_prediction_is_learned_as_by_one(tmp_path: Path) -> None:
    """Of a model that has parameters without a part in the loss; the processes read the encodings from the store."""
    same: dict[str, Any] = {"model": {"norm": "layer", "dropout": 0.0}, "position": "t5"}
    configs = [single(tmp_path / name, **with_encoding(same), training=how) for name, how in (("1", {}), ("2", TWO))]
    one, two = (train(config) for config in configs)
    assert two.test == pytest.approx(one.test, rel=1e-3)
    assert two.valid == pytest.approx(one.valid, rel=1e-3)
    mine, theirs = (load_file(Path(config.out) / "model.safetensors") for config in configs)
    assert list(mine) == list(theirs)
    for name in mine:
        if "key_value.bias" not in name:
            torch.testing.assert_close(theirs[name], mine[name], rtol=1e-3, atol=1e-4)


def with_encoding(same: dict[str, Any]) -> dict[str, Any]:
    return {**same, "position": {"name": "t5", "encoding": "undirected-distance"}}
