"""Any optimiser of PyTorch, by name or by the path of its class; Adafactor computes what its paper says."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from structpe.errors import ConfigError
from structpe.tasks.runs import train
from structpe.tasks.training.config import HardwareConfig, OptimiserConfig, TrainingConfig
from structpe.tasks.training.optimiser import check_optimiser, optimiser
from tests.tasks.graph_to_text.tiny import changed, resumed, tiny
from tests.together import together

ADAFACTOR = OptimiserConfig("Adafactor", {"eps": [1e-15, 1e-3]})


class Descent(torch.optim.SGD):
    """Of another package, without options of its own."""

    def __init__(self, params: Any, lr: float, slower: float = 1.0) -> None:
        super().__init__(params, lr / slower)


def adafactor(x: Any, gradients: list[Any], rate: float) -> Any:
    """Shazeer and Stern 2018, algorithms 4 and 5 with relative steps, written out with loops."""
    rows, columns = np.zeros(x.shape[0]), np.zeros(x.shape[1])
    for t, g in enumerate(gradients, 1):
        kept = 1 - t**-0.8
        for i in range(x.shape[0]):
            rows[i] = kept * rows[i] + (1 - kept) * sum(g[i] ** 2) / x.shape[1]
        for j in range(x.shape[1]):
            columns[j] = kept * columns[j] + (1 - kept) * sum(g[:, j] ** 2) / x.shape[0]
        mean = sum(rows) / len(rows)
        u = np.array(
            [[g[i, j] / math.sqrt(rows[i] * columns[j] / mean) for j in range(x.shape[1])] for i in range(len(x))]
        )
        size = max(1e-3, math.sqrt((x**2).mean())) * min(rate, 1 / math.sqrt(t))
        x = x - size * u / max(1.0, math.sqrt((u**2).mean()))
    return x


def test_adafactor_is_its_algorithm() -> None:
    """Also where gradients are so small that PyTorch's own eps would change the steps of a matrix."""
    random = np.random.default_rng(0)
    for scale in (1.0, 1e-5):
        start, gradients = random.normal(size=(3, 4)), [scale * random.normal(size=(3, 4)) for _ in range(5)]
        matrix = nn.Parameter(torch.tensor(start))
        asked = replace(ADAFACTOR, learning_rate=0.6, weight_decay=0.0)
        made = optimiser([{"params": [matrix]}], TrainingConfig(optimiser=asked))
        for gradient in gradients:
            matrix.grad = torch.tensor(gradient)
            made.step()
        np.testing.assert_allclose(matrix.detach(), adafactor(start, gradients, 0.6), rtol=1e-9)


def test_it_is_adamw_if_nothing_is_said() -> None:
    p = nn.Parameter(torch.ones(2))
    made = optimiser([{"params": [p]}], TrainingConfig())
    assert type(made) is torch.optim.AdamW
    assert (made.defaults["betas"], made.defaults["lr"], made.defaults["fused"]) == ((0.9, 0.98), 5e-4, True)
    slower = optimiser([{"params": [p]}], TrainingConfig(optimiser=OptimiserConfig("AdamW", {"betas": [0.5, 0.6]})))
    assert slower.defaults["betas"] == (0.5, 0.6)


def test_a_class_of_another_package_is_named_by_its_path() -> None:
    own = OptimiserConfig(f"{__name__}.Descent", {"slower": 4.0}, weight_decay=0.0)
    made = optimiser([{"params": [nn.Parameter(torch.ones(2))]}], TrainingConfig(optimiser=own))
    assert type(made) is Descent
    assert made.defaults["lr"] == 5e-4 / 4


@together(
    "name, options, message",
    [
        ("Adafacter", {}, "'Adafacter' is not an optimiser; give the name of a class of torch.optim, such as AdamW or"),
        ("Optimizer", {}, "'Optimizer' is not an optimiser; give the name of a class of torch.optim, such as AdamW or"),
        ("subprocess.Popen", {"args": "x"}, "'subprocess.Popen' is not an optimiser; give the name of a class of"),
        ("no_such_package.Adam", {}, "cannot be imported (No module named 'no_such_package'); check the path, and"),
        ("Adafactor", {"epsilon": 1}, "optimiser 'Adafactor' has no option named 'epsilon'"),
        ("Adafactor", {"lr": 1}, "lr is not an option here; set training.optimiser.learning_rate"),
        ("SGD", {"weight_decay": 1}, "weight_decay is not an option here; set training.optimiser.weight_decay"),
        (f"{__name__}.Descent", {}, "Descent has no weight decay; set training.optimiser.weight_decay to 0"),
    ],
)
def test_what_is_no_optimiser_is_refused(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=rf"^training\.optimiser: .*{re.escape(message)}"):
        check_optimiser(OptimiserConfig(name, options))


def test_a_value_that_the_class_refuses_is_told_with_its_reason() -> None:
    with pytest.raises(
        ConfigError, match=r"^training\.optimiser: Adafactor does not take the options \{'d': 0\.5\}: .*"
    ):
        optimiser(
            [{"params": [nn.Parameter(torch.ones(2))]}],
            TrainingConfig(optimiser=OptimiserConfig("Adafactor", {"d": 0.5})),
        )
    with pytest.raises(ConfigError, match=r"is 'Adafactor'; it must be AdamW where parameters are shared out \(fsdp\)"):
        TrainingConfig(optimiser=ADAFACTOR, hardware=HardwareConfig(devices=2, strategy="fsdp"))


def test_a_run_is_refused_before_its_data_are_read(tmp_path: Path) -> None:
    config = tiny(tmp_path, optimiser={"name": "Adafactor", "options": {"beta": 1}})
    with pytest.raises(ConfigError, match=r"^training\.optimiser: optimiser 'Adafactor' has no option named 'beta'"):
        train(changed(config, data=replace(config.data, train="nowhere")))


def test_a_run_with_adafactor_resumes_to_the_bit(tmp_path: Path) -> None:
    config = tiny(tmp_path, steps=4, validation={"every": 4}, checkpoint_every=2, optimiser={"name": "Adafactor"})
    whole, again = resumed(config)
    assert again == whole
