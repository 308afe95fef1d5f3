"""Signals that end a process, numbers of threads, and processes that share work.

Signals: by default Python ends immediately, without cleaning up. Here they raise an exception, as Ctrl-C does, and a
training ends after its step. An ignored signal, such as SIGHUP under ``nohup``, stays ignored.

Threads of OpenMP that wait for each other spin: this is fast on an idle machine, and very slow if other processes need
the cores. PyTorch reads the setting from the environment when it is loaded, so it must be set before.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from types import FrameType
from typing import Any, NoReturn, Self, TypeVar

from structpe.errors import ConfigError

__all__ = [
    "EndRequest",
    "Workers",
    "busy",
    "cores",
    "ended_by",
    "ending",
    "ends_with_its_parent",
    "in_order",
    "requested",
    "sleeping",
    "waiting",
    "workers",
]


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


T = TypeVar("T")

AHEAD = 16
"""Tasks that are given out before the first result is waited for, at least;"""
EACH = 2
"""and so many per worker, so that none waits for the next."""

RETRIES = 3
"""How often a cluster gives a shard to another worker when one has died over it."""


class Workers(Executor):
    """An executor and how many workers it has.

    Args:
        executor: processes of this machine, or of a cluster.
        count: how many.
    """

    def __init__(self, executor: Executor, count: int) -> None:
        self.executor, self.count = executor, count

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        return self.executor.submit(fn, *args, **kwargs)


def ends_with_its_parent(end: Callable[[], object] = lambda: os._exit(1)) -> None:
    """Let this process end when the one that started it does, however that ends. Every process calls this first.

    A process that has none for a parent that ``multiprocessing`` knows is left as it is.

    Args:
        end: ends the process; called in a thread, once the other has ended.
    """
    if (parent := parent_process()) is None:
        return
    sentinel = parent.sentinel

    def watch() -> None:
        wait([sentinel])
        end()

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def workers(jobs: int = 1, scheduler: str | None = None) -> Iterator[Workers | None]:
    """A context with an executor of several workers; None, for the calling process, if one job is asked for.

    Args:
        jobs: number of processes on this machine, each with one thread.
        scheduler: address of the scheduler of a Dask cluster, such as ``tcp://host:8786``; its workers need the library
            and the file system of the store.

    Raises:
        ConfigError: ``jobs`` is less than 1, or Dask is not installed.
        OSError: the scheduler does not answer.
    """
    if jobs < 1:
        raise ConfigError(f"jobs is {jobs}; give 1 or more processes")
    if scheduler is not None:
        with _client(scheduler) as client:
            yield Workers(client.get_executor(pure=False, retries=RETRIES), sum(client.ncores().values()))
    elif jobs == 1:
        yield None
    else:
        spawn = get_context("spawn")  # threads of a forked process may hold locks for ever
        with waiting(threads=1), ProcessPoolExecutor(jobs, spawn, ends_with_its_parent) as pool:
            try:
                yield Workers(pool, jobs)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def in_order(
    function: Callable[..., T], tasks: Iterable[tuple[Any, ...]], executor: Executor | None, ahead: int = 0
) -> Iterator[T]:
    """The results of a function, in the order of its tasks.

    Args:
        function: a function of a module, as workers import it.
        tasks: its arguments; read as workers become free.
        executor: None computes in this process.
        ahead: how many tasks are given out before the first result is waited for, which bounds the memory; 0 for two
            per worker, and 16 at least.

    Raises:
        ConfigError: a process was killed, for example because memory was short.
    """
    if executor is None:
        for task in tasks:
            yield function(*task)
        return
    ahead = ahead or max(AHEAD, EACH * executor.count if isinstance(executor, Workers) else 0)
    out: deque[Future[T]] = deque()
    try:
        for task in tasks:
            out.append(executor.submit(function, *task))
            if len(out) >= ahead:
                yield out.popleft().result()
        while out:
            yield out.popleft().result()
    except BrokenProcessPool:
        raise ConfigError(
            "a worker process was killed, perhaps because memory was short; complete shards are kept: run the same "
            "again, with fewer jobs"
        ) from None
    finally:
        for future in out:
            future.cancel()


def _client(scheduler: str) -> Any:  # untyped upstream
    try:
        from distributed import Client
    except ImportError:
        raise ConfigError(
            "a cluster needs Dask, which is not installed: pip install 'structpe[scale]'; or give jobs for processes "
            "of this machine"
        ) from None
    return Client(scheduler)  # type: ignore[no-untyped-call]
