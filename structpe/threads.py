"""How many threads compute, and that those with nothing to do sleep.

Threads of OpenMP that wait for one another spin: fast on a quiet machine, and ruinous where another process wants the
core. How they wait is read from the environment when PyTorch is loaded, so it must be there before.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from structpe.errors import ConfigError

__all__ = ["asked", "busy", "cores", "sleeping", "waiting"]

ASLEEP = {"OMP_WAIT_POLICY": "PASSIVE", "KMP_BLOCKTIME": "0"}
"""GNU's and Intel's OpenMP."""


def sleeping() -> None:
    """Let threads without work sleep in this process, if PyTorch is not loaded yet, and in those that it starts.

    What the environment says already stays.
    """
    for name, value in ASLEEP.items():
        os.environ.setdefault(name, value)


@contextmanager
def waiting(threads: int) -> Iterator[None]:
    """Processes that are started meanwhile compute with so many threads, which sleep where they have nothing to do."""
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


def asked() -> int | None:
    """What ``OMP_NUM_THREADS`` says; None where it says nothing.

    Raises:
        ConfigError: it is no number of threads.
    """
    said = os.environ.get("OMP_NUM_THREADS", "").strip()
    if not said:
        return None
    first = said.partition(",")[0].strip()  # a list has a number for each level of nesting
    if not (first.isascii() and first.isdigit() and int(first)):
        raise ConfigError(f"the environment variable OMP_NUM_THREADS is {said!r}; set it to 1 or more, or unset it")
    return int(first)


def cores() -> int:
    """Processors that this process may use."""
    if "sched_getaffinity" in dir(os):  # Linux; elsewhere all may be used
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def busy(threads: int) -> str:
    """A warning where more wants to compute than there are processors; the empty string where that is not so.

    Args:
        threads: that are about to start, all processes together.
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
