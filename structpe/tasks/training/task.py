"""What a training is for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

__all__ = ["Gather", "Task"]

Gather: TypeAlias = Callable[[Any], list[Any]]
"""From what one device has to what each has, in their order."""


class Task(ABC):
    """The loss of a batch, and how good the model is.

    Attributes:
        model: what is trained.
        less_is_better: the scores of which that is so; of all others more is.
        uses_all: whether every parameter has a part in every loss, as training on several devices must know.
        pads: whether the examples of a batch are padded to the largest, so that those of like size had better meet.
    """

    model: nn.Module
    less_is_better: frozenset[str] = frozenset({"loss"})
    uses_all: bool = True
    pads: bool = False

    @abstractmethod
    def loss(self, batch: Any) -> tuple[Tensor, Tensor]:
        """The loss of a batch summed over what is counted, and the count."""

    @abstractmethod
    def validate(self, device: torch.device, share: int, shares: int, gather: Gather) -> dict[str, float]:
        """Scores of the model on the validation split, the same on every device; empty without a validation split.

        Args:
            device: where the model is.
            share: which part of the split is this device's.
            shares: how many parts there are; they may differ in size.
            gather: brings what the devices found together; all call it equally often.
        """

    def rate(self, name: str) -> float:
        """What the learning rate is multiplied by for a parameter of the model."""
        return 1.0
