"""Encoding takes at the most some twice the memory of what it returns; in eight bytes for each pair it was 17 times."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest

from structpe.data.chunks import columns
from structpe.encodings import Distance, Encoding, RandomWalk, UndirectedDistance
from structpe.encodings.compiled import slow
from structpe.structure import Structure
from tests.representatives import only

RINGS = [
    Structure(("x",) * n, [[i, (i + 1) % n] for i in range(n)], ("r",) * n, directed=False)
    for n in np.random.default_rng(0).integers(20, 64, 40).tolist()
]
FREE = 4 << 20
"""Of a part and of blocks, whatever the size of the data set."""


def peak(structures: Sequence[Structure], encoding: Encoding) -> tuple[int, int]:
    """Bytes of the column, and the most that NumPy had beyond what was there."""
    columns(structures[:1], [encoding])
    tracemalloc.start()
    column = columns(structures, [encoding])[encoding]
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return sum(each.nbytes for each in vars(column).values() if isinstance(each, np.ndarray)), most


@pytest.mark.parametrize("encoding", only([UndirectedDistance(), RandomWalk(8)], RandomWalk(8)), ids=lambda e: e.name)
def test_a_data_set(encoding: Encoding) -> None:
    with slow():  # numba's memory is not counted
        size, most = peak(RINGS * 150, encoding)
    assert most < 2.1 * size + FREE


@pytest.mark.slow
@pytest.mark.parametrize("encoding", [UndirectedDistance(), Distance()], ids=lambda e: e.name)
def test_a_large_graph(encoding: Encoding) -> None:
    n = 3000
    graph = Structure(("",) * n, np.random.default_rng(0).integers(0, n, (4 * n, 2)))
    size, most = peak([graph], encoding)
    assert most < 2 * size + FREE
