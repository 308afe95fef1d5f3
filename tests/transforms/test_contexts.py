"""What contexts are refused; what they are is in the tests of Graph-BERT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from structpe.errors import StructureError
from structpe.structure import path
from structpe.transforms import contexts

WRONG = [
    ({"k": 0}, "contexts of 0 nodes with restart 0.15 cannot be taken; give 1 node or more"),
    ({"k": 2.5}, "contexts of 2.5 nodes"),
    ({"restart": np.nan}, "with restart nan cannot be taken; .* a probability between 0 and 1"),
    ({"targets": [7]}, "target 7 is no node; the 3 nodes are 0..2"),
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
