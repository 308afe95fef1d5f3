"""Progress on the error stream: bars on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from structpe.system.printing import escaping, on_terminal, printable

if TYPE_CHECKING:
    from rich.progress import TaskID

__all__ = ["ProgressBars", "duration", "progress_bar"]

SECONDS = 10.0
"""Seconds between two lines, and before the first; shorter work prints no line."""


class ProgressBars:
    """One bar for each name: the numbers of finished and of all items, the remaining time, and a note.

    Args:
        transient: whether the bars disappear at the end.
    """

    def __init__(self, transient: bool = True) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        text, note = TextColumn("{task.description}", markup=False), TextColumn("{task.fields[note]}", markup=False)
        columns = (text, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), note)
        self._progress = Progress(*columns, console=Console(stderr=True), transient=transient)
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> ProgressBars:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        self._progress.stop()

    @property
    def names(self) -> set[str]:
        """The names of all bars."""
        return set(self._tasks)

    def show(self, name: str, done: int, total: int | None, note: str | None = None) -> None:
        """Update the bar of a name; the first call adds it. A total of 0 or None is unknown; no note keeps the last."""
        if name not in self._tasks:
            self._tasks[name] = self._progress.add_task(printable(name), total=None, note="")
        fields: dict[str, Any] = {} if note is None else {"note": note}
        self._progress.update(self._tasks[name], completed=done, total=total or None, **fields)

    def remove(self, name: str) -> None:
        """Remove the bar of a name."""
        self._progress.remove_task(self._tasks.pop(name))


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int | None], None]]:
    """A bar, or lines without a terminal, as a function of the numbers of finished and of all items."""
    if not on_terminal():
        yield _Lines(what)
        return
    # rich replaces both streams meanwhile; output is escaped before it is printed.
    with ProgressBars() as bars, escaping():
        yield partial(bars.show, what)


class _Lines:
    """Lines such as ``writing: 320 of 971, about 3 min left``, one every ten seconds.

    Args:
        what: the name of the work.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self._said = time.monotonic()
        self._first: tuple[float, int, int | None] | None = None

    def __call__(self, done: int, total: int | None) -> None:
        now = time.monotonic()
        if self._first is None or done < self._first[1] or total != self._first[2]:  # another file
            self._first = now, done, total
        if now - self._said < SECONDS:
            return
        self._said = now
        since, before, _ = self._first
        print(f"{self.what}: {done:,}{_rest(done, total, done - before, now - since)}", file=sys.stderr, flush=True)


def _rest(done: int, total: int | None, lately: int, seconds: float) -> str:
    """The total, and an estimate of the remaining time from the items done lately, in so many seconds."""
    if not total:
        return ""
    left = duration(seconds / max(1, lately) * max(0, total - done))
    return f" of {total:,}" + (f", about {left} left" if lately > 0 else "")


def duration(seconds: float) -> str:
    """A time as text, such as ``45 s``, ``3 min`` or ``2.5 h``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds <= 5400 else f"{seconds / 3600:.1f} h"
