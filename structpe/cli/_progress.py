"""A bar that moves on a terminal, and is not there elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from structpe.printing import escaping

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on the error stream, as a function to be told how many are done, and of how many."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    # While it moves, rich takes the place of both streams; what is printed meanwhile is escaped before.
    with Progress(console=console, disable=not console.is_terminal, transient=True) as bar, escaping():
        task = bar.add_task(what, total=None)

        def tell(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield tell
