"""One class of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from structpe.objectives._classes import classes, cross_entropy
from structpe.objectives.base import Objective, by_name

__all__ = ["Multiclass"]


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
