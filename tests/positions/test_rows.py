"""Rows of tables for offsets, for what is unreachable, and for units of one node."""

from __future__ import annotations

import pytest
import torch

from structpe.encodings import Depth, Distance
from structpe.encodings.base import UNREACHABLE, WITHIN
from structpe.positions import Dims, Site
from structpe.positions.batch import encode
from structpe.positions.tables import Rows, clipped_rows
from structpe.structure import path
from tests.positions.cases import made

WORD = path("abc").with_units(["a", "b1", "b2", "b3", "c"], [0, 1, 1, 1, 2])


def test_units_of_one_node_have_rows_in_their_order() -> None:
    """The first row is that of a key far before its query, the last that of one far behind it."""
    rows = Rows(Distance(), 7, lambda offsets: offsets, within=3)
    values = torch.tensor([WITHIN + k for k in (-9, -3, -2, -1, 1, 2, 3, 9)])
    assert rows.size == 7 + 1 + 7
    assert rows.of(values).tolist() == [8, 8, 9, 10, 12, 13, 14, 14]
    assert rows.of(torch.tensor([UNREACHABLE])).tolist() == [7]
    assert Rows(Depth(), 7, lambda offsets: offsets).size == 7


def test_a_window_has_them_behind_its_offsets() -> None:
    window = clipped_rows(Distance(), 2, within=2)
    values = torch.tensor([-5, -2, 0, 2, 5, UNREACHABLE, WITHIN - 2, WITHIN - 1, WITHIN + 1, WITHIN + 2])
    assert window.of(values).tolist() == [0, 0, 2, 4, 4, 5, 6, 7, 9, 10]


@pytest.mark.parametrize("name", ["t5", "shaw", "graformer"])
def test_of_two_units_of_a_node_the_second_has_the_row_behind(name: str) -> None:
    """The first says of the second what the second says of the third, and not what it says of the first."""
    model = made(name, Dims(8, 2, 1), encoding=Distance())
    terms = model.terms(model.prepare(encode([WORD], model.encodings)), Site(0))
    (of_pairs,) = terms.bias or terms.key
    table = of_pairs.dense()[0]
    torch.testing.assert_close(table[1, 2], table[2, 3], rtol=0, atol=0)
    torch.testing.assert_close(table[2, 1], table[3, 2], rtol=0, atol=0)
    assert not torch.equal(table[1, 2], table[2, 1])
    rows = of_pairs.table
    values = encode([WORD], model.encodings)[model.encodings[0]].table
    ascending = [int(v) for v in values[values > UNREACHABLE].sort().values]
    assert ascending == [WITHIN - 2, WITHIN - 1, WITHIN + 1, WITHIN + 2]
    assert len(rows) == len(values)
