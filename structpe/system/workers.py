"""Processes of this machine, none of which outlives the one that started it; workers, also those of a Dask cluster."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from typing import Any, TypeVar

from structpe.errors import ConfigError
from structpe.system.processes import waiting

__all__ = ["Workers", "ends_with_its_parent", "in_order", "workers"]

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
