"""Edges that a library stores in both directions: which rows are kept, against pairing one by one."""

from __future__ import annotations

from collections import Counter

import numpy as np

from structpe.formats.arrays import one_way


def paired(rows: list[tuple[int, int, int]]) -> list[int] | None:
    """The rows that are no reverse of an earlier one; None if some row stays alone."""
    waiting: Counter[tuple[int, int, int]] = Counter()
    kept = []
    for number, (source, target, kind) in enumerate(rows):
        if waiting[target, source, kind] and source != target:
            waiting[target, source, kind] -= 1
            continue
        kept.append(number)
        waiting[source, target, kind] += source != target
    return None if sum(waiting.values()) else kept


def test_rows_are_paired_with_their_reverses() -> None:
    random, found = np.random.default_rng(0), set()
    for _ in range(500):
        table = random.integers(0, (5, 5, 2), (random.integers(1, 13), 3))  # source, target, an attribute
        if random.integers(2):
            table = np.concatenate([table, table[table[:, 0] != table[:, 1]][:, [1, 0, 2]]])
        kept, directed = one_way(table[:, :2], [table[:, 2]], None)
        expected = paired(list(map(tuple, table.tolist())))
        assert directed == (expected is None)
        assert kept.tolist() == (list(range(len(table))) if expected is None else expected)
        found.add(directed)
    assert found == {False, True}
