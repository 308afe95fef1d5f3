"""The base class of tasks: the loss of a model, and its scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

__all__ = ["Gather", "Task"]

Gather: TypeAlias = Callable[[Any], list[Any]]
"""Gathers a value of each device to a list, in the order of the devices."""


class Task(ABC):
    """The loss of a model on a batch, and its scores on the validation split.

    Attributes:
        model: the model to train.
        less_is_better: names of scores for which lower is better; for others, higher is.
        uses_all: whether every parameter contributes to every loss, which matters on several devices.
        pads: whether the examples of a batch are padded, so batches of similar size are cheaper.
    """

    model: nn.Module
    less_is_better: frozenset[str] = frozenset({"loss"})
    uses_all: bool = True
    pads: bool = False

    @abstractmethod
    def loss(self, batch: Any) -> tuple[Tensor, Tensor]:
        """The loss of a batch, summed over its targets, and the number of these."""

    @abstractmethod
    def validate(self, device: torch.device, share: int, shares: int, gather: Gather) -> dict[str, float]:
        """Scores of the model on the validation split, the same on every device; empty without a validation split.

        Args:
            device: the device of the model.
            share: index of this device's part of the split.
            shares: number of parts, which may differ in size.
            gather: gathers values of all devices, which must call it equally often.
        """

    def rate(self, name: str) -> float:
        """Factor of the learning rate of a parameter."""
        return 1.0
