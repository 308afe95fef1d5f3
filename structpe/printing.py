r"""The one place where text reaches a person: what a terminal would obey is written out, and not sent.

File names, ids of items, errors of servers and cards are of others. A control character among them moves the cursor,
renames the window or hides what is there; an override of direction turns a name around. Here each becomes what
Python would write for it, ``\x1b`` or ``\u202e``. Line feeds and tabs are layout, and stay.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, TextIO, cast

__all__ = ["escaping", "printable", "show_error", "unescaped"]

OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""C0 but for tab and line feed, DEL, C1, separators of lines, overrides of direction, halves of characters."""


def printable(text: str) -> str:
    """A text in which nothing is obeyed by a terminal."""
    return OBEYED.sub(_written, text)


def _written(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


class _Escaped:
    """A stream that a person reads.

    Args:
        stream: where it leads.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    @property
    def rich_proxied_file(self) -> TextIO:
        """The lowest stream: rich, which moves the cursor itself, asks for it by this name."""
        below: TextIO = getattr(self.stream, "rich_proxied_file", self.stream)
        return below.rich_proxied_file if isinstance(below, _Escaped) else below

    def write(self, text: str) -> int:
        """Write what is printable of it."""
        self.stream.write(printable(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write all of them."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def escaping(everything: bool = False) -> Iterator[None]:
    """While it lasts, the error stream is escaped, and the output where it is a terminal.

    Output that leads to a pipe or a file is data, and stays as it is to the byte.

    Args:
        everything: whether the output is escaped wherever it leads, as that of a process whose output is a log.
    """
    before = sys.stdout, sys.stderr
    sys.stderr = cast(TextIO, _Escaped(sys.stderr))
    if everything or sys.stdout.isatty():
        sys.stdout = cast(TextIO, _Escaped(sys.stdout))
    within = sys.stdout, sys.stderr
    try:
        yield
    finally:
        # Whoever has put another stream there meanwhile takes it away himself.
        sys.stdout = before[0] if sys.stdout is within[0] else sys.stdout
        sys.stderr = before[1] if sys.stderr is within[1] else sys.stderr


def unescaped(stream: TextIO) -> TextIO:
    """What is below an escaped stream, for tables in bold whose cells were escaped; any other stream is itself."""
    return stream.rich_proxied_file if isinstance(stream, _Escaped) else stream


def show_error(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print an error that nobody caught: for ``sys.excepthook``."""
    with escaping():
        sys.__excepthook__(kind, error, trace)
