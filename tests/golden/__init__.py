"""Inputs and outputs of the authors' code: the files beside this one, which INDEX.json describes.

More of them, and the whole of those that are cut here, lie in ``../shared/golden`` of some checkouts.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

SHIPPED = Path(__file__).parent
SHARED = Path(__file__).parents[3] / "shared" / "golden"


class Golden:
    """One golden file: ``g["out.score"]`` is an array as a tensor, ``g.cfg`` its hyper-parameters."""

    def __init__(self, path: Path) -> None:
        with np.load(path) as arrays:
            self.cfg: dict[str, Any] = json.loads(str(arrays["cfg"])) if "cfg" in arrays else {}
            self.arrays = {name: torch.from_numpy(arrays[name]) for name in arrays.files if name != "cfg"}

    def __getitem__(self, name: str) -> torch.Tensor:
        return self.arrays[name]

    def weights(self, prefix: str) -> dict[str, torch.Tensor]:
        """The weights below a prefix, without it: a state dict."""
        start = f"w.{prefix}"
        return {name.removeprefix(start): value for name, value in self.arrays.items() if name.startswith(start)}


def golden(name: str) -> Golden:
    """A shipped golden file by name."""
    return Golden(SHIPPED / f"{name}.npz")


def shared(name: str) -> Golden:
    """A golden file as it was made, uncut; skips the test where it is not at hand."""
    for folder in (SHARED, SHARED / "pending"):
        if (path := folder / f"{name}.npz").exists():
            return Golden(path)
    pytest.skip(f"needs ../shared/golden: {name}")
