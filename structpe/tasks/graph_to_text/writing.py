"""Texts for prepared examples, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import torch

from structpe.nn.search import SearchConfig
from structpe.tasks.graph_to_text.writer import Example, Writer

__all__ = ["by_size", "write"]


def by_size(examples: Sequence[Example], numbers: Sequence[int], batch_size: int) -> list[list[int]]:
    """Batches of examples of like size, the largest first: should memory not suffice, it is known at once."""
    order = sorted(numbers, key=lambda i: -examples[i].size)
    return [order[i : i + batch_size] for i in range(0, len(order), batch_size)]


def write(
    writer: Writer,
    examples: Sequence[Example],
    batches: Iterable[Sequence[int]],
    config: SearchConfig,
    device: torch.device,
) -> Iterator[tuple[int, str]]:
    """Number of an example, and the text that the model writes for it, for each example of the batches.

    Args:
        writer: with the model on the device, in evaluation mode.
        examples: what the numbers number.
        batches: numbers of examples.
        config: how texts are searched for.
        device: where the model is.
    """
    for numbers in batches:
        yield from zip(numbers, writer.texts([examples[i] for i in numbers], config, device), strict=True)
