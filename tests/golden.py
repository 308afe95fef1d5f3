"""Inputs and outputs of the authors' code, where they are at hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

FOLDER = Path(__file__).parents[2] / "shared" / "golden"


class Golden:
    """One golden file: ``g["out.score"]`` is an array as a tensor, ``g.cfg`` its hyper-parameters."""

    def __init__(self, path: Path) -> None:
        arrays = np.load(path)
        self.cfg: dict[str, Any] = json.loads(str(arrays["cfg"])) if "cfg" in arrays else {}
        self.arrays = {name: torch.from_numpy(arrays[name]) for name in arrays.files if name != "cfg"}

    def __getitem__(self, name: str) -> torch.Tensor:
        return self.arrays[name]

    def weights(self, prefix: str) -> dict[str, torch.Tensor]:
        """The weights below a prefix, without it: a state dict."""
        start = f"w.{prefix}"
        return {name.removeprefix(start): value for name, value in self.arrays.items() if name.startswith(start)}


def golden(name: str) -> Golden:
    """A golden file by name; skips the test where the files are not at hand."""
    path = FOLDER / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"no golden file {name!r}: outputs of the authors' code are not part of the repository")
    return Golden(path)
