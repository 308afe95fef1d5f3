"""The numbers of position models among those of a checkpoint of Hugging Face."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from torch import Tensor

from structpe.errors import StoreError, undamaged

__all__ = ["read_numbers"]

WHOLE, PARTS = "model.safetensors", "model.safetensors.index.json"


def read_numbers(folder: Any, prefix: str) -> dict[str, Tensor]:
    """The tensors whose names begin with a prefix, without it.

    Raises:
        StoreError: there is no checkpoint in the form of safetensors, or it is damaged.
    """
    from safetensors import safe_open

    place = Path(folder)
    found: dict[str, Tensor] = {}
    with undamaged(place, "save the model again"):
        for file in _files(place):
            with safe_open(file, framework="pt") as opened:
                names = [name for name in opened.keys() if name.startswith(prefix)]  # noqa: SIM118, it is no mapping
                found |= {name.removeprefix(prefix): opened.get_tensor(name) for name in names}
    return found


def _files(place: Path) -> list[Path]:
    """The files of a checkpoint, which may be in several parts."""
    if (place / PARTS).is_file():
        parts = json.loads((place / PARTS).read_text(encoding="utf-8"))["weight_map"].values()
        return [place / name for name in sorted(set(parts))]
    if (place / WHOLE).is_file():
        return [place / WHOLE]
    raise StoreError(f"there is no {WHOLE}; give the folder that save_pretrained wrote").at(str(place))
