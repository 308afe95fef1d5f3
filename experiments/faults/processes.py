"""Commands as processes of their own: forks of this one, in which libraries are loaded; and what befalls them."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

EVENTS = ("open", "os.", "shutil.", "ctypes.dlsym")
"""Audit events of Python that tell of the disk; the last one comes before two names are exchanged."""
LIMIT = 120
"""Seconds after which a process that does not end is a find."""


@dataclass(frozen=True)
class Blow:
    """What befalls a process.

    Attributes:
        signal: is sent to it; 0 for none.
        event: before which look at, or change of, the disk; 0 counts none.
        after: seconds, where no event is counted.
        largest: bytes of a file, at most; 0 for any number.
    """

    signal: int = 0
    event: int = 0
    after: float = 0.0
    largest: int = 0


@dataclass(frozen=True)
class Ended:
    """How a process ended: its exit code, negative for a signal; what it said; seconds; looks at the disk."""

    code: int
    said: str
    seconds: float
    events: int


class Process:
    """A fork that does some work in a folder.

    Args:
        work: gives the exit code.
        folder: is its current one.
        blow: what befalls it.
    """

    def __init__(self, work: Callable[[], int], folder: Path, blow: Blow = Blow()) -> None:
        self.said, self.counted = (folder.parent / f"{folder.name}.{time.monotonic_ns()}.{x}" for x in ("err", "count"))
        self.said.touch()
        self.blow, self.began = blow, time.monotonic()
        sys.stdout.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # no thread of this process holds anything
            self.pid = os.fork()
        if not self.pid:
            self._work(work, folder)

    def end(self) -> Ended:
        """Wait for its end; who waits sends the signal of a moment."""
        blow, sent = self.blow, not (self.blow.signal and not self.blow.event)
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            now = time.monotonic() - self.began
            if pid:
                break
            if not sent and now >= blow.after:
                os.kill(self.pid, blow.signal)
                sent = True
            if now > LIMIT:
                os.kill(self.pid, signal.SIGKILL)
            time.sleep(0.002)
        said = self.said.read_text(encoding="utf-8", errors="replace")
        events = int(self.counted.read_text() or 0) if self.counted.exists() else 0
        for file in (self.said, self.counted):
            file.unlink(missing_ok=True)
        return Ended(os.waitstatus_to_exitcode(status), said, now, events)

    def _work(self, work: Callable[[], int], folder: Path) -> None:
        code = 99
        try:
            self._as_if_new(folder)
            code = work()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
            self.counted.write_text(str(count))
            os._exit(code)

    def _as_if_new(self, folder: Path) -> None:
        os.chdir(folder)
        out = os.open(self.said, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for number in (1, 2):
            os.dup2(out, number)
        sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1, closefd=False) for number in (1, 2))
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        warnings.resetwarnings()
        warnings.simplefilter("ignore")
        watch(self.blow, str(folder))
        if self.blow.largest:
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.blow.largest, resource.RLIM_INFINITY))


count = 0


def outliving(folder: Path, seconds: float = 10.0) -> list[int]:
    """Processes whose current folder this still is after some time: those that a killed one has left. They are ended.

    Only Linux tells.
    """
    end = time.monotonic() + seconds
    while (left := _inside(folder)) and time.monotonic() < end:
        time.sleep(0.05)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return left


def _inside(folder: Path) -> list[int]:
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            inside = os.readlink(each / "cwd") == str(folder.resolve())
            if inside and (each / "stat").read_text().rpartition(")")[2].split()[0] != "Z":
                found.append(int(each.name))
        except OSError:  # it has ended, or is another user's
            continue
    return found


def watch(blow: Blow, folder: str) -> None:
    """Count looks at, and changes of, a folder, and send a signal at one of them; children go on counting."""

    def hear(event: str, args: tuple[object, ...]) -> None:
        global count
        if event.startswith(EVENTS) and args and _within(args[0], folder):
            count += 1
            if blow.signal and count == blow.event:
                os.kill(os.getpid(), blow.signal)

    sys.addaudithook(hear)


def _within(place: object, folder: str) -> bool:
    if isinstance(place, bytes):
        place = os.fsdecode(place)
    return isinstance(place, (str, os.PathLike)) and (str(place).startswith(folder) or not str(place).startswith("/"))
