"""Signals that ask a process to end: SIGTERM of an administrator or a queue, SIGHUP of a terminal that is closed.

Python ends at once at these, without cleaning up. Here they raise, as Ctrl-C does; a training ends after its step.
A signal that is ignored, as ``nohup`` lets SIGHUP be, stays so.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn, Self

__all__ = ["Asked", "ended_by", "ending"]

ENDING = tuple(signal.Signals[name] for name in ("SIGTERM", "SIGHUP") if name in signal.Signals.__members__)
"""All but Ctrl-C, which raises already; Windows has one of them."""


@contextmanager
def ending() -> Iterator[None]:
    """While it lasts, these signals raise ``SystemExit`` with 128 and their number, as shells tell of them."""
    before = _heard(ENDING)
    try:
        for number in before:
            signal.signal(number, _end)
        yield
    finally:
        _restore(before)


def ended_by(code: object) -> str:
    """The name of the signal that an exit code tells of; the empty string where it tells of none."""
    numbers = {128 + number: number.name for number in (*ENDING, signal.SIGINT)}
    return numbers.get(code, "") if isinstance(code, int) else ""


class Asked:
    """Hears these signals and Ctrl-C, and remembers the first; the second does what it would have done without this.

    Only the main thread hears signals: elsewhere nothing is heard.

    Args:
        heard: the message at the first signal.
    """

    def __init__(self, heard: str) -> None:
        self.number, self.heard = 0, heard
        self._before = _heard((*ENDING, signal.SIGINT))

    def __enter__(self) -> Self:
        for number in self._before:
            signal.signal(number, self._hear)
        return self

    def __exit__(self, *error: object) -> None:
        _restore(self._before)

    def end(self) -> NoReturn:
        """End as the signal would have ended it."""
        if self.number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + self.number)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        del frame
        self.number = number
        _restore(self._before)
        line = f"{signal.Signals(number).name}: {self.heard}\n"
        try:
            os.write(2, line.encode())  # print may be in the midst of another line
        except OSError:  # the terminal is gone, and so is whoever reads
            nowhere = os.open(os.devnull, os.O_WRONLY)
            for stream in (1, 2):
                os.dup2(nowhere, stream)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    del frame
    raise SystemExit(128 + number)


Handlers = dict[signal.Signals, Callable[[int, FrameType | None], Any] | int]


def _heard(numbers: tuple[signal.Signals, ...]) -> Handlers:
    """What these signals do now, those left out that are ignored or belong to others; none outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    handlers = {number: signal.getsignal(number) for number in numbers}
    return {n: each for n, each in handlers.items() if each is not None and each != signal.SIG_IGN}


def _restore(before: Handlers) -> None:
    for number, handler in before.items():
        signal.signal(number, handler)
