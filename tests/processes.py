"""The processes that a process has started, and whether they are alive."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable

__all__ = ["alive", "descendants", "until"]


def until(condition: Callable[[], bool], seconds: float = 600) -> None:
    """Wait for something.

    Raises:
        AssertionError: it does not come.
    """
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.02)


def descendants(parent: int) -> set[int]:
    """The processes that a process has started, and those that these have."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,stat="], capture_output=True, text=True, check=True).stdout
    rows = [(int(pid), int(of)) for pid, of, state in map(str.split, listed.splitlines()) if not state.startswith("Z")]
    found, new = set(), {parent}
    while new:
        new = {pid for pid, of in rows if of in new} - found
        found |= new
    return found


def alive(process: int) -> bool:
    """Whether a process is there, and no zombie."""
    found = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True).stdout.strip()
    return bool(found) and not found.startswith("Z")
