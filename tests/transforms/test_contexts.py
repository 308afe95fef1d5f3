"""What contexts are refused; what they are is in the tests of Graph-BERT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from structpe.errors import StructureError
from structpe.structure import Structure, path
from structpe.transforms import contexts

WRONG = [
    ({"k": 0}, "contexts of 0 nodes with restart 0.15 cannot be taken; give 1 node or more"),
    ({"k": 2.5}, "contexts of 2.5 nodes"),
    ({"restart": np.nan}, "with restart nan cannot be taken; .* a probability between 0 and 1"),
    ({"targets": [7]}, "target 7 is not a node; the 3 nodes are 0..2"),
    ({"targets": 1}, "targets are a list of numbers of nodes; given is 1"),
    ({"targets": "ab"}, "targets are a list of numbers of nodes; given is 'ab'"),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_contexts_that_there_are_not(options: dict[str, Any], message: str) -> None:
    with pytest.raises(StructureError, match=message):
        list(contexts(path("abc"), **options))


def test_targets_may_be_an_array() -> None:
    assert [c.name for c in contexts(path("abc"), targets=np.array([2, 0]))] == ["2", "0"]


def test_a_graph_whose_matrix_memory_would_not_hold() -> None:
    with pytest.raises(StructureError, match=r"contexts of 40000 nodes need a matrix .*; 32768 nodes at most"):
        next(contexts(path(["x"] * 40000)))


@pytest.mark.parametrize("n", [41, 201])
def test_of_equally_intimate_nodes_those_with_higher_numbers_come_first(n: int) -> None:
    """Left and right of the middle of a path, and around a ring: rounding errors decide nothing."""
    middle = n // 2
    (found,) = contexts(path([str(i) for i in range(n)]), k=n - 1, targets=[middle])
    either = [(str(middle + i), str(middle - i)) for i in range(1, middle + 1)]
    assert found.nodes[:81] == (str(middle), *(name for pair in either for name in pair))[:81]


def test_nodes_around_a_ring_are_taken_by_distance_and_number() -> None:
    n = 60
    ring = Structure(tuple(map(str, range(n))), [[i, (i + 1) % n] for i in range(n)], directed=False)
    for target, found in enumerate(contexts(ring, k=20)):
        pairs = [sorted(((target + i) % n, (target - i) % n), reverse=True) for i in range(1, 11)]
        assert found.nodes[1:] == tuple(str(node) for pair in pairs for node in pair)


def test_leaves_of_a_star_come_by_number() -> None:
    star = Structure(tuple(map(str, range(50))), [[0, i] for i in range(1, 50)], directed=False)
    (found,) = contexts(star, k=30, targets=[7])
    assert found.nodes[1:] == ("0", *(str(i) for i in range(49, 20, -1)))
