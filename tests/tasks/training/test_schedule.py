"""The learning rate by hand."""

from __future__ import annotations

import math

import pytest

from structpe.errors import ConfigError
from structpe.tasks.training.config import TrainingConfig
from structpe.tasks.training.optimiser import factor


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("inverse-sqrt", {0: 0.25, 1: 0.5, 3: 1.0, 15: 0.5, 63: 0.25}),
        ("cosine", {0: 0.25, 3: 1.0, 33: 0.5, 63: 0.0, 99: 0.0}),
        ("constant", {0: 0.25, 3: 1.0, 63: 1.0}),
    ],
)
def test_warm_up_then_the_schedule(schedule: str, expected: dict[int, float]) -> None:
    config = TrainingConfig(steps=64, warmup=4, schedule=schedule)
    assert {step: factor(step, config) for step in expected} == pytest.approx(expected)


def test_without_warm_up_training_begins_at_the_highest_rate() -> None:
    assert factor(0, TrainingConfig(warmup=0)) == 1.0


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"steps": 0}, "training.steps is 0; it must be 1 or more"),
        (
            {"average": 2, "devices": 2, "strategy": "fsdp"},
            r"training.average is 2; it must be 1 where parameters are sh",
        ),
        ({"patience": -1}, "training.patience is -1; it must not be negative"),
        ({"learning_rate": 0.0}, "training.learning_rate is 0.0; it must be above 0"),
        ({"learning_rate": math.inf}, "training.learning_rate is inf; it must be a finite number"),
        ({"clip": math.nan}, "training.clip is nan; it must be a finite number"),
        ({"seed": 2**63}, r"training.seed is 9223372036854775808; it must be below 2\^63"),
        ({"smoothing": 1.0}, "training.smoothing is 1.0; it must be 0 or more and below 1"),
    ],
)
def test_what_cannot_be_trained_with(wrong: dict[str, float], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        TrainingConfig(**wrong)
