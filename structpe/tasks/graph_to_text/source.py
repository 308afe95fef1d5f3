"""The items of a split."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from structpe.errors import ConfigError
from structpe.readers import Item, read
from structpe.tasks.graph_to_text.config import DataConfig
from structpe.tasks.training.progress import say

__all__ = ["read_path", "read_split"]


def read_split(data: DataConfig, split: Literal["train", "dev", "test"]) -> list[Item]:
    """All items of a split.

    Raises:
        ConfigError: the configuration names no such split.
        ReadError: a file is missing, or an item is bad and is not to be skipped.
    """
    paths = {"train": data.train, "dev": data.dev, "test": data.test}[split]
    if not paths:
        raise ConfigError(f"the configuration names no {split} split; set data.{split} to a file or folder")
    return [item for path in ([paths] if isinstance(paths, str) else paths) for item in read_path(path, data)]


def read_path(path: str | Path, data: DataConfig) -> list[Item]:
    """All items of a file or folder, read as the data of the configuration are; tells what was skipped."""
    reading = read(path, data.reader, data.on_error, **data.options)
    if reading.skipped:
        say(f"{path}: {reading.report()}")
    return list(reading.items)
