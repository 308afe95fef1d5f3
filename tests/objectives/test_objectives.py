"""Objectives against plain loops; what they refuse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from structpe.errors import ConfigError
from structpe.objectives import LEVELS, METRICS, OBJECTIVES
from structpe.objectives.classification import Binary, Multiclass, Multilabel
from structpe.objectives.link import Link
from structpe.objectives.regression import Regression
from structpe.objectives.sequence import Sequences

NAN = float("nan")


def bits(p: float, y: float) -> float:
    s = 1 / (1 + math.exp(-p))
    return -math.log(s) if y == 1 else -math.log(1 - s)


def nats(scores: list[float], y: int) -> float:
    return math.log(sum(map(math.exp, scores))) - scores[y]


def test_losses_are_those_of_plain_loops_and_what_is_not_known_counts_for_nothing() -> None:
    torch.manual_seed(0)
    p = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    floats, answers = torch.tensor([[1.0, NAN], [NAN, NAN], [0.0, 4.0]]), torch.tensor([[1.0, NAN], [NAN, 0], [0, 1.0]])
    classes = torch.tensor([1, -1, 0])
    q = p.tolist()
    told: list[tuple[Any, Tensor, float, int]] = [
        (
            Regression("graph", 2, "mae"),
            floats,
            abs(q[0][0] - 1) + abs(q[2][0]) + abs(q[2][1] - 4),
            3,
        ),
        (
            Multilabel("graph", 2, "ap"),
            answers,
            sum(bits(q[i][j], float(answers[i, j])) for i, j in ((0, 0), (1, 1), (2, 0), (2, 1))),
            4,
        ),
        (Multiclass("node", 2, "accuracy"), classes, nats(q[0], 1) + nats(q[2], 0), 2),
    ]
    for objective, target, expected, known in told:
        total, count = objective.loss(p, target)
        assert (total.item(), int(count)) == (pytest.approx(float(expected), rel=1e-12), known)
        p.grad = None
        total.backward()
        assert torch.isfinite(p.grad).all()
    one = Binary("node", 1, "rocauc").loss(p[:, :1], answers[:, :1])
    two = Multilabel("node", 1, "rocauc").loss(p[:, :1], answers[:, :1])
    assert torch.equal(one[0], two[0])


def test_the_items_whose_target_is_known() -> None:
    assert Regression("graph", 2, "mae").known(np.array([[1.0, NAN], [NAN, NAN]])).tolist() == [True, False]
    assert Multiclass("graph", 2, "accuracy").known(np.array([1, -1])).tolist() == [True, False]
    assert Sequences("graph", 2, "f1", 2).known(np.array([[-1, 1], [-1, -1]])).tolist() == [True, False]


@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_objective_has_metrics_that_there_are(name: str) -> None:
    objective = OBJECTIVES[name]
    assert objective.metrics
    assert set(objective.metrics) <= set(METRICS)
    with pytest.raises(ConfigError, match=f"metric is 'bleu'; the objective '{name}' takes {objective.metrics[0]}"):
        objective(**({} if name == "link" else {"level": "graph"}), outputs=1, metric="bleu")


def test_what_there_is_not_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"there is no level named 'edge'. .*Known: graph, node, pair"):
        Regression("edge", 1, "mae")
    with pytest.raises(ConfigError, match="outputs is 2; a binary objective has 1, use multilabel for several"):
        Binary("graph", 2, "rocauc")
    assert {name for name, level in LEVELS.items() if level.single} == {"node", "pair"}


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ([[0, 0, 5]], "from 0 to 5; integers of shape (., 3), entities from 0 to 4 and relations, in the middle, from"),
        ([[0, 2, 1]], "are needed for the objective 'link'"),
        ([[0, -1, 1]], "from -1 to 1"),
        ([[0.0, 1.0, 1.0]], "dtype float64"),
        ([[0, 1]], "shape (1, 2)"),
    ],
)
def test_triples_out_of_range_are_refused(targets: Any, message: str) -> None:
    objective = Link(2, entities=5)
    objective.check(np.array([[0, 1, 4]]))
    with pytest.raises(ConfigError) as caught:
        objective.check(np.array(targets))
    assert message in str(caught.value)


def test_numbers_start_at_the_median_of_those_that_are_known() -> None:
    targets = np.array([[1.0, np.nan, np.nan], [5.0, 7.0, np.nan], [2.0, 9.0, np.nan]])
    found = OBJECTIVES["regression"]("graph", 3, "mae").start(targets)
    assert found is not None
    assert found.tolist() == [2.0, 8.0, 0.0]
    assert OBJECTIVES["binary"]("graph", 1, "ap").start(np.array([[0.0], [1.0]])) is None
