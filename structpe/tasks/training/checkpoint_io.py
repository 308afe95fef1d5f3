"""Lightning's checkpoints as folders of safetensors and JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lightning.pytorch.plugins.io import CheckpointIO

from structpe.tasks.training.checkpoint import load, remove, save

__all__ = ["Folders"]


class Folders(CheckpointIO):
    """Writes and reads what the trainer has to remember; see :mod:`structpe.tasks.training.checkpoint`."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        del storage_options
        save(checkpoint, Path(path))

    def load_checkpoint(self, path: Any, map_location: Any = None, weights_only: Any = None) -> dict[str, Any]:
        del map_location, weights_only
        state: dict[str, Any] = load(Path(path))
        return state

    def remove_checkpoint(self, path: Any) -> None:
        remove(Path(path))
