"""Work that starts processes and does not end, for tests that kill the process that does it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

__all__ = ["KINDS"]

LONG = 1000.0


def working(folder: Path) -> None:
    """Workers that are busy, and more work for each."""
    from structpe.system.workers import in_order, workers

    with workers(2) as executor:
        list(in_order(time.sleep, [(LONG,)] * 20, executor))


def waiting(folder: Path) -> None:
    """Workers that have nothing to do."""
    from structpe.system.workers import in_order, workers

    with workers(2) as executor:
        list(in_order(abs, [(1,)] * 4, executor))
        time.sleep(LONG)


def loading(folder: Path) -> None:
    """Workers of a loader of batches, some of which lie ready."""
    import numpy as np

    from structpe.tasks.training.batches import Batches, BatchPlan

    for _ in Batches(list(range(8)), BatchPlan(np.ones(8, dtype=np.int64), 2, seed=0), list, 100, workers=2):
        time.sleep(LONG)


def encoding(folder: Path) -> None:
    """The command that encodes."""
    from structpe.cli.main import main

    file = folder / "many.tokens"
    file.write_text("a b c d e f g h\n" * 100_000)
    main(["encode", str(file), "--encoding", "random-walk:steps=8", "--jobs", "2", "--out", str(folder / "store")])


def training(folder: Path) -> None:
    """A training on two devices, with workers that load."""
    from structpe.tasks.runs import train
    from tests.tasks.prediction.tiny import single

    train(
        single(
            folder, training={"steps": 10**6, "hardware": {"devices": 2, "workers": 1}, "validation": {"every": 10**6}}
        )
    )


KINDS: dict[str, tuple[Callable[[Path], None], int]] = {
    "working": (working, 2),
    "waiting": (waiting, 2),
    "loading": (loading, 2),
    "encoding": (encoding, 2),
    "training": (training, 4),
}
"""Work, and how many processes it starts at least."""

if __name__ == "__main__":
    KINDS[sys.argv[1]][0](Path(sys.argv[2]))
