"""A sequence of categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from structpe.objectives.base import Objective
from structpe.objectives.classification import classes, cross_entropy

__all__ = ["Sequences"]


@dataclass(frozen=True)
class Sequences(Objective, name="sequence", metrics=("f1",)):
    """Cross entropy at each of ``length`` places, each predicted separately.

    Targets: (., length + m) integers. The first ``length`` are learned: below ``outputs``, -1 where not known. The
    others are read by the metric only.

    Args:
        level, outputs, metric: see :class:`~structpe.objectives.base.Objective`.
        length: of the sequence.
    """

    length: int = 1

    @property
    def numbers(self) -> int:
        return self.outputs * self.length

    def _needed(self) -> str:
        return f"integers of shape (., {self.length} or more), the first from -1 to {self.outputs - 1}"

    def _suits(self, targets: NDArray[Any]) -> bool:
        if targets.ndim != 2 or targets.shape[1] < self.length:
            return False
        return classes(targets[:, : self.length], self.outputs)

    def loss(self, predicted: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        return cross_entropy(predicted.reshape(-1, self.outputs), target[:, : self.length].reshape(-1))

    def answer(self, predicted: Tensor, target: Tensor) -> Tensor:
        """The likeliest category at each place, since the scores of all categories would fill the memory."""
        del target
        return predicted.reshape(-1, self.length, self.outputs).argmax(dim=-1)

    def columns(self, predicted: Tensor, names: Sequence[str]) -> Mapping[str, NDArray[Any]]:
        """The likeliest category at each place, as ``place 1``, ``place 2``, ..."""
        likeliest = np.asarray(names)[self.answer(predicted, predicted).cpu().numpy()]
        return {f"place {i}": column for i, column in enumerate(likeliest.T, 1)}
