"""Without Lightning's remarks on hardware that is not there, and its tips; warnings that say something remain."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from lightning.pytorch import Callback, LightningModule, Trainer

__all__ = ["Quiet", "quiet"]

REMARKS = "lightning.pytorch.utilities.rank_zero"
IRRELEVANT = (
    r"`isinstance\(treespec, LeafSpec\)` is deprecated",  # Lightning's own use of torch
)


@contextmanager
def quiet() -> Iterator[None]:
    """While it lasts."""
    logger = logging.getLogger(REMARKS)
    level = logger.level
    try:
        with warnings.catch_warnings():
            _silence()
            yield
    finally:
        logger.setLevel(level)


class Quiet(Callback):
    """The same in the processes that train on several devices, each of which begins with its own settings."""

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        _silence()


def _silence() -> None:
    logging.getLogger(REMARKS).setLevel(logging.WARNING)
    for irrelevant in IRRELEVANT:
        warnings.filterwarnings("ignore", message=irrelevant)
