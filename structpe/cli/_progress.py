"""How far something is: a bar on a terminal, elsewhere a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from structpe.printing import escaping

__all__ = ["progress_bar"]

SECONDS = 10.0
"""Between two lines, and before the first: what takes no longer says nothing."""


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar or lines on the error stream, as a function that takes how many are done, and of how many."""
    if not sys.stderr.isatty():
        yield Lines(what)
        return
    from rich.console import Console
    from rich.progress import Progress

    # While it moves, rich takes the place of both streams; what is printed meanwhile is escaped before.
    with Progress(console=Console(stderr=True), transient=True) as bar, escaping():
        task = bar.add_task(what, total=None)

        def tell(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield tell


class Lines:
    """Lines such as ``writing: 320 of 971, about 3 min left``, one every ten seconds.

    Args:
        what: is done.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self._began = self._said = time.monotonic()
        self._first: tuple[float, int, int] | None = None

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if self._first is None or done < self._first[1] or total != self._first[2]:  # the next of several files
            self._first = now, done, total
        if now - self._said < SECONDS:
            return
        self._said = now
        print(f"{self.what}: {done:,}{self._rest(done, total, now)}", file=sys.stderr, flush=True)

    def _rest(self, done: int, total: int, now: float) -> str:
        """Of how many, and how long the rest takes at the pace since the first: what came before it is over."""
        assert self._first is not None
        since, before, _ = self._first
        if not total:
            return ""
        seconds = (now - since) / max(1, done - before) * max(0, total - done)
        left = f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
        return f" of {total:,}" + (f", about {left} left" if done > before else "")
