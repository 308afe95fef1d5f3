"""The queue: who shares a batch, who is answered what, and what is left at the end."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from structpe.errors import ReadError
from structpe.serve.batches import QueueFull, RequestQueue, WrongItem


def doubled(items: Sequence[int]) -> list[int]:
    if 13 in items:
        raise ReadError("there is no such number").at(f"item {items.index(13) + 1}", "row 2")
    if 0 in items:
        raise ZeroDivisionError
    return [2 * item for item in items]


@contextmanager
def held(largest: int = 8, queue: int = 100) -> Iterator[tuple[RequestQueue[int, int], threading.Event, list[int]]]:
    """RequestQueue whose thread waits in its first batch for the event; and the size of each batch."""
    go, begun, sizes = threading.Event(), threading.Event(), list[int]()

    def work(items: Sequence[int]) -> list[int]:
        begun.set()
        assert go.wait(10)
        return doubled(items)

    batches = RequestQueue(work, largest, 0.0, queue, sizes.append)
    batches.submit([1])
    assert begun.wait(10)
    try:
        yield batches, go, sizes
    finally:
        go.set()
        batches.close()


def test_requests_share_batches_up_to_the_largest() -> None:
    with held() as (batches, go, sizes):
        asked = [[n, n + 20] for n in range(1, 6)] + [list(range(1, 12))]
        found = [batches.submit(items) for items in asked]
        assert batches.waiting == 21
        go.set()
        assert [future.result(10) for future in found] == [doubled(items) for items in asked]
        assert sizes == [1, 8, 2, 11], "a request with more than the largest batch is a batch of its own"


def test_a_request_waits_for_others() -> None:
    sizes = list[int]()
    batches = RequestQueue(doubled, 2, 30.0, 9, sizes.append)
    first = batches.submit([1])
    assert not first.done()
    assert batches.submit([2]).result(10) == [4], "the batch is full, so nobody waits for the 30 seconds"
    assert (first.result(10), sizes) == ([2], [2])
    last = batches.submit([3])
    batches.close()
    assert last.result(0) == [6], "nor at the end"


def test_an_error_is_of_the_request_and_the_item_that_has_it() -> None:
    with held() as (batches, go, _):
        good, bad, bug = (batches.submit(items) for items in ([1, 2], [3, 13], [5, 0]))
        go.set()
        assert good.result(10) == [2, 4]
        with pytest.raises(WrongItem, match=r"^item 2: row 2: there is no such number$") as told:
            bad.result(10)
        assert told.value.number == 2
        with pytest.raises(ZeroDivisionError):
            bug.result(10)
        assert batches.ready


def test_a_full_queue_and_the_end() -> None:
    with held(queue=3) as (batches, go, sizes):
        kept, dropped = batches.submit([1, 2]), batches.submit([3])
        with pytest.raises(QueueFull, match="3 items wait, and 3 may"):
            batches.submit([4])
        assert dropped.cancel()
        go.set()
        batches.close()
        assert (kept.result(0), sizes) == ([2, 4], [1, 2]), "what waits is answered, what is cancelled is left out"
        assert not batches.ready
        with pytest.raises(QueueFull, match="the server is ending"):
            batches.submit([5])


def test_many_threads_lose_nothing() -> None:
    batches, found = RequestQueue[Any, Any](doubled, 16, 0.001, 10_000), dict[int, list[int]]()

    def client(number: int) -> None:
        for each in range(50):
            found[number * 50 + each] = batches.submit([number + 100, each + 100]).result(10)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    batches.close()
    assert found == {n: [2 * (n // 50 + 100), 2 * (n % 50 + 100)] for n in range(400)}
