"""Metrics in their corners: targets that are not known, and splits in which none is."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from structpe.errors import ConfigError
from structpe.objectives.metrics import METRICS

NAN = float("nan")


@pytest.fixture(autouse=True)
def no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_a_column_without_a_known_number_does_not_count():
    prediction, target = np.array([[1.0, 5.0], [4.0, 6.0]]), np.array([[1.0, NAN], [2.0, NAN]])
    assert METRICS["mae"].of(prediction, target) == 1.0
    assert METRICS["rmse"].of(prediction, target) == pytest.approx(2**0.5)


def test_the_root_is_taken_column_by_column():
    prediction, target = np.zeros((2, 2)), np.array([[3.0, 1.0], [3.0, NAN]])
    assert METRICS["rmse"].of(prediction, target) == 2.0


def test_items_of_unknown_class_do_not_count():
    assert METRICS["accuracy"].of(np.eye(3), np.array([0, 2, -1])) == 0.5


@pytest.mark.parametrize("name", ["mae", "rmse", "accuracy"])
def test_nothing_known_is_an_error_and_no_nan(name):
    prediction, target = np.zeros((2, 2)), np.full(2, -1) if name == "accuracy" else np.full((2, 2), NAN)
    with pytest.raises(ConfigError, match="no target is known in this split, so there is nothing to score"):
        METRICS[name].of(prediction, target)


@pytest.mark.parametrize("name", ["rocauc", "ap"])
def test_a_label_with_one_answer_only_does_not_count(name):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    prediction = np.array([[0.1, 0.9], [0.8, 0.2], [0.9, 0.5]])
    assert METRICS[name].of(prediction, np.array([[0.0, 1.0], [1.0, 1.0], [1.0, NAN]])) == 1.0
    with pytest.raises(ConfigError, match="no label has both answers in this split"):
        METRICS[name].of(prediction, np.ones((3, 2)))
