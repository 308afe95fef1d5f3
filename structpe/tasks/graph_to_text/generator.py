"""A trained model of texts, ready for structures that it has not seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from structpe.nn.search import SearchConfig
from structpe.readers import Item
from structpe.structure import Structure
from structpe.tasks.graph_to_text.config import TextConfig
from structpe.tasks.graph_to_text.source import read_path
from structpe.tasks.graph_to_text.writer import Writer
from structpe.tasks.graph_to_text.writing import by_size, write

__all__ = ["Generated", "Generator"]

WINDOW = 32
"""Batches that are sorted by size together; their texts come in the order of the items."""


@dataclass(frozen=True)
class Generated:
    """What a model wrote for an item.

    Attributes:
        id: of the item.
        text: what the model wrote.
        references: the item's own texts.
    """

    id: str
    text: str
    references: tuple[str, ...]


class Generator:
    """A trained model that writes texts; :func:`structpe.load` makes one of the folder of a run.

    Args:
        writer: with the model in evaluation mode, on the device.
        config: of the run.
        device: where the model is.
    """

    def __init__(self, writer: Writer, config: TextConfig, device: torch.device) -> None:
        self.writer, self.config, self.device = writer, config, device

    @property
    def model(self) -> nn.Module:
        """The model."""
        return self.writer.model

    def generate(
        self,
        source: str | Path | Sequence[Item | Structure],
        search: SearchConfig | None = None,
        batch_size: int = 32,
        progress: Callable[[int, int], object] | None = None,
    ) -> Iterator[Generated]:
        """Yield a text for each item, in their order.

        Args:
            source: items or structures, or a file or folder of items, read as the run's own data.
            search: how texts are searched for; None as the run's configuration says.
            batch_size: items at once.
            progress: called with the number of items done, and of all.

        Raises:
            ReadError: the source is missing or bad.
            EncodingError, PositionError: the position model does not fit a structure.
        """
        given = read_path(source, self.config.data) if isinstance(source, (str, Path)) else list(source)
        items = [Item(each, id=str(i)) if isinstance(each, Structure) else each for i, each in enumerate(given, 1)]
        for first in range(0, len(items), batch_size * WINDOW):
            window = items[first : first + batch_size * WINDOW]
            examples = self.writer.examples(window)
            batches = by_size(examples, range(len(examples)), batch_size)
            texts: dict[int, str] = {}
            for number, text in write(self.writer, examples, batches, search or self.config.search, self.device):
                texts[number] = text
                if progress is not None:
                    progress(first + len(texts), len(items))
            for number, item in enumerate(window):
                yield Generated(item.id, texts[number], item.texts)
