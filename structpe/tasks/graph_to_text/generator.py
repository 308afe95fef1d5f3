"""A trained model of texts, ready for structures that it has not seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from structpe.errors import ConfigError
from structpe.formats import Item
from structpe.nn.search import SearchConfig
from structpe.structure import Structure
from structpe.tasks.forms import listed
from structpe.tasks.graph_to_text.config import TextConfig
from structpe.tasks.graph_to_text.source import read_path
from structpe.tasks.graph_to_text.writer import Writer
from structpe.tasks.graph_to_text.writing import by_size, write
from structpe.tasks.reads import NO_READER

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
        source: str | Path | Item | Structure | Sequence[Item | Structure],
        search: SearchConfig | None = None,
        batch_size: int = 32,
        progress: Callable[[int, int], object] | None = None,
    ) -> Iterator[Generated]:
        """A text for each item, in their order. Arguments are checked at once, texts are made one batch after another.

        Args:
            source: items or structures, one or more, or a file or folder of items, read as the run's own data.
            search: how texts are searched for; None as the run's configuration says.
            batch_size: items at once.
            progress: called with the number of items done, and of all.

        Raises:
            ReadError: the source is missing or bad.
            ConfigError: there is no item, or something is neither an item nor a structure; the run has no reader for a
                file; the batch size is less than 1.
            EncodingError, PositionError: the position model does not fit a structure.
        """
        items = self._items(source)
        size: Any = batch_size
        if not isinstance(size, int) or size < 1:
            raise ConfigError(f"batch_size is {batch_size!r}; give a number of items, 1 or more")
        if not isinstance(search, SearchConfig | None):
            raise ConfigError(f"search is {search!r:.80}; give a SearchConfig, or None for that of the run")
        return self._generated(items, search or self.config.search, batch_size, progress)

    def _items(self, source: str | Path | Item | Structure | Sequence[Item | Structure]) -> Sequence[Item]:
        if isinstance(source, (str, Path)):
            if self.config.data.reader is None:
                raise ConfigError(NO_READER)
            return read_path(source, self.config.data)
        given: list[Item | Structure] = listed(
            source,
            (Item, Structure),
            wrong="generate takes items or structures, or the path of a file",
            hint="structpe.read makes items of files, structpe.as_structure structures of what other libraries hold",
            none="there is no item to write a text for; give one or more",
        )
        return [Item(each, id=str(i)) if isinstance(each, Structure) else each for i, each in enumerate(given, 1)]

    def _generated(
        self,
        items: Sequence[Item],
        search: SearchConfig,
        batch_size: int,
        progress: Callable[[int, int], object] | None,
    ) -> Iterator[Generated]:
        for first in range(0, len(items), batch_size * WINDOW):
            window = items[first : first + batch_size * WINDOW]
            examples = self.writer.examples(window)
            batches = by_size(examples, range(len(examples)), batch_size)
            texts: dict[int, str] = {}
            for number, text in write(self.writer, examples, batches, search, self.device):
                texts[number] = text
                if progress is not None:
                    progress(first + len(texts), len(items))
            for number, item in enumerate(window):
                yield Generated(item.id, texts[number], item.texts)
