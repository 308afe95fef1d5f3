"""Progress messages: lines on the error stream, or a bar if that is a terminal."""

from __future__ import annotations

import sys

from structpe.printing import printable

__all__ = ["on_terminal", "say"]


def say(text: str) -> None:
    """One line."""
    print(printable(text), file=sys.stderr, flush=True)


def on_terminal() -> bool:
    """Whether somebody looks on, so that a bar can move."""
    return sys.stderr.isatty()
