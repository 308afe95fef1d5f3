"""A process that is killed at a chosen moment: before its k-th look at, or change of, the disk."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator

EVENTS = ("open", "os.", "shutil.", "ctypes.dlsym")
"""The audit events of Python that tell of the disk; the last one comes before names are exchanged."""


def killed_at(moment: int, work: Callable[[], object]) -> bool:
    """Whether a fork of this process, which does the work, was killed at that moment; else it was done before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # no thread of this process holds anything
        pid = os.fork()
    if pid == 0:
        _work(moment, work)
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, -signal.SIGKILL), f"it ended with {code}"
    return code != 0


def every_moment(work: Callable[[], object], step: int = 1, most: int = 1000) -> Iterator[int]:
    """Kill a process that does the work at its first moment, its next, and so on, until it comes to its end."""
    for moment in range(1, most, step):
        if not killed_at(moment, work):
            return
        yield moment
    raise AssertionError(f"it does not end within {most} moments")


def _work(moment: int, work: Callable[[], object]) -> None:
    left = moment

    def watch(event: str, args: tuple[object, ...]) -> None:
        nonlocal left
        if event.startswith(EVENTS):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    code = 1
    try:
        sys.addaudithook(watch)
        work()
        code = 0
    finally:
        os._exit(code)  # nothing that the tests wanted to do at their end
