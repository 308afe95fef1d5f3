"""The progress of reading files: paths that open as files which count the bytes that are read.

Readers need no changes, if they open the path that they are given.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

__all__ = ["Meter"]

T = TypeVar("T")
PIECE = 1 << 17


class Meter:
    """Reports the number of bytes read, and of all bytes.

    Args:
        files: the files, in the order of reading.
        report: called with both numbers; None for no reports.
    """

    def __init__(self, files: Sequence[Path], report: Callable[[int, int], object] | None) -> None:
        self.report = report
        self.sizes = [] if report is None else [file.stat().st_size for file in files]
        self.total = sum(self.sizes)
        self.done = 0

    def watched(self, files: Sequence[tuple[Path, T]]) -> Iterator[tuple[Path, T]]:
        """The files with counting paths; a file that is read in another way counts at its end."""
        if self.report is None:
            yield from files
            return
        for place, (file, chosen) in enumerate(files):
            path = _Counting(file)
            path.count = self._count
            yield path, chosen
            self.done = sum(self.sizes[: place + 1])
            self.report(self.done, self.total)

    def _count(self, taken: int) -> None:
        self.done += taken
        if self.report is not None:
            self.report(self.done, self.total)


class _Counting(type(Path())):  # type: ignore[misc]  # the class depends on the operating system
    """A path whose files report what is read from them."""

    count: Callable[[int], None] | None = None

    def open(self, mode: str = "r", *given: Any, **options: Any) -> Any:
        if self.count is None or mode.strip("bt") != "r":
            return super().open(mode, *given, **options)
        names = ("buffering", "encoding", "errors", "newline")
        options |= dict(zip(names, given, strict=False))
        file = io.BufferedReader(_Counted(self, self.count), PIECE)
        options.pop("buffering", None)
        return file if "b" in mode else io.TextIOWrapper(file, **options)


class _Counted(io.FileIO):
    """A file that reports what is read from it."""

    def __init__(self, path: Path, count: Callable[[int], None]) -> None:
        super().__init__(path, "rb")
        self.count = count

    def readinto(self, buffer: Any) -> int:
        taken = super().readinto(buffer) or 0
        if taken:
            self.count(taken)
        return taken

    def readall(self) -> bytes:
        content = super().readall()
        self.count(len(content))
        return content
