"""Every field of a checkpoint matters: where one is changed, what goes on from it ends otherwise, or not at all.

So a field that is written and not read again, or read and not used, shows.
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
OPTIONS = {"steps": 10, "checkpoint_every": 5, "validate_every": 2, "log_every": 3, "average": 3, "accumulate": 2}
"""A checkpoint lies between two validations and two lines of the log, of which each has something to remember."""
STEP = "step-00000005"
SAME: dict[str, str] = {}
"""Fields that nothing reads when a training goes on, and why."""


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> PredictionConfig:
    """A training whose learning rate is so large that it gets worse, and which has no more than its first checkpoint."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PredictionRun, "keeps_checkpoints", True)
        config = single(
            tmp_path_factory.mktemp("begun"), training={**OPTIONS, "patience": 4, "learning_rate": 0.3, "clip": 0.1}
        )
        train(config)
    run = Path(config.out)
    (run / "result.json").unlink()
    for each in (run / "checkpoints").iterdir():
        if each.name != STEP:
            shutil.rmtree(each)
    return config


def ended(config: PredictionConfig, folder: Path, keys: Keys = ()) -> Any:
    """What a training comes to that goes on from the checkpoint, where a field of that is changed: all that it writes."""
    shutil.copytree(config.out, folder)
    file = folder / "checkpoints" / STEP
    if keys:
        state = checkpoint.load(file)
        put(state, keys, other)
        shutil.rmtree(file)
        checkpoint.save(state, file)
    try:
        train(replace(config, out=str(folder)))
    except Exception as error:
        return type(error).__name__
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
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
    return value + ("x" if isinstance(value, str) else 1)


def put(state: Any, keys: Keys, change: Callable[[Any], Any]) -> None:
    """Change what stands at a place."""
    for key in keys[:-1]:
        state = state[key]
    state[keys[-1]] = change(state[keys[-1]])
