"""Every field of a checkpoint matters: where one is changed, what goes on from it ends otherwise, or not at all.

So a field that is written and not read again, or read and not used, shows. Tried are all fields that callbacks of ours
write, the weights and the states of the optimizer; not the counters and options that Lightning and PyTorch write.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from structpe.tasks.prediction.config import PredictionConfig
from structpe.tasks.runs import train
from structpe.tasks.runs.prediction import PredictionRun
from structpe.tasks.training import checkpoint
from tests.tasks.prediction.tiny import single

Keys = tuple[str | int, ...]
OPTIONS = {
    "steps": 10,
    "checkpoint_every": 5,
    "validation": {"every": 2, "average": 3, "patience": 9},
    "logs": {"every": 3},
}
"""A checkpoint lies between two validations and two lines of the log, of which each has something to remember."""
STEP = "step-00000005"
OURS = re.compile(r"callbacks\.|state_dict\.\*|optimizer_states\.#\.(state|param_groups\.#\.(lr|weight_decay)$)")
COSTS = ("step_seconds", "seconds", "cpu_seconds", "peak_bytes")


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> PredictionConfig:
    """A training that has no more than its first checkpoint."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PredictionRun, "keeps_checkpoints", True)
        config = single(tmp_path_factory.mktemp("begun"), training=OPTIONS)
        train(config)
    run = Path(config.out)
    (run / "result.json").unlink()
    for each in (run / "checkpoints").iterdir():
        if each.name != STEP:
            shutil.rmtree(each)
    return config


def ended(config: PredictionConfig, folder: Path, keys: Keys = (), improves: bool = True) -> Any:
    """What a training comes to that goes on from the checkpoint: all that it writes, or its error.

    Args:
        config: of the training.
        folder: for it to go on in.
        keys: the field that is changed before; none if empty.
        improves: whether a model may get better than the best so far.
    """
    shutil.copytree(config.out, folder)
    file = folder / "checkpoints" / STEP
    state = checkpoint.load(file)
    if not improves:
        put(state, ("callbacks", "Validation", "best", "mae"), lambda _: -1.0)
    if keys:
        put(state, keys, other)
    shutil.rmtree(file)
    checkpoint.save(state, file)
    try:
        train(replace(config, out=str(folder)))
    except Exception as error:
        return type(error).__name__
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    del result["sha256"], result["encoding_seconds"]
    for name in COSTS:
        result["training"][name] = result["training"][name] > 1e5 and (name, result["training"][name] > 1e11)
    return result, (folder / "model.safetensors").read_bytes(), (folder / "metrics.csv").read_text(encoding="utf-8")


def leaves(value: Any, keys: Keys = ()) -> Iterator[Keys]:
    """Of a nested state, where its numbers, texts and tensors stand."""
    if isinstance(value, dict | list | tuple):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(each, (*keys, key))
    elif value is not None:
        yield keys


def kinds(state: Any) -> dict[str, Keys]:
    """One field of each kind: of one of many parameters, groups, times."""
    found: dict[str, Keys] = {}
    for keys in leaves(state):
        words = ["#" if str(key).isdigit() else str(key) for key in keys]
        name = re.sub(r"((?:^|\.)(?:state_dict|kept\.#))\.(?!.*callbacks).*", r"\1.*", ".".join(words))
        found.setdefault(name, keys)
    return found


def other(value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, torch.Tensor):
        return value + 1
    return value + ("x" if isinstance(value, str) else 10**12 if isinstance(value, int) else 1e6)


def put(state: Any, keys: Keys, change: Callable[[Any], Any]) -> None:
    """Change what stands at a place."""
    for key in keys[:-1]:
        state = state[key]
    state[keys[-1]] = change(state[keys[-1]])


@pytest.mark.slow
def test_how_long_validation_has_waited_matters(begun: PredictionConfig, tmp_path: Path) -> None:
    usual = ended(begun, tmp_path / "usual")
    assert usual == ended(begun, tmp_path / "again")
    assert usual[0]["training"]["steps"] == OPTIONS["steps"]
    waited = ended(begun, tmp_path / "waited", ("callbacks", "Validation", "waited"))
    assert waited[0]["training"]["steps"] < OPTIONS["steps"]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_field_matters(begun: PredictionConfig, tmp_path: Path) -> None:
    """A best score matters where the model gets better, or where it does not."""
    usual = {improves: ended(begun, tmp_path / f"usual-{improves}", improves=improves) for improves in (True, False)}
    fields = kinds(checkpoint.load(Path(begun.out) / "checkpoints" / STEP))
    tried = {name: keys for name, keys in fields.items() if OURS.match(name)}
    assert {name.split(".")[1] for name in tried if name.startswith("callbacks.")} >= {"Cost", "Metrics", "Validation"}
    idle = [
        name
        for name, keys in tried.items()
        if all(ended(begun, tmp_path / f"{name}-{improves}", keys, improves) == usual[improves] for improves in usual)
    ]
    assert not idle, "where these are changed, a training ends as if they had not been"
