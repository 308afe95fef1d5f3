"""Benchmarks whose splits or targets cannot be right are refused when they are made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from structpe.datasets import Benchmark, Split
from structpe.errors import ConfigError
from structpe.objectives import Objective
from structpe.objectives.classification import Multiclass, Multilabel
from structpe.objectives.sequence import Sequences
from structpe.structure import Structure

CLASSES = Multiclass("graph", 2, "accuracy")
LABELS = Multilabel("graph", 2, "rocauc")
TOKENS = Sequences("graph", 5, "f1", 3)


def made(objective: Objective = CLASSES, targets: Any = (0, 1, 1), parts: Any = ((0,), (1,), (2,))) -> Benchmark:
    graphs = [Structure(("a",), np.zeros((0, 2), dtype=np.int64))] * 3
    split = Split(*(np.array(part, dtype=np.int64) for part in parts))
    return Benchmark("mine", graphs, np.array(targets), (split,), objective)


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (((0, 2), (1,), (2,)), "mine: split 0 names graph 2 twice, in one part or in two, and 0 others; name each"),
        (((0, 0), (1,), (2,)), "split 0 names graph 0 twice"),
        (((0,), (-1, 1), (2,)), "the valid split names -1; graphs are 0..2"),
        (((0,), (1,), (2, 3)), "the test split names 3; graphs are 0..2"),
    ],
)
def test_a_split_that_is_none(parts, text):
    with pytest.raises(ConfigError) as caught:
        made(parts=parts)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("objective", "targets", "text"),
    [
        (
            CLASSES,
            [0, 1, 2],
            "targets have shape (3,) and dtype int64, from 0 to 2; integers of shape (.,) from -1 to 1",
        ),
        (CLASSES, [[0], [1], [1]], "targets have shape (3, 1)"),
        (CLASSES, [0.0, 1.0, 1.0], "dtype float64"),
        (LABELS, [[0.0], [1.0], [1.0]], "floats of shape (., 2) are needed for the objective 'multilabel'"),
        (LABELS, [[0, 1], [1, 1], [1, 0]], "dtype int64"),
        (TOKENS, [[0, 1], [1, 1], [1, 0]], "integers of shape (., 3 or more), the first from -1 to 4 are needed"),
        (TOKENS, [[0, 1, 5], [1, 1, 0], [1, 0, 0]], "from 0 to 5"),
    ],
)
def test_targets_that_suit_no_loss(objective, targets, text):
    with pytest.raises(ConfigError) as caught:
        made(objective, targets)
    assert text in str(caught.value)


def test_what_is_not_known_and_what_is_for_the_metric_alone_is_let_through():
    made(CLASSES, [-1, 0, 1])
    made(LABELS, np.full((3, 2), np.nan))
    made(TOKENS, [[0, 1, 4, -7], [1, 1, 0, 9], [1, 0, -1, -1]])
