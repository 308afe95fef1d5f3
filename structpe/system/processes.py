"""Signals that end a process, and numbers of threads.

Signals: by default Python ends immediately, without cleaning up. Here they raise an exception, as Ctrl-C does, and a
training ends after its step. An ignored signal, such as SIGHUP under ``nohup``, stays ignored.

Threads of OpenMP that wait for each other spin: this is fast on an idle machine, and very slow if other processes need
the cores. PyTorch reads the setting from the environment when it is loaded, so it must be set before.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn, Self

from structpe.errors import ConfigError

__all__ = ["EndRequest", "busy", "cores", "ended_by", "ending", "requested", "sleeping", "waiting"]

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


ASLEEP = {"OMP_WAIT_POLICY": "PASSIVE", "KMP_BLOCKTIME": "0"}
"""The settings of GNU's and Intel's OpenMP."""


def sleeping() -> None:
    """Let idle threads sleep in this process, if PyTorch is not loaded yet, and in its child processes.

    Existing environment variables are not changed.
    """
    for name, value in ASLEEP.items():
        os.environ.setdefault(name, value)


@contextmanager
def waiting(threads: int) -> Iterator[None]:
    """A context in which new processes compute with this number of threads, which sleep when idle."""
    wanted = {**{k: os.environ.get(k, v) for k, v in ASLEEP.items()}, "OMP_NUM_THREADS": str(threads)}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def requested() -> int | None:
    """The value of ``OMP_NUM_THREADS``; None if it is not set.

    Raises:
        ConfigError: it is not a number of threads.
    """
    value = os.environ.get("OMP_NUM_THREADS", "").strip()
    if not value:
        return None
    first = value.partition(",")[0].strip()  # a list has a number for each level of nesting
    if not (first.isascii() and first.isdigit() and int(first)):
        raise ConfigError(f"the environment variable OMP_NUM_THREADS is {value!r}; set it to 1 or more, or unset it")
    return int(first)


def cores() -> int:
    """Number of processors that this process may use."""
    if "sched_getaffinity" in dir(os):  # on Linux; otherwise all processors
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def busy(threads: int) -> str:
    """A warning if there is more work than processors; otherwise empty.

    Args:
        threads: number of threads that will start, in all processes together.
    """
    try:
        load = os.getloadavg()[0]
    except (OSError, AttributeError):  # Windows has none
        load = 0.0
    have = cores()
    if load > have:
        return f"the machine is busy, its load is {load:.1f} on {have} cores: steps take longer, and times say little"
    if threads > have:
        return f"{threads} threads share {have} cores: take fewer jobs or threads, or steps take longer"
    return ""
