"""Texts by a trained model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from structpe.formats import Item
from structpe.nn.search import SearchConfig
from structpe.structure import Structure
from structpe.tasks.graph_to_text.generator import Generated
from structpe.tasks.runs._text import text_run
from structpe.tasks.training.folder import device_named

__all__ = ["Generated", "generate"]


def generate(
    folder: str | Path,
    source: str | Path | Item | Structure | Sequence[Item | Structure],
    search: SearchConfig | None = None,
    batch_size: int = 32,
    device: str | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Iterator[Generated]:
    """Texts for items, in their order: :meth:`Generator.generate` of a run.

    Args:
        folder: of the run.
        source, search, batch_size, progress: as for ``Generator.generate``.
        device: such as ``cpu`` or ``cuda``; None takes a GPU where there is one.

    Raises:
        StoreError: the folder holds no trained model.
        ReadError: the source is missing or bad.
        ConfigError: PyTorch does not have the device here; see ``Generator.generate``.
    """
    return text_run(folder).ready(device_named(device)).generate(source, search, batch_size, progress)
