"""The official metrics of benchmarks, equal to those of OGB's evaluators where OGB has them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.errors import ConfigError, needing
from structpe.registry import Registry

__all__ = ["END", "METRICS", "UNKNOWN", "Metric"]

Array = NDArray[Any]


@dataclass(frozen=True)
class Metric:
    """A number for how well predictions meet targets.

    Attributes:
        name: as tables print it.
        less_is_better: whether a smaller number is better.
        of: (predictions, targets) -> the number; predictions are the output of a model, before softmax or sigmoid. It
            raises a ConfigError if no target is known, and MissingExtra if scikit-learn is needed and not installed.
    """

    name: str
    less_is_better: bool
    of: Callable[[Array, Array], float]


METRICS: Registry[Metric] = Registry("structpe.objectives", "metric", ConfigError)
"""Every metric by its name in :class:`~structpe.objectives.base.Objective`."""


def mae(prediction: Array, target: Array) -> float:
    """Mean absolute error, over all numbers that are known (not NaN)."""
    known = _some(~np.isnan(target))
    return float(np.abs(prediction - target)[known].mean())


def rmse(prediction: Array, target: Array) -> float:
    """Root of the mean squared error, mean over columns; unknown numbers (NaN), and columns of these, do not count."""
    known = _some(~np.isnan(target)).any(axis=0)
    return float(np.sqrt(np.nanmean((prediction - target)[:, known] ** 2, axis=0)).mean())


def accuracy(prediction: Array, target: Array) -> float:
    """Share of items whose highest score is that of their class; items of unknown class (-1) do not count."""
    known = _some(target >= 0)
    return float((prediction[known].argmax(axis=-1) == target[known]).mean())


def rocauc(prediction: Array, target: Array) -> float:
    """Area under the ROC curve, mean over labels that have both answers; unknown answers (NaN) do not count."""
    return _mean_over_labels(_sklearn().roc_auc_score, prediction, target)


def average_precision(prediction: Array, target: Array) -> float:
    """Average precision, mean over labels that have both answers; unknown answers (NaN) do not count."""
    return _mean_over_labels(_sklearn().average_precision_score, prediction, target)


END, UNKNOWN = 0, 1
"""The categories of the end of a sequence, and of a word outside the vocabulary, which is never right."""


def f1(prediction: Array, target: Array) -> float:
    """F1 of the words of a sequence as a set, mean over items.

    Args:
        prediction: (items, length, outputs) scores, or (items, length) the categories that have the highest.
        target: (items, length + m); the words to be found follow the ``length`` categories that are learned. Each is
            there once; a word outside the vocabulary is a number below -1, and -1 is padding.
    """
    picked = prediction if prediction.ndim == 2 else prediction.argmax(axis=-1)
    before = np.cumprod(picked != END, axis=1).astype(bool)
    scores = []
    for words, spoken, wanted in zip(picked, before, target[:, picked.shape[1] :], strict=True):
        found, right = set(words[spoken].tolist()), set(wanted[wanted != -1].tolist())
        scores.append(2 * len(found & right) / max(1, len(found) + len(right)))
    return float(np.mean(scores))


def _some(known: NDArray[np.bool_]) -> NDArray[np.bool_]:
    if not known.any():
        raise ConfigError("no target is known in this split, so there is nothing to score; use another")
    return known


def _sklearn() -> ModuleType:
    with needing("sklearn", "bench"):
        from sklearn import metrics
    return metrics  # type: ignore[no-any-return]


def _mean_over_labels(score: Callable[[Array, Array], float], prediction: Array, target: Array) -> float:
    scores = []
    for scored, answer in zip(prediction.T, target.T, strict=True):
        known = ~np.isnan(answer)
        if len(np.unique(answer[known])) == 2:
            scores.append(score(answer[known], scored[known]))
    if not scores:
        raise ConfigError("no label has both answers in this split, so there is nothing to score; use another")
    return float(np.mean(scores))


for _name, _metric in {
    "mae": Metric("MAE", True, mae),
    "rmse": Metric("RMSE", True, rmse),
    "accuracy": Metric("accuracy", False, accuracy),
    "rocauc": Metric("ROC-AUC", False, rocauc),
    "ap": Metric("AP", False, average_precision),
    "f1": Metric("F1", False, f1),
}.items():
    METRICS.add(_name, _metric)
