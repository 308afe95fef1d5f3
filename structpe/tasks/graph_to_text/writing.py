"""Texts for prepared examples, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import torch

from structpe.data.prepare import Example, Preparer
from structpe.nn.search import SearchConfig, search
from structpe.nn.seq2seq import EncoderDecoder

__all__ = ["by_size", "write"]


def by_size(examples: Sequence[Example], numbers: Sequence[int], batch_size: int) -> list[list[int]]:
    """Batches of examples of like size, the largest first: should memory not suffice, it is known at once."""
    order = sorted(numbers, key=lambda i: -examples[i].graph.size)
    return [order[i : i + batch_size] for i in range(0, len(order), batch_size)]


def write(
    model: EncoderDecoder,
    preparer: Preparer,
    examples: Sequence[Example],
    batches: Iterable[Sequence[int]],
    config: SearchConfig,
    device: torch.device,
) -> Iterator[tuple[int, str]]:
    """Number of an example, and the text that the model writes for it, for each example of the batches.

    Args:
        model: on the device, in evaluation mode.
        preparer: of the same run.
        examples: what the numbers number.
        batches: numbers of examples.
        config: how texts are searched for.
        device: where the model is.
    """
    for numbers in batches:
        batch = preparer.collate([examples[i] for i in numbers], grouping=model.encoder.grouping).to(device)
        with torch.no_grad():
            state = model.start(batch)
            found = search(model.step, state, preparer.first, preparer.last, config)
        yield from zip([numbers[i] for i in batch.order.tolist()], map(preparer.text, found), strict=True)
