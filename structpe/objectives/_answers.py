"""Yes-or-no questions, one or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from structpe.objectives.base import Objective, by_name

__all__ = ["Answers"]


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
