"""How far the runs of a study are: bars on a terminal."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from structpe.printing import printable
from structpe.tasks.prediction.config import PredictionConfig
from structpe.tasks.prediction.study import Key
from structpe.tasks.training.progress import on_terminal

__all__ = ["bars", "steps_done"]

TAIL = 400
"""Bytes at the end of a log in which the last line surely begins."""


@contextmanager
def bars(configs: Mapping[Key, PredictionConfig]) -> Iterator[Callable[[list[Key]], None]]:
    """A progress bar for each run: a function that takes the runs in progress; it does nothing without a terminal."""
    if not on_terminal():
        yield lambda running: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        shown: dict[Key, TaskID] = {}

        def look(running: list[Key]) -> None:
            for key in set(shown) - set(running):
                progress.remove_task(shown.pop(key))
            for key in running:
                if key not in shown:
                    shown[key] = progress.add_task(printable(str(key)), total=configs[key].training.steps)
                progress.update(shown[key], completed=steps_done(Path(configs[key].out)))

        yield look


def steps_done(folder: Path) -> int:
    """Steps that the log of a run tells of; 0 before its first line."""
    try:
        with (folder / "metrics.csv").open("rb") as file:
            file.seek(-min(TAIL, file.seek(0, os.SEEK_END)), os.SEEK_END)
            lines = file.read().decode("utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return 0
    step = lines[-1].partition(",")[0] if lines else ""
    return int(step) if step.isdigit() else 0
