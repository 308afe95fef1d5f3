"""Filtered ranks against a plain loop, as Bordes et al. 2013 describe them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from structpe.errors import ConfigError
from structpe.objectives import METRICS
from structpe.objectives.link import Link

LINK = Link(3, entities=9)


def rank(scores: list[float], answer: int, others: set[int]) -> float:
    """Sorted by score, those that are known left out; the mean place of all that have the score of the answer."""
    left = [(score, entity) for entity, score in enumerate(scores) if entity == answer or entity not in others]
    places = [place for place, (score, _) in enumerate(sorted(left, reverse=True), 1) if score == scores[answer]]
    return sum(places) / len(places)


@pytest.mark.parametrize("distinct", [True, False], ids=["no ties", "many ties"])
def test_ranks_are_those_of_a_plain_loop(distinct: bool) -> None:
    generator = np.random.default_rng(0)
    for _ in range(50):
        scores = generator.normal(size=(4, 9)) if distinct else generator.integers(0, 3, (4, 9)).astype(float)
        known = [set(generator.choice(9, generator.integers(1, 6), replace=False).tolist()) for _ in range(4)]
        answers = [int(generator.choice(sorted(each))) for each in known]
        target = torch.full((4, 7), -1)
        for row, answer, each in zip(target, answers, known, strict=True):
            row[0], row[1 : 1 + len(each)] = answer, torch.tensor(sorted(each))
        found = LINK.answer(torch.from_numpy(scores), target)
        expected = [rank(s, a, k) for s, a, k in zip(scores.tolist(), answers, known, strict=True)]
        assert found[:, 0].tolist() == expected


def test_all_equal_scores_are_worth_the_middle_and_not_the_first_place() -> None:
    assert LINK.answer(torch.zeros(1, 9), torch.tensor([[4, -1]])).tolist() == [[5.0]]


def test_a_score_that_is_no_number_is_noticed() -> None:
    scores = torch.zeros(2, 9)
    scores[1, 3] = torch.nan
    assert LINK.answer(scores, torch.tensor([[4], [4]])).isfinite().tolist() == [[True], [False]]


def test_the_loss_is_the_cross_entropy_of_the_first_target_against_all() -> None:
    scores = torch.randn(2, 9, dtype=torch.float64)
    total, count = LINK.loss(scores, torch.tensor([[3, 3, 5], [0, -1, 0]]))
    torch.testing.assert_close(total, -(scores.log_softmax(1)[0, 3] + scores.log_softmax(1)[1, 0]))
    assert int(count) == 2


def test_metrics_of_ranks() -> None:
    ranks, target = np.array([[1.0], [2.5], [10.0], [20.0]]), np.zeros((4, 1))
    assert METRICS["mrr"].of(ranks, target) == pytest.approx((1 + 1 / 2.5 + 0.1 + 0.05) / 4)
    assert [METRICS[f"hits@{k}"].of(ranks, target) for k in (1, 3, 10)] == [0.25, 0.5, 0.75]
    assert LINK.reported == ("mrr", "hits@1", "hits@3", "hits@10")
    assert Link(3, "hits@3", 9).reported == ("hits@3", "mrr", "hits@1", "hits@10")
    with pytest.raises(ConfigError, match="this split has no query"):
        METRICS["mrr"].of(ranks[:0], target[:0])
