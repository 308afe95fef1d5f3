"""A log of numbers as CSV that can be gone on with after a kill."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lightning.pytorch.loggers import Logger
from lightning.pytorch.utilities import rank_zero_only

from structpe.errors import undamaged
from structpe.files import atomic_write

__all__ = ["CsvLog"]


class CsvLog(Logger):
    """One line ``step,metric,value`` per number, written at once.

    Lightning's own logger starts an empty file when a run is resumed. This one drops what was logged after the
    checkpoint, as those steps are done again, and goes on: at the end the file is that of a run that was never killed.

    Args:
        path: the file.
        step: step of the checkpoint that training resumes from; 0 starts a new log.
    """

    def __init__(self, path: Path, step: int) -> None:
        super().__init__()
        self.path, self.step = path, step

    @property
    def name(self) -> str:
        return "csv"

    @property
    def version(self) -> str:
        return ""

    @rank_zero_only
    def begin(self) -> None:
        """Make the file ready."""
        with undamaged(self.path, "remove it; the log of earlier steps is then lost, the training goes on"):
            text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        old = list(csv.reader(text.splitlines()))
        kept = [row for row in old[1:] if len(row) == 3 and row[0].isdigit() and int(row[0]) <= self.step]

        def write(path: Path) -> None:
            with path.open("w", newline="") as file:
                csv.writer(file).writerows([("step", "metric", "value"), *kept])

        atomic_write(self.path, write)

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        with self.path.open("a", newline="") as file:
            csv.writer(file).writerows((step, name, repr(float(value))) for name, value in metrics.items())

    @rank_zero_only
    def log_hyperparams(self, params: Any, *args: Any, **kwargs: Any) -> None:
        """Do nothing: the configuration is in the same folder."""
        del params, args, kwargs
