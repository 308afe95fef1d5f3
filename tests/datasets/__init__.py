"""Real corpora, where they are at hand; the project ships its own samples only."""

from __future__ import annotations

from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[3] / "shared" / "data"
SAMPLES = Path(__file__).parents[2] / "datasets"


def corpus(name: str) -> Path:
    """Path of a file or folder of a real corpus; skips the test where it is not at hand.

    Real corpora are not part of the repository.
    """
    path = FOLDER / name
    if not path.exists():
        pytest.skip(f"needs ../shared/data: {name}")
    return path
