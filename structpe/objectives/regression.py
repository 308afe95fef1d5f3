"""Real numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from structpe.objectives.base import Objective

__all__ = ["Regression"]


@dataclass(frozen=True)
class Regression(Objective, name="regression", metrics=("mae", "rmse")):
    """Sum of |p - y| over all numbers that are known. Targets: (., outputs) floats, NaN where not known."""

    def _needed(self) -> str:
        return f"floats of shape (., {self.outputs})"

    def _suits(self, targets: NDArray[Any]) -> bool:
        return targets.dtype.kind == "f" and targets.shape[1:] == (self.outputs,)

    def start(self, targets: NDArray[Any]) -> NDArray[np.float64] | None:
        """The median of each number, which of all constants has the smallest loss; 0 where none is known."""
        known = [column[~np.isnan(column)] for column in targets.T]
        return np.array([np.median(column) if len(column) else 0.0 for column in known])

    def loss(self, predicted: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        unknown = target.isnan()
        return (predicted - target).masked_fill(unknown, 0.0).abs().sum(), (~unknown).sum()
