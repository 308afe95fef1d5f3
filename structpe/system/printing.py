r"""Output to terminals: control characters escaped; lines and bars on the error stream.

File names, ids of items, errors of servers and cards come from outside. A control character in them could move the
cursor, rename the window or hide text; an override of direction could reverse a name. Here each is replaced by its
escape in Python, ``\x1b`` or ``\u202e``. Line feeds and tabs stay.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, TextIO, cast

__all__ = ["escaping", "on_terminal", "printable", "say", "show_error", "unescaped"]

OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""C0 except tab and line feed, DEL, C1, line separators, overrides of direction, surrogates."""


def printable(text: str) -> str:
    """Escape the control characters in a text."""
    return OBEYED.sub(_written, text)


def _written(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


class _Escaped:
    """A stream that escapes control characters.

    Args:
        stream: the underlying stream.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    @property
    def rich_proxied_file(self) -> TextIO:
        """The underlying stream, under this name for rich, which moves the cursor itself."""
        below: TextIO = getattr(self.stream, "rich_proxied_file", self.stream)
        return below.rich_proxied_file if isinstance(below, _Escaped) else below

    def write(self, text: str) -> int:
        """Write an escaped text."""
        self.stream.write(printable(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write all lines."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def escaping(everything: bool = False) -> Iterator[None]:
    """A context in which the error stream is escaped, and standard output if it is a terminal.

    Output to a pipe or a file is data and not changed.

    Args:
        everything: whether to escape standard output in any case, for example if it is a log.
    """
    before = sys.stdout, sys.stderr
    sys.stderr = cast(TextIO, _Escaped(sys.stderr))
    if everything or sys.stdout.isatty():
        sys.stdout = cast(TextIO, _Escaped(sys.stdout))
    within = sys.stdout, sys.stderr
    try:
        yield
    finally:
        # A stream that was replaced in the meantime is left alone.
        sys.stdout = before[0] if sys.stdout is within[0] else sys.stdout
        sys.stderr = before[1] if sys.stderr is within[1] else sys.stderr


def unescaped(stream: TextIO) -> TextIO:
    """The stream below an escaped stream, for tables in bold with escaped cells; any other stream itself."""
    return stream.rich_proxied_file if isinstance(stream, _Escaped) else stream


def show_error(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print an uncaught error, for ``sys.excepthook``."""
    with escaping():
        sys.__excepthook__(kind, error, trace)


def say(text: str) -> None:
    """Print one line on standard error."""
    print(printable(text), file=sys.stderr, flush=True)


def on_terminal() -> bool:
    """Whether standard error is a terminal."""
    return sys.stderr.isatty()
