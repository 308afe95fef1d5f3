"""Classes and yes-or-no questions, one or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from structpe.errors import ConfigError
from structpe.objectives.base import Objective, by_name

__all__ = ["Answers", "Binary", "Multiclass", "Multilabel", "classes", "cross_entropy"]


class Answers(Objective):
    """Binary cross entropy of each answer that is known."""

    def _needed(self) -> str:
        return f"floats of shape (., {self.outputs})"

    def _suits(self, targets: NDArray[Any]) -> bool:
        return targets.dtype.kind == "f" and targets.shape[1:] == (self.outputs,)

    def loss(self, predicted: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        known = ~target.isnan()
        wanted = target[known].to(predicted.dtype)
        return functional.binary_cross_entropy_with_logits(predicted[known], wanted, reduction="sum"), known.sum()

    def columns(self, predicted: Tensor, names: Sequence[str]) -> Mapping[str, NDArray[Any]]:
        """The probability of a yes, s(p), of each label."""
        return by_name(predicted.sigmoid(), names)


def classes(targets: NDArray[Any], count: int) -> bool:
    """Whether targets are integers from -1 to count - 1."""
    return targets.dtype.kind in "iu" and (not targets.size or bool(targets.min() >= -1 and targets.max() < count))


def cross_entropy(scores: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Sum of -log softmax(scores)[target] over the targets that are known, and their number.

    Args:
        scores: (c, classes).
        target: (c,), -1 where not known.
    """
    return functional.cross_entropy(scores, target, ignore_index=-1, reduction="sum"), (target >= 0).sum()


@dataclass(frozen=True)
class Binary(Answers, name="binary", metrics=("rocauc", "ap")):
    """Binary cross entropy, -y log s(p) - (1 - y) log(1 - s(p)), s the sigmoid.

    Targets: (., 1) floats, 0 or 1, NaN where not known.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.outputs != 1:
            raise ConfigError(f"outputs is {self.outputs}; a binary objective has 1, use multilabel for several")


@dataclass(frozen=True)
class Multilabel(Answers, name="multilabel", metrics=("rocauc", "ap")):
    """Binary cross entropy of each label. Targets: (., outputs) floats, 0 or 1, NaN where not known."""


@dataclass(frozen=True)
class Multiclass(Objective, name="multiclass", metrics=("accuracy",)):
    """Cross entropy, -log softmax(p)_y. Targets: (.,) integers below ``outputs``, -1 where not known."""

    def _needed(self) -> str:
        return f"integers of shape (.,) from -1 to {self.outputs - 1}"

    def _suits(self, targets: NDArray[Any]) -> bool:
        return targets.ndim == 1 and classes(targets, self.outputs)

    def loss(self, predicted: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        return cross_entropy(predicted, target)

    def columns(self, predicted: Tensor, names: Sequence[str]) -> Mapping[str, NDArray[Any]]:
        """The likeliest class as ``class``, and the probability of each, softmax(p), as ``p(NAME)``."""
        likeliest = np.asarray(names)[predicted.argmax(dim=1).cpu().numpy()]
        return {"class": likeliest, **by_name(predicted.softmax(dim=1), [f"p({name})" for name in names])}
