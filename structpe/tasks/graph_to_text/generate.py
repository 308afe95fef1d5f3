"""Texts by a trained model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from structpe.nn.search import SearchConfig
from structpe.readers import Item
from structpe.tasks.graph_to_text.source import read_path
from structpe.tasks.graph_to_text.writing import by_size, write
from structpe.tasks.runs.graph_to_text import GraphToTextRun

__all__ = ["Generated", "generate"]

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


def generate(
    folder: str | Path,
    source: str | Path | Sequence[Item],
    search: SearchConfig | None = None,
    batch_size: int = 32,
    device: str | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Iterator[Generated]:
    """Texts for items, in their order.

    Args:
        folder: of the run.
        source: items, or a file or folder of them, read as the run's own data.
        search: how texts are searched for; None as the run's configuration says.
        batch_size: items at once.
        device: such as ``cpu`` or ``cuda``; None takes a GPU where there is one.
        progress: called with the number of items done, and of all.

    Raises:
        StoreError: the folder holds no trained model.
        ReadError: the source is missing or bad.
    """
    run = GraphToTextRun.of(folder)
    (model, preparer), config = run.load(), run.config
    where = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    model.to(where)
    items = read_path(source, config.data) if isinstance(source, (str, Path)) else list(source)
    for first in range(0, len(items), batch_size * WINDOW):
        window = items[first : first + batch_size * WINDOW]
        examples = preparer.examples(window, model.encoder.position.encodings)
        batches = by_size(examples, range(len(examples)), batch_size)
        texts = {}
        for number, text in write(model, preparer, examples, batches, search or config.search, where):
            texts[number] = text
            if progress is not None:
                progress(first + len(texts), len(items))
        for number, item in enumerate(window):
            yield Generated(item.id, texts[number], item.texts)
