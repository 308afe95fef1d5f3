"""The learning rate by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from structpe.errors import ConfigError
from structpe.tasks.config import make
from structpe.tasks.graph_to_text.config import TextTraining
from structpe.tasks.prediction.config import PredictionTraining
from structpe.tasks.training.config import OptimiserConfig, TrainingConfig
from structpe.tasks.training.optimiser import factor
from tests.together import together


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("inverse-sqrt", {0: 0.25, 1: 0.5, 3: 1.0, 15: 0.5, 63: 0.25}),
        ("cosine", {0: 0.25, 3: 1.0, 33: 0.5, 63: 0.0, 99: 0.0}),
        ("constant", {0: 0.25, 3: 1.0, 63: 1.0}),
    ],
)
def test_warm_up_then_the_schedule(schedule: str, expected: dict[int, float]) -> None:
    config = TrainingConfig(steps=64, optimiser=OptimiserConfig(warmup=4, schedule=schedule))
    assert {step: factor(step, config) for step in expected} == pytest.approx(expected)


def test_without_warm_up_training_begins_at_the_highest_rate() -> None:
    assert factor(0, TrainingConfig(optimiser=OptimiserConfig(warmup=0))) == 1.0


@together(
    "wrong, text",
    [
        ({"steps": 0}, "training.steps is 0; it must be 1 or more"),
        (
            {"validation": {"average": 2}, "hardware": {"devices": 2, "strategy": "fsdp"}},
            r"training.validation.average is 2; it must be 1 where parameters are sh",
        ),
        ({"validation": {"patience": -1}}, "training.validation.patience is -1; it must be 0 or more"),
        ({"optimiser": {"learning_rate": 0.0}}, "training.optimiser.learning_rate is 0.0; it must be above 0"),
        ({"optimiser": {"learning_rate": math.inf}}, "training.optimiser.learning_rate is inf; it must be a finite"),
        ({"optimiser": {"clip": math.nan}}, "training.optimiser.clip is nan; it must be a finite number"),
        ({"optimiser": {"weight_decay": -1.0}}, "training.optimiser.weight_decay is -1.0; it must be 0 or more"),
        ({"hardware": {"workers": -1}}, "training.hardware.workers is -1; it must be 0 or more"),
        ({"logs": {"every": 0}}, "training.logs.every is 0; it must be 1 or more"),
        ({"seed": -1}, "training.seed is -1; it must be 0 or more"),
        ({"smoothing": 1.0}, "training.smoothing is 1.0; it must be 0 or more and below 1"),
    ],
)
def test_what_cannot_be_trained_with(wrong: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=f"^{text}"):
        make(TextTraining, wrong)


def test_a_seed_has_63_bits() -> None:
    with pytest.raises(ConfigError, match=r"^training.seed is 9223372036854775808; at most 9223372036854775807 is"):
        TrainingConfig(seed=2**63)


@pytest.mark.parametrize(
    ("groups", "text"),
    [
        ({"optimiser": OptimiserConfig()}, "training.optimiser is a OptimiserConfig; give a PredictionOptimiser"),
        ({"validation": {"every": 3}}, "training.validation is a dict; give a PredictionValidation"),
    ],
)
def test_a_group_with_the_defaults_of_another_task_is_refused(groups: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=f"^{text}$"):
        PredictionTraining(**groups)
