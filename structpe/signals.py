"""Signals that end a process: SIGTERM from an administrator or a queue, SIGHUP from a closed terminal.

By default Python ends immediately, without cleaning up. Here they raise an exception, as Ctrl-C does, and a training
ends after its step. An ignored signal, such as SIGHUP under ``nohup``, stays ignored.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn, Self

__all__ = ["EndRequest", "ended_by", "ending"]

ENDING = tuple(signal.Signals[name] for name in ("SIGTERM", "SIGHUP") if name in signal.Signals.__members__)
"""The signals except Ctrl-C, which already raises an exception; Windows has one of them."""


@contextmanager
def ending() -> Iterator[None]:
    """A context in which these signals raise ``SystemExit`` with 128 + their number, as in shells."""
    before = _heard(ENDING)
    try:
        for number in before:
            signal.signal(number, _end)
        yield
    finally:
        _restore(before)


def ended_by(code: object) -> str:
    """The name of the signal of an exit code; empty if no signal ended the process."""
    numbers = {128 + number: number.name for number in (*ENDING, signal.SIGINT)}
    return numbers.get(code, "") if isinstance(code, int) else ""


class EndRequest:
    """Catches these signals and Ctrl-C, and remembers the first; the second has its usual effect.

    Only the main thread receives signals; in other threads this has no effect.

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
        """End as the signal would have ended the process."""
        if self.number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + self.number)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        del frame
        self.number = number
        _restore(self._before)
        line = f"{signal.Signals(number).name}: {self.heard}\n"
        try:
            os.write(2, line.encode())  # print may be in the middle of another line
        except OSError:  # the terminal is closed
            nowhere = os.open(os.devnull, os.O_WRONLY)
            for stream in (1, 2):
                os.dup2(nowhere, stream)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    del frame
    raise SystemExit(128 + number)


Handlers = dict[signal.Signals, Callable[[int, FrameType | None], Any] | int]


def _heard(numbers: tuple[signal.Signals, ...]) -> Handlers:
    """The handlers of these signals, except ignored and foreign ones; empty outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    handlers = {number: signal.getsignal(number) for number in numbers}
    return {n: each for n, each in handlers.items() if each is not None and each != signal.SIG_IGN}


def _restore(before: Handlers) -> None:
    for number, handler in before.items():
        signal.signal(number, handler)
