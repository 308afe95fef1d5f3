"""Buckets: graphs of a batch that are padded to one size together, so that attention computes few empty cells.

Attention over a graph of n units has n^2 cells, so that padding all graphs of a batch to the largest wastes most of
them: molecules then have 2.3 times the cells that they need. Every bucket costs some time of its
own, however few its cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

__all__ = ["OVERHEAD", "cut"]

OVERHEAD = 8192
"""The cells that could be computed in the time that one more bucket takes: between 4,000 and 16,000 on a CPU, where the
time of a training step with molecules is flat."""


def cut(sizes: Sequence[int], overhead: int = OVERHEAD) -> list[int]:
    """Where to cut graphs, sorted by size, into buckets: the ends of the buckets, of least cost in all.

    The cost of a bucket of b graphs, the largest of size m, is b m^2 + overhead. Found exactly, by dynamic programming
    over the distinct sizes.

    Args:
        sizes: of the graphs, ascending.
        overhead: cells that weigh as much as a bucket.
    """
    distinct, counts = np.unique(np.asarray(sizes), return_counts=True)
    ends = np.cumsum(counts)
    starts = ends - counts
    best = np.full(len(distinct) + 1, np.inf)  # least cost of the graphs of the first i sizes
    best[0] = 0.0
    before = np.zeros(len(distinct) + 1, dtype=np.int64)
    for i, (size, end) in enumerate(zip(distinct.tolist(), ends.tolist(), strict=True), start=1):
        costs = best[:i] + (end - starts[:i]) * float(size) ** 2 + overhead
        before[i] = int(costs.argmin())
        best[i] = costs[before[i]]
    cuts = [len(distinct)]
    while cuts[-1]:
        cuts.append(int(before[cuts[-1]]))
    return [int(ends[i - 1]) for i in reversed(cuts[:-1])]


def padded(sizes: Sequence[int], ends: Sequence[int]) -> int:
    """How many cells attention computes with these buckets."""
    return sum((end - start) * sizes[end - 1] ** 2 for start, end in pairwise([0, *ends]))
