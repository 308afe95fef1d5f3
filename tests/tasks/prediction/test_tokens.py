"""Sequences of tokens as targets: what is learned of them, and what the metric is given."""

from __future__ import annotations

import math

import numpy as np
import torch

from structpe.data.batch import Example
from structpe.nn.graph_model import GraphModel, GraphModelConfig
from structpe.objectives.sequence import Sequences
from structpe.positions.build import build
from structpe.structure import path
from structpe.tasks.prediction.task import Prediction, Structures

TOKENS = Sequences("graph", outputs=4, metric="f1", length=3)


def test_each_place_has_a_cross_entropy_of_its_own_and_further_columns_none() -> None:
    torch.manual_seed(0)
    scores = torch.randn(2, 12, dtype=torch.float64)
    target = torch.tensor([[0, 1, 2, 9, 9], [3, 3, -1, 9, 9]])
    expected, known = 0.0, 0
    for item in range(2):
        for place in range(3):
            wanted = int(target[item, place])
            if wanted >= 0:
                own = scores[item, 4 * place : 4 * place + 4].tolist()
                expected += math.log(sum(map(math.exp, own))) - own[wanted]
                known += 1
    total, count = TOKENS.loss(scores, target)
    assert math.isclose(float(total), expected, rel_tol=1e-12)
    assert int(count) == known == 5


def test_an_answer_is_the_likeliest_category_at_each_place() -> None:
    scores = torch.tensor([[0.0, 9.0, 0.0, 0.0, 0.0, 0.0, 0.0, 9.0, 9.0, 0.0, 0.0, 0.0]])
    assert TOKENS.answer(scores, torch.zeros(1, 3)).tolist() == [[1, 3, 0]]


def test_a_model_of_tokens_is_scored_by_f1() -> None:
    config = GraphModelConfig(width=8, layers=1, heads=2, message_passing="gin")
    model = GraphModel(config, build([], config.dims), None, None, TOKENS.numbers).eval()
    with torch.no_grad():
        model.head[-1].weight.zero_()
        model.head[-1].bias.zero_()
        model.head[-1].bias[torch.tensor([2, 4 + 3, 8 + 2])] = 1.0  # always the categories 2, 3, 2
    graphs = [path(["a"] * size) for size in (2, 3)]
    targets = [np.array([2, 3, 0, 2, 3]), np.array([1, 0, 0, 1, -1])]  # the words follow the categories
    dev = [Example.of(graph, {}, target) for graph, target in zip(graphs, targets, strict=True)]
    task = Prediction(model, TOKENS, dev, Structures(model.grouping))
    with torch.no_grad():
        scores = task.validate(torch.device("cpu"), 0, 1, lambda mine: [mine])
    assert scores["f1"] == (1.0 + 0.0) / 2
