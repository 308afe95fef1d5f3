"""Worker processes, on this machine or a Dask cluster. No process outlives the one that started it."""

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
"""The smallest number of tasks that are submitted before the first result is awaited."""
EACH = 2
"""Tasks per worker: one in work and one waiting, since a worker should never be idle."""
RETRIES = 3
"""How often a cluster gives a shard to another worker after one has died."""


class Workers(Executor):
    """An executor that knows its number of workers.

    Args:
        executor: processes of this machine, or of a cluster.
        count: number of workers.
    """

    def __init__(self, executor: Executor, count: int) -> None:
        self.executor, self.count = executor, count

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        return self.executor.submit(fn, *args, **kwargs)


def ends_with_its_parent(end: Callable[[], object] = lambda: os._exit(1)) -> None:
    """End this process when the one that started it ends in any way. Every worker calls this first.

    This has no effect in a process that ``multiprocessing`` did not start.

    Args:
        end: ends the process; called in a thread, once the parent has ended.
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
    """A context with an executor of several workers; None, which means the calling process, for one job.

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
        spawn = get_context("spawn")  # a forked process may inherit locks that no thread will ever release
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
        function: a function of a module, since workers import it.
        tasks: its arguments; read as workers become free.
        executor: None computes in this process.
        ahead: number of tasks that are submitted before the first result is awaited, which bounds the memory; 0 for two
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
        wrong = "a worker process was killed, perhaps because memory was short; complete shards are kept"
        raise ConfigError(f"{wrong}: run the same again, with fewer jobs") from None
    finally:
        for future in out:
            future.cancel()


def _client(scheduler: str) -> Any:  # untyped upstream
    try:
        from distributed import Client
    except ImportError:
        wrong = "a cluster needs Dask, which is not installed: pip install 'structpe[scale]'"
        raise ConfigError(f"{wrong}; or give jobs for processes of this machine") from None
    return Client(scheduler)  # type: ignore[no-untyped-call]
