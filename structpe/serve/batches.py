"""A queue of requests. One thread works on their items, those of several requests at a time."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import islice
from time import monotonic
from typing import Generic, TypeVar

from structpe.errors import StructPEError

__all__ = ["QueueFull", "RequestQueue", "WrongItem"]

T = TypeVar("T")
R = TypeVar("R")


class QueueFull(StructPEError):
    """The queue is full, or the server ends."""


class WrongItem(StructPEError):
    """One item of a request is wrong.

    Args:
        number: of the item, from 1.
        error: what is wrong.
    """

    def __init__(self, number: int, error: StructPEError) -> None:
        super().__init__(error.message)
        self.number = number
        inner = [place for place in error.places if not place.startswith(("item ", "graph "))]  # numbers of a batch
        self.at(f"item {number}", *inner)


@dataclass(frozen=True, eq=False)
class _Job(Generic[T, R]):
    items: Sequence[T]
    future: Future[list[R]] = field(default_factory=Future)
    since: float = field(default_factory=monotonic)


class RequestQueue(Generic[T, R]):
    """The queue, and its thread, which begins at once.

    Args:
        work: gives a result for each item, in their order, and the result of an item does not depend on the others.
            Only this thread calls it.
        largest: items of a batch at most; a request with more is a batch of its own.
        wait: seconds from the arrival of a request in which others may still join its batch.
        queue: items that may wait.
        done: called with the number of items of each batch.
    """

    def __init__(
        self,
        work: Callable[[Sequence[T]], Sequence[R]],
        largest: int,
        wait: float,
        queue: int,
        done: Callable[[int], object] = lambda size: None,
    ) -> None:
        self.work, self.largest, self.wait, self.queue, self.done = work, largest, wait, queue, done
        self._jobs: deque[_Job[T, R]] = deque()
        self._waiting, self._open, self._change = 0, True, threading.Condition()
        self._thread = threading.Thread(target=self._run, name="batches", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """The number of items that wait."""
        return self._waiting

    @property
    def ready(self) -> bool:
        """Whether requests are taken."""
        return self._open and self._thread.is_alive()

    def submit(self, items: Sequence[T]) -> Future[list[R]]:
        """Put a request into the queue. A result that is cancelled before its batch begins costs nothing.

        Raises:
            QueueFull: the queue is full, or closed.
        """
        with self._change:
            if not self._open:
                raise QueueFull("the server is ending; ask again when it is back")
            if self._waiting + len(items) > max(self.queue, len(items)):
                raise QueueFull(f"{self._waiting} items wait, and {self.queue} may; ask again later")
            job = _Job[T, R](items)
            self._jobs.append(job)
            self._waiting += len(items)
            self._change.notify()
        return job.future

    def close(self) -> None:
        """Take no more requests, work on those that wait, and end."""
        with self._change:
            self._open = False
            self._change.notify()
        self._thread.join()

    def _run(self) -> None:
        while (jobs := self._next()) is not None:
            if jobs:
                self.done(sum(len(job.items) for job in jobs))
                self._answer(jobs)

    def _next(self) -> list[_Job[T, R]] | None:
        """The requests of the next batch, none if all are cancelled; None at the end."""
        with self._change:
            self._change.wait_for(lambda: self._jobs or not self._open)
            if not self._jobs:
                return None
            until = self._jobs[0].since + self.wait
            while self._open and self._waiting < self.largest and (left := until - monotonic()) > 0:
                self._change.wait(left)
            taken: list[_Job[T, R]] = []
            size = 0
            while self._jobs and (not taken or size + len(self._jobs[0].items) <= self.largest):
                job = self._jobs.popleft()
                self._waiting -= len(job.items)
                if job.future.set_running_or_notify_cancel():
                    taken.append(job)
                    size += len(job.items)
            return taken

    def _answer(self, jobs: Sequence[_Job[T, R]]) -> None:
        """Answer requests, each alone if there is an error: it belongs to one of them."""
        try:
            results = self.work([item for job in jobs for item in job.items])
        except Exception as error:
            if len(jobs) == 1:
                jobs[0].future.set_exception(self._located(jobs[0].items, error))
            else:
                for job in jobs:
                    self._answer([job])
            return
        rest = iter(results)
        for job in jobs:
            job.future.set_result(list(islice(rest, len(job.items))))

    def _located(self, items: Sequence[T], error: Exception) -> Exception:
        """The error of the first item that is wrong alone."""
        if not isinstance(error, StructPEError):
            return error
        for number, item in enumerate(items, 1):
            try:
                if len(items) > 1:
                    self.work([item])
            except StructPEError as own:
                return WrongItem(number, own)
            except Exception as own:
                return own
        return WrongItem(1, error) if len(items) == 1 else error
