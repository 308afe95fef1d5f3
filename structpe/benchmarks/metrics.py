"""The official metrics of benchmarks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.errors import ConfigError, MissingExtra
from structpe.registry import unknown

__all__ = ["METRICS", "Metric"]

Array = NDArray[Any]


@dataclass(frozen=True)
class Metric:
    """A number for how well predictions meet targets.

    Attributes:
        name: as tables print it.
        better: whether ``more`` or ``less`` is better.
        of: (predictions, targets) -> the number; predictions are what a model puts out, before softmax or sigmoid.
    """

    name: str
    less_is_better: bool
    of: Callable[[Array, Array], float]


def mae(prediction: Array, target: Array) -> float:
    """Mean absolute error, over all numbers."""
    return float(np.abs(prediction - target).mean())


def rmse(prediction: Array, target: Array) -> float:
    """Root of the mean squared error, over all numbers."""
    return float(np.sqrt(((prediction - target) ** 2).mean()))


def accuracy(prediction: Array, target: Array) -> float:
    """Share of items whose highest score is that of their class; items of unknown class (-1) do not count."""
    known = target >= 0
    return float((prediction[known].argmax(axis=-1) == target[known]).mean())


def rocauc(prediction: Array, target: Array) -> float:
    """Area under the ROC curve, mean over labels that have both answers; unknown answers (NaN) do not count."""
    return _mean_over_labels("roc_auc_score", prediction, target)


def average_precision(prediction: Array, target: Array) -> float:
    """Average precision, mean over labels that have both answers; unknown answers (NaN) do not count."""
    return _mean_over_labels("average_precision_score", prediction, target)


def _mean_over_labels(name: str, prediction: Array, target: Array) -> float:
    try:
        from sklearn import metrics
    except ImportError:
        raise MissingExtra("sklearn", "bench") from None
    scores = []
    for scored, answer in zip(prediction.T, target.T, strict=True):
        known = ~np.isnan(answer)
        if len(np.unique(answer[known])) == 2:
            scores.append(getattr(metrics, name)(answer[known], scored[known]))
    if not scores:
        raise ConfigError("no label has both answers in this split, so that there is nothing to score; use another")
    return float(np.mean(scores))


class _Metrics(dict[str, Metric]):
    def __missing__(self, name: str) -> Metric:
        raise ConfigError(unknown("metric", name, list(self)))


METRICS = _Metrics(
    mae=Metric("MAE", True, mae),
    rmse=Metric("RMSE", True, rmse),
    accuracy=Metric("accuracy", False, accuracy),
    rocauc=Metric("ROC-AUC", False, rocauc),
    ap=Metric("AP", False, average_precision),
)
"""Every metric by the name that an :class:`~structpe.benchmarks.base.Objective` has for it."""
