"""Counts and times of a server, in the text format of Prometheus."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence

__all__ = ["CONTENT", "ServerMetrics"]

CONTENT = "text/plain; version=0.0.4; charset=utf-8"
"""The type of the text."""
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128)


class _Histogram:
    def __init__(self, name: str, doc: str, bounds: Sequence[float]) -> None:
        self.name, self.doc, self.bounds = name, doc, bounds
        self.counts, self.sum = [0] * (len(bounds) + 1), 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def lines(self) -> Iterator[str]:
        yield from _head(self.name, "histogram", self.doc)
        total = 0
        for bound, count in zip((*self.bounds, "+Inf"), self.counts, strict=True):
            total += count
            yield f'{self.name}_bucket{{le="{bound}"}} {total}'
        yield f"{self.name}_sum {self.sum:.9g}"
        yield f"{self.name}_count {total}"


def _head(name: str, kind: str, doc: str) -> Iterator[str]:
    yield f"# HELP {name} {doc}"
    yield f"# TYPE {name} {kind}"


class ServerMetrics:
    """What a server has done; threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[int] = Counter()
        self._seconds = _Histogram("structpe_request_seconds", "Time from the headers to the answer.", SECONDS)
        self._sizes = _Histogram("structpe_batch_items", "Items of a batch.", SIZES)

    def request(self, status: int, seconds: float) -> None:
        """Count a request."""
        with self._lock:
            self._requests[status] += 1
            self._seconds.add(seconds)

    def batch(self, size: int) -> None:
        """Count a batch."""
        with self._lock:
            self._sizes.add(size)

    def text(self, waiting: int) -> str:
        """All of it, with the number of items that wait now."""
        with self._lock:
            lines = [*_head("structpe_requests_total", "counter", "Requests by status of the answer.")]
            lines += [f'structpe_requests_total{{code="{code}"}} {n}' for code, n in sorted(self._requests.items())]
            lines += _head("structpe_errors_total", "counter", "Requests whose status is 400 or more.")
            lines.append(f"structpe_errors_total {sum(n for code, n in self._requests.items() if code >= 400)}")
            lines += _head("structpe_queue_items", "gauge", "Items that wait for a batch.")
            lines.append(f"structpe_queue_items {waiting}")
            lines += [*self._seconds.lines(), *self._sizes.lines()]
        return "\n".join(lines) + "\n"
