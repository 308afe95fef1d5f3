"""Link prediction in a knowledge graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from structpe.errors import ConfigError
from structpe.objectives.base import Objective
from structpe.objectives.classification import cross_entropy
from structpe.objectives.metrics import METRICS, Metric

__all__ = ["Link"]


@dataclass(frozen=True)
class Link(Objective, name="link", metrics=("mrr", "hits@1", "hits@3", "hits@10")):
    """Which entity completes (h, r, ?) and (?, r, t): -log softmax over all entities, of both queries of each triple.

    This is the loss of Lacroix et al. 2018, section 4, without their extra relations for the reverse direction: the
    readouts of pairs take the direction instead.

    Targets of a benchmark are triples: (., 3) integers, head < ``entities``, relation < ``outputs``, tail <
    ``entities``. The target of a query has 1 + m integers: the entity of its triple, then all entities that complete it
    in any split, padded with -1. These others are removed before an entity is ranked (the filtered setting of Bordes et
    al. 2013, section 4.1). An entity gets the mean of the ranks of all entities with its score; the best of these ranks
    would reward a model that gives all entities one score (Sun et al. 2020).

    Args:
        outputs: number of relations.
        entities: number of nodes.
        metric: name of the official metric.
    """

    level: str = field(default="pair", init=False)
    metric: str = "mrr"
    entities: int = 0

    @property
    def reported(self) -> tuple[str, ...]:
        return (self.metric, *(name for name in self.metrics if name != self.metric))

    def _needed(self) -> str:
        relations = f"relations, in the middle, from 0 to {self.outputs - 1}"
        return f"integers of shape (., 3), entities from 0 to {self.entities - 1} and {relations},"

    def _suits(self, targets: NDArray[Any]) -> bool:
        if targets.dtype.kind not in "iu" or targets.shape[1:] != (3,):
            return False
        return bool((targets >= 0).all() and (targets < [self.entities, self.outputs, self.entities]).all())

    def loss(self, predicted: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        return cross_entropy(predicted, target[:, 0])

    def answer(self, predicted: Tensor, target: Tensor) -> Tensor:
        """The filtered rank (q, 1) of the entity of each query: 1 + those above it + half of those that equal it.

        If a score is not finite, the rank is NaN, which reveals diverged training.
        """
        known = torch.zeros_like(predicted, dtype=torch.bool)
        rows, places = (target >= 0).nonzero(as_tuple=True)
        known[rows, target[rows, places]] = True
        wanted = predicted.gather(1, target[:, :1])
        above, equal = ((sign & ~known).sum(1, keepdim=True) for sign in (predicted > wanted, predicted == wanted))
        rank = 1 + above + equal / 2
        return rank.masked_fill(~predicted.isfinite().all(1, keepdim=True), torch.nan)


def reciprocal(ranks: NDArray[Any], target: NDArray[Any]) -> float:
    """Mean reciprocal rank."""
    del target
    return float((1 / _some(ranks)).mean())


def hits(most: int) -> Metric:
    """Share of queries whose entity has a rank of ``most`` or better."""
    return Metric(f"Hits@{most}", False, lambda ranks, target: float((_some(ranks) <= most).mean()))


def _some(ranks: NDArray[Any]) -> NDArray[np.float64]:
    if not len(ranks):
        raise ConfigError("this split has no query, so there is nothing to score; use another")
    return ranks.astype(np.float64)


METRICS.add("mrr", Metric("MRR", False, reciprocal))
for _most in (1, 3, 10):
    METRICS.add(f"hits@{_most}", hits(_most))
