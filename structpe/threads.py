"""The number of threads, and settings that let idle threads sleep.

Threads of OpenMP that wait for each other spin: this is fast on an idle machine, and very slow if other processes need
the cores. PyTorch reads the setting from the environment when it is loaded, so it must be set before.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from structpe.errors import ConfigError

__all__ = ["busy", "cores", "requested", "sleeping", "waiting"]

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
