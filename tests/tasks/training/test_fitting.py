"""Sizes of a run folder are anyone's: weights are compared with the model before either takes memory."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from structpe.errors import StoreError
from structpe.formats import read
from structpe.system.files import seal
from structpe.tasks.runs import RUNS as KINDS
from structpe.tasks.runs import load_run, run_of
from structpe.tasks.training.result import WEIGHTS, check_fit, save_weights
from tests.datasets import SAMPLES
from tests.memory import FEW, Counting
from tests.pictures.runs import predicted
from tests.tasks.graph_to_text.checkpoints import checkpoint, tuned
from tests.tasks.graph_to_text.tiny import tiny
from tests.tasks.prediction.tiny import single


def text(folder: Path) -> Any:
    return tiny(folder)


def pretrained(folder: Path) -> Any:
    return tuned(folder, checkpoint(folder / "given", "t5"))


RUNS: dict[str, tuple[Callable[[Path], Any], str, str]] = {
    "prediction": (single, "config.yaml", r"width: \d+"),
    "graph-to-text": (text, "config.yaml", r"width: \d+"),
    "pretrained-text": (pretrained, "pretrained.json", r'"d_model": \d+'),
}
"""Of each kind of run a configuration, and where it says how wide the model is."""


def test_all_kinds_of_runs_are_tried() -> None:
    assert set(RUNS) == set(KINDS)


@pytest.mark.parametrize("kind", RUNS)
def test_a_configuration_with_larger_sizes_is_refused_before_they_are_taken(kind: str, tmp_path: Path) -> None:
    made, name, pattern = RUNS[kind]
    run = run_of(made(tmp_path))
    run.folder.mkdir(exist_ok=True)
    learned = run.learn(run.read())
    run.begin(learned)
    model = run.model(learned) if kind != "pretrained-text" else run.untrained(learned).model
    save_weights(model, run.folder / WEIGHTS)
    load_run(run.folder).load()
    file = run.folder / name
    file.write_text(re.sub(pattern, lambda found: found[0].rpartition(" ")[0] + " 2048", file.read_text()))
    seal(run.folder, run._constant_files())
    message = r"model\.safetensors: the weights do not fit this model: \S+ has .* in the file and .* by the configur"
    with Counting() as counting, pytest.raises(StoreError, match=message):
        load_run(run.folder).ready(torch.device("cpu"))
    assert counting.largest < FEW


def test_so_are_those_of_a_picture(tmp_path: Path) -> None:
    from structpe.pictures.head_patterns import load

    folder, item = predicted(tmp_path), read(SAMPLES / "amr_sample" / "train.txt", "amr")[0]
    load(folder, item)
    file = folder / "config.yaml"
    file.write_text(re.sub(r"width: \d+", "width: 2048", file.read_text()))
    with Counting() as counting, pytest.raises(StoreError, match="the weights do not fit this model"):
        load(folder, item)
    assert counting.largest < FEW


class Foreign(nn.Linear):
    """A model that cannot be made without memory, as it looks at its numbers."""

    def __init__(self, width: int) -> None:
        super().__init__(width, width)
        assert float(self.weight.sum()) != 0


def test_what_differs_is_said(tmp_path: Path) -> None:
    file = tmp_path / WEIGHTS
    check_fit(lambda: nn.Linear(2, 2), file, "train afresh")  # not there: said where it is read
    save_weights(nn.Linear(2, 2), file)
    check_fit(lambda: nn.Linear(2, 2), file, "train afresh")
    check_fit(lambda: nn.Linear(2, 2, bias=False), file, "train afresh", but=("bias",))
    check_fit(lambda: Foreign(3), file, "train afresh")
    message = (
        r"model.safetensors: the weights do not fit this model: weight has shape \(2, 2\) in the file and shape "
        r"\(3, 2\) by the configuration, and 1 others differ; give the config.yaml that they were trained with, or "
        r"train afresh"
    )
    with pytest.raises(StoreError, match=message):
        check_fit(lambda: nn.Linear(2, 3), file, "train afresh")
    for model, differs in ((nn.Linear(2, 2, bias=False), "bias has shape"), (nn.Bilinear(2, 2, 2), "weight has shape")):
        with pytest.raises(StoreError, match=differs):
            check_fit(lambda model=model: model, file, "train afresh")
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.raises(StoreError, match=r"the file is damaged .*; train afresh"):
        check_fit(lambda: nn.Linear(2, 2), file, "train afresh")
