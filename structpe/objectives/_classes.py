"""One class of several."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

__all__ = ["classes", "cross_entropy"]


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
