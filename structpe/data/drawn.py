"""Examples that are drawn anew in each epoch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

__all__ = ["Drawn", "of_epoch"]

E = TypeVar("E")


class Drawn(ABC, Generic[E]):
    """Examples that differ from epoch to epoch. What they are follows from the epoch and their numbers alone.

    So a training that goes on after an interruption meets the examples that it would have met without, whatever the
    number of devices, or of processes that make batches ready.
    """

    @abstractmethod
    def __len__(self) -> int:
        """How many there are, in every epoch."""

    @abstractmethod
    def of(self, epoch: int, numbers: Sequence[int]) -> Sequence[E]:
        """The examples of these numbers in an epoch."""


def of_epoch(examples: Sequence[E] | Drawn[E], epoch: int, numbers: Sequence[int]) -> Sequence[E]:
    """The examples of these numbers in an epoch; those of a sequence are the same in all."""
    return examples.of(epoch, numbers) if isinstance(examples, Drawn) else [examples[i] for i in numbers]
