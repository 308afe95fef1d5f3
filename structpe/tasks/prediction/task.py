"""Prediction as a task: the loss of a batch, the official metric on a split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from structpe.data.batch import Batch, Example, Grouping, collate
from structpe.datasets import Objective
from structpe.errors import StructPEError
from structpe.nn.graph_model import GraphModel
from structpe.tasks.training.task import Gather, Task

__all__ = ["Collate", "Prediction"]

ROOM = 20_000
"""Nodes of a batch that is only scored, at most, unless one graph has more."""


class Collate:
    """Makes batches; of the same single graph once, as it may be large and come in every step.

    Args:
        grouping: what the model needs.
    """

    def __init__(self, grouping: Grouping) -> None:
        self.grouping = grouping
        self._last: tuple[Example, Batch] | None = None

    def __call__(self, examples: Sequence[Example]) -> Batch:
        if len(examples) > 1:
            return collate(examples, self.grouping)
        if self._last is None or self._last[0] is not examples[0]:
            self._last = examples[0], collate(examples, self.grouping)
        return self._last[1]


@dataclass(frozen=True, eq=False)
class Scored:
    """Predictions and targets of a share of a split, in the order of their numbers, and the sum of losses."""

    numbers: list[int]
    predictions: list[NDArray[Any]]
    targets: list[NDArray[Any]]
    loss: float
    count: int


class Prediction(Task):
    """Absolute error for numbers, cross entropy for classes, labels and tokens; the official metric beside it.

    Args:
        model: what is trained.
        objective: what is predicted.
        dev: the validation split.
        collate: makes batches.
    """

    uses_all = False  # such as what the last layer makes of edges, or of directions where no graph has any

    def __init__(self, model: GraphModel, objective: Objective, dev: Sequence[Example], collate: Collate) -> None:
        self.model: GraphModel = model
        self.objective, self.dev, self.collate = objective, dev, collate
        if objective.measure.less_is_better:
            self.less_is_better = self.less_is_better | {objective.metric}

    def loss(self, batch: Batch) -> tuple[Tensor, Tensor]:
        return loss(self.model(batch), _targets(batch), self.objective)

    def validate(self, device: torch.device, share: int, shares: int, gather: Gather) -> dict[str, float]:
        return self.scores(self.dev, device, share, shares, gather)

    def scores(
        self, examples: Sequence[Example], device: torch.device, share: int, shares: int, gather: Gather
    ) -> dict[str, float]:
        """Loss and official metric of a split; see :meth:`Task.validate`."""
        if not len(examples):
            return {}
        found: list[Scored] = gather(self._score(examples, range(share, len(examples), shares), device))
        at = {n: (p, t) for s in found for n, p, t in zip(s.numbers, s.predictions, s.targets, strict=True)}
        predictions, targets = (np.concatenate([at[n][part] for n in sorted(at)]) for part in (0, 1))
        if not np.isfinite(predictions).all():
            raise StructPEError(
                "the model predicts numbers that are not finite: training has diverged; lower training.learning_rate, "
                "or raise training.warmup"
            )
        total, count = sum(s.loss for s in found), sum(s.count for s in found)
        if not count:
            raise StructPEError("no target of a split is known, so that there is nothing to score; use another split")
        return {"loss": total / count, self.objective.metric: self.objective.measure.of(predictions, targets)}

    def _score(self, examples: Sequence[Example], mine: Sequence[int], device: torch.device) -> Scored:
        scored = Scored([], [], [], 0.0, 0)
        for numbers in by_room([examples[i].size for i in mine]):
            batch = self.collate([examples[mine[k]] for k in numbers]).to(device)
            predicted = self.model(batch)
            total, count = loss(predicted, _targets(batch), self.objective)
            scored = Scored(
                [*scored.numbers, *_in_order(batch, [mine[k] for k in numbers])],
                [*scored.predictions, *_each(answers(predicted, self.objective), batch)],
                [*scored.targets, *_each(_targets(batch), batch)],
                scored.loss + float(total),
                scored.count + int(count),
            )
        return scored


def loss(predicted: Tensor, target: Tensor, objective: Objective) -> tuple[Tensor, Tensor]:
    """The sum of losses over all targets that are known, and their number."""
    if objective.kind == "numbers":
        unknown = target.isnan()
        return (predicted - target).masked_fill(unknown, 0.0).abs().sum(), (~unknown).sum()
    if objective.kind == "labels":
        known = ~target.isnan()
        each = functional.binary_cross_entropy_with_logits(
            predicted[known], target[known].to(predicted.dtype), reduction="sum"
        )
        return each, known.sum()
    if objective.kind == "tokens":  # further columns are for the metric alone
        target = target[:, : objective.length]
    classes = predicted.reshape(-1, objective.outputs)
    total = functional.cross_entropy(classes, target.reshape(-1), ignore_index=-1, reduction="sum")
    return total, (target >= 0).sum()


def answers(predicted: Tensor, objective: Objective) -> Tensor:
    """What the metric is given: scores; of tokens their categories at once, as scores would fill the memory."""
    if objective.kind != "tokens":
        return predicted
    return predicted.reshape(-1, objective.length, objective.outputs).argmax(dim=-1)


def by_room(sizes: Sequence[int]) -> list[list[int]]:
    """Which graphs are scored together: of like size, and not more nodes than there is room for."""
    batches: list[list[int]] = []
    for i in sorted(range(len(sizes)), key=lambda i: sizes[i]):
        if not batches or (len(batches[-1]) + 1) * sizes[i] > ROOM:
            batches.append([])
        batches[-1].append(i)
    return batches


def _targets(batch: Batch) -> Tensor:
    assert batch.target is not None
    return batch.target


def _in_order(batch: Batch, numbers: Sequence[int]) -> list[int]:
    return [numbers[i] for i in batch.order.tolist()]


def _each(values: Tensor, batch: Batch) -> list[NDArray[Any]]:
    """Per graph, an array with a row for each of its targets."""
    array = values.detach().float().cpu().numpy() if values.is_floating_point() else values.cpu().numpy()
    if batch.target_mask is None:
        return [array[i : i + 1] for i in range(len(array))]
    counts = torch.bincount(batch.graph[batch.target_mask], minlength=len(batch.sizes))
    return np.split(array, counts.cumsum(0)[:-1].tolist())
