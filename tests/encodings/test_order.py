from __future__ import annotations

import numpy as np
import pytest

from structpe.encodings import Offset, Order
from structpe.errors import EncodingError
from structpe.structure import Structure


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
