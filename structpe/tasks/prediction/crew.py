"""Processes that train, several at a time; none of them outlives the one that started it."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from structpe.errors import StructPEError, explained
from structpe.printing import escaping
from structpe.tasks.prediction.study import Key
from structpe.tasks.training.folder import InUse
from structpe.tasks.training.progress import say
from structpe.workers import ends_with_its_parent

__all__ = ["LOG", "Crew", "Ended", "leads_its_group", "reporting"]

LOG = "log.txt"
"""The file, in the folder of a run, that holds what its process says."""
TICK = 0.5
"""Seconds between two looks at how far runs are."""
GRACE = 20
"""Seconds that trainings have for their last step and its checkpoint when they are asked to end."""


@dataclass(frozen=True)
class Ended:
    """How a process ended.

    Attributes:
        key: which run it was.
        kind: ``done``, ``busy`` where another process trains that run, or ``failed``.
        message: of the error.
    """

    key: Key
    kind: str
    message: str = ""


class Crew:
    """Starts processes, and tells how they end; leaving it asks those that still run to end, and soon ends them.

    A training that is asked ends with a checkpoint. Little is lost where it has no time for that: what it leaves on
    disk is whole at any moment.

    Args:
        jobs: how many processes at a time.
        ended: called for each process that has ended.
        look: called regularly with the runs in progress.
    """

    def __init__(self, jobs: int, ended: Callable[[Ended], None], look: Callable[[list[Key]], None]) -> None:
        self.jobs, self.ended, self.look = jobs, ended, look
        self._running: dict[Key, tuple[BaseProcess, Connection]] = {}

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *error: object) -> None:
        if self._running:
            say(f"{len(self._running)} runs are interrupted; the same command goes on with them")
        running = [process for process, _ in self._running.values()]
        try:
            for process in running:
                process.terminate()  # not the processes that it has started: it still needs these
            end = time.monotonic() + GRACE
            while (alive := [p.sentinel for p in running if p.is_alive()]) and time.monotonic() < end:
                wait(alive, TICK)
        finally:  # also at a second signal
            for process in running:
                _kill(process)

    def start(self, key: Key, target: Callable[..., None], given: tuple[Any, ...]) -> None:
        """Start ``target(*given, connection)`` in a process; see :func:`reporting`."""
        receive, send = get_context("spawn").Pipe(duplex=False)
        process = get_context("spawn").Process(target=target, args=(*given, send))
        with _uninterrupted():
            process.start()
        send.close()
        self._running[key] = process, receive

    def wait_for_room(self) -> None:
        """Until another process may start."""
        self._wait(self.jobs - 1)

    def wait_for_all(self) -> None:
        """Until all have ended."""
        self._wait(0)

    def _wait(self, most: int) -> None:
        while len(self._running) > most:
            wait([process.sentinel for process, _ in self._running.values()], TICK)
            for key, (process, receive) in list(self._running.items()):
                if not process.is_alive():
                    _kill(process)  # what a killed one may have left behind
                    del self._running[key]
                    self.ended(_ended(key, process.exitcode, receive))
            self.look(list(self._running))


def _ended(key: Key, code: int | None, receive: Connection) -> Ended:
    with contextlib.suppress(EOFError, OSError), receive:
        return Ended(key, *receive.recv())
    why = f"its process ended with code {code}"
    if code is not None and code < 0:
        why = f"its process was killed by signal {-code}" + (", often for want of memory" if code == -9 else "")
    return Ended(key, "failed", f"{why}; start the same command again to go on")


def _kill(process: BaseProcess) -> None:
    """End a process and its children; it leads its own process group."""
    assert process.pid is not None, "it was started"
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()  # where it does not lead one yet
    process.join()


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """A process started meanwhile does not hear Ctrl-C: who started it does, and ends it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def leads_its_group() -> None:
    """Let this process, and all that it will start, end when the one that started it does, however that ends."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # its child processes may use this signal to end it
    ends_with_its_parent(lambda: os.killpg(0, signal.SIGKILL))


@contextlib.contextmanager
def reporting(folder: Path, tell: Connection) -> Iterator[None]:
    """Write what is printed into the log of a folder; the outcome is sent to the :class:`Crew`.

    Args:
        folder: of the run; it is made.
        tell: where the crew listens.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / LOG).open("a", encoding="utf-8", buffering=1) as file:
            os.dup2(file.fileno(), 1)  # of what libraries print too
            os.dup2(file.fileno(), 2)
            with escaping(everything=True):
                yield
        tell.send(("done", ""))
    except InUse as error:
        tell.send(("busy", str(error)))
    except Exception as error:
        text = explained(error, f"{folder / LOG} says where it arose")
        tell.send(("failed", text))
        if isinstance(error, StructPEError):
            say(text)
        else:
            say(traceback.format_exc())
        sys.exit(1)
