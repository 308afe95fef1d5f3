"""Prediction as a task: the loss of a batch, the metrics of a split."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from structpe.data.batch import Batch, Example, Grouping, collate
from structpe.errors import StructPEError
from structpe.nn.graph_model import GraphModel
from structpe.objectives import METRICS, Objective
from structpe.tasks.training.task import Gather, Task

__all__ = ["Collate", "Prediction", "Structures"]


class Collate(ABC):
    """Makes batches of examples, and maps the rows of predictions back to the examples.

    Attributes:
        room: largest total size of the examples in a batch for scoring; a single example may be larger.
    """

    room: ClassVar[int]

    @abstractmethod
    def __call__(self, examples: Sequence[Any]) -> Batch:
        """Make a batch of examples."""

    @abstractmethod
    def size(self, example: Any) -> int:
        """The size of an example, in units of ``room``."""

    @abstractmethod
    def owners(self, batch: Batch) -> Int[Tensor, " c"]:
        """The index of the example of each predicted row, in the list of examples of the batch."""


class Structures(Collate):
    """Batches of graphs, or of one graph with a mask of its nodes. A single graph is collated only once.

    Args:
        grouping: how the model groups graphs.
        device: type of the device.
    """

    room = 20_000

    def __init__(self, grouping: Grouping, device: str = "cpu") -> None:
        self.grouping, self.device = grouping, device
        self._last: tuple[Example, Batch] | None = None

    def __call__(self, examples: Sequence[Example]) -> Batch:
        if len(examples) > 1:
            return collate(examples, self.grouping, device=self.device)
        last = self._last  # other threads may replace it
        if last is None or last[0] is not examples[0]:
            self._last = last = examples[0], collate(examples, self.grouping, device=self.device)
        return last[1]

    def size(self, example: Example) -> int:
        return example.size

    def owners(self, batch: Batch) -> Int[Tensor, " c"]:
        return batch.order if batch.target_mask is None else batch.order[batch.graph[batch.target_mask]]


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores of a batch: number of the example, answer and target of each row; the sum and the number of losses."""

    numbers: NDArray[np.int64]
    answers: NDArray[Any]
    targets: NDArray[Any]
    loss: float
    count: int


class Prediction(Task):
    """The loss of an objective; on a split, the loss and the metrics of the objective.

    Args:
        model: the model to train.
        objective: the objective.
        dev: the validation split.
        collate: makes batches.
    """

    uses_all = False  # for example, edge features of the last layer, or directions if no graph is directed

    def __init__(self, model: GraphModel, objective: Objective, dev: Sequence[Any], collate: Collate) -> None:
        self.model: GraphModel = model
        self.objective, self.dev, self.collate = objective, dev, collate
        self.less_is_better |= {name for name in objective.reported if METRICS[name].less_is_better}

    def loss(self, batch: Batch) -> tuple[Tensor, Tensor]:
        return self.objective.loss(self.model(batch), _target(batch))

    def validate(self, device: torch.device, share: int, shares: int, gather: Gather) -> dict[str, float]:
        return self.scores(self.dev, device, share, shares, gather)

    def scores(
        self, examples: Sequence[Any], device: torch.device, share: int, shares: int, gather: Gather
    ) -> dict[str, float]:
        """Loss and metrics of a split; see :meth:`Task.validate`."""
        if not len(examples):
            return {}
        found: list[list[Scored]] = gather(self._score(examples, range(share, len(examples), shares), device))
        parts = [part for theirs in found for part in theirs]
        order = np.argsort(np.concatenate([part.numbers for part in parts]), kind="stable")
        answers = np.concatenate([part.answers for part in parts])[order]
        targets = np.concatenate([part.targets for part in parts])[order]
        if not np.isfinite(answers).all():
            raise StructPEError(
                "the model predicts numbers that are not finite: training has diverged; lower "
                "training.optimiser.learning_rate, or raise training.optimiser.warmup"
            )
        total, count = sum(part.loss for part in parts), sum(part.count for part in parts)
        if not count:
            raise StructPEError("no target of a split is known, and there is nothing to score; use another split")
        return {"loss": total / count} | {name: METRICS[name].of(answers, targets) for name in self.objective.reported}

    def _score(self, examples: Sequence[Any], mine: Sequence[int], device: torch.device) -> list[Scored]:
        parts = []
        for chosen in by_room([self.collate.size(examples[i]) for i in mine], self.collate.room):
            numbers = np.array([mine[k] for k in chosen])
            batch = self.collate([examples[i] for i in numbers]).to(device)
            predicted, target = self.model(batch), _target(batch)
            total, count = self.objective.loss(predicted, target)
            answers = _array(self.objective.answer(predicted, target))
            owners = numbers[_array(self.collate.owners(batch))]
            parts.append(Scored(owners, answers, _array(target), float(total), int(count)))
        return parts


def by_room(sizes: Sequence[int], room: int) -> list[list[int]]:
    """Batches of examples for scoring: of similar size, and not larger together than ``room``."""
    batches: list[list[int]] = []
    for i in sorted(range(len(sizes)), key=lambda i: sizes[i]):
        if not batches or (len(batches[-1]) + 1) * sizes[i] > room:
            batches.append([])
        batches[-1].append(i)
    return batches


def _target(batch: Batch) -> Tensor:
    assert batch.target is not None
    return batch.target


def _array(values: Tensor) -> NDArray[Any]:
    values = values.detach().cpu()
    array: NDArray[Any] = (values.float() if values.is_floating_point() else values).numpy()
    return array
