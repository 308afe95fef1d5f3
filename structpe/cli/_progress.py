"""Progress: a bar on a terminal, otherwise a line from time to time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from structpe.printing import escaping

__all__ = ["progress_bar"]

SECONDS = 10.0
"""Seconds between two lines, and before the first; shorter work prints no line."""


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar or lines on the error stream, as a function of the numbers of finished and of all items."""
    if not sys.stderr.isatty():
        yield Lines(what)
        return
    from rich.console import Console
    from rich.progress import Progress

    # rich replaces both streams meanwhile; output is escaped before it is printed.
    with Progress(console=Console(stderr=True), transient=True) as bar, escaping():
        task = bar.add_task(what, total=None)

        def report(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield report


class Lines:
    """Lines such as ``writing: 320 of 971, about 3 min left``, one every ten seconds.

    Args:
        what: the name of the work.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self._began = self._said = time.monotonic()
        self._first: tuple[float, int, int] | None = None

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if self._first is None or done < self._first[1] or total != self._first[2]:  # another file
            self._first = now, done, total
        if now - self._said < SECONDS:
            return
        self._said = now
        print(f"{self.what}: {done:,}{self._rest(done, total, now)}", file=sys.stderr, flush=True)

    def _rest(self, done: int, total: int, now: float) -> str:
        """The total, and an estimate of the remaining time from the pace since the first call."""
        assert self._first is not None
        since, before, _ = self._first
        if not total:
            return ""
        seconds = (now - since) / max(1, done - before) * max(0, total - done)
        left = f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
        return f" of {total:,}" + (f", about {left} left" if done > before else "")
