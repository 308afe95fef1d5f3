from __future__ import annotations

import numpy as np
import pytest

from structpe.encodings import Offset, Order
from structpe.errors import EncodingError
from structpe.structure import Structure, path


def test_units_stand_in_reading_order() -> None:
    graph = Structure(("a", "b", "c"), np.zeros((0, 2), int), order=np.array([2, 0, 1]))
    split = graph.with_units(["a1", "a2", "b", "c1", "c2"], [0, 0, 1, 2, 2])
    assert Order().one(split).values.tolist() == [3, 4, 0, 1, 2]
    assert Offset().one(split).pairs()[0].tolist() == [0, 1, -3, -2, -1]


@pytest.mark.parametrize("encoding", [Order(), Offset()])
def test_without_an_order_it_says_what_to_do(encoding: Order | Offset) -> None:
    graph = Structure(("a",), np.zeros((0, 2), int), name="file:3")
    with pytest.raises(
        EncodingError, match=r"^file:3: encoding '\w+': the structure has no reading order; give .*'dist"
    ):
        encoding.one(graph)


def test_sequences_and_other_orders_are_one_column() -> None:
    """A sequence has an index of its offsets, and takes no memory for its pairs."""
    turned = Structure(("a", "b"), [], order=[1, 0])
    column = Offset().many([path("abc"), turned, path("a")])
    assert [each.index.shape for each in column if each.index is not None] == [(5,), (2, 2), (1, 1)]
    assert column.values.tolist() == [-2, -1, 0, 1, 2]
    assert column[1].pairs().tolist() == [[0, -1], [1, 0]]
    assert column[2].pairs().tolist() == [[0]]
