"""A data set is encoded in parts, and what comes of it depends neither on the parts nor on who encodes them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structpe.data import chunks as chunks_module
from structpe.data.chunks import columns
from structpe.encodings import ENCODINGS, Column, Depth, Distance, Encoded, Encoding, Laplacian, Neighbours
from structpe.encodings.base import Encoding as Base
from structpe.errors import ConfigError, EncodingError
from structpe.structure import Structure, path
from tests.encodings.asking import unpadded
from tests.examples import examples
from tests.strategies import trees

PATHS = [path(["x"] * n) for n in (3, 1, 9, 2, 4)]


def content(encoded: Encoded) -> list[np.ndarray]:
    """What an encoding says of each unit, each pair, or each listed pair."""
    if encoded.index is None:
        return [encoded.values]
    if encoded.listed is not None:
        return [encoded.listed, encoded.values[encoded.index]]
    return [unpadded(encoded.pairs())]


def assert_alike(column: Column, other: Sequence[Encoded]) -> None:
    assert len(column) == len(other)
    for mine, theirs in zip(column, other, strict=True):
        for one, two in zip(content(mine), content(theirs), strict=True):
            assert one.tobytes() == two.tobytes()


def encoding_all(drawn: list[Structure]) -> list[Encoding]:
    found = []
    for cls in ENCODINGS.values():
        encoding = cls().fit(drawn)
        try:
            encoding.many(drawn)
        except EncodingError:
            continue
        found.append(encoding)
    return found


@examples(15)
@given(st.lists(trees(most=8), min_size=2, max_size=6), st.integers(1, 3))
def test_joined_columns_have_the_structures_of_each(drawn: list[Structure], size: int) -> None:
    for encoding in encoding_all(drawn):
        several = [encoding.many(drawn[i : i + size]) for i in range(0, len(drawn), size)]
        joined = Column.joined(several, encoding)
        assert_alike(joined, [each for column in several for each in column])
        assert joined.sizes.tolist() == [each.unit_count for each in drawn]


def test_joined_columns_share_one_table() -> None:
    joined = Column.joined([Distance().many(PATHS[:2]), Distance().many(PATHS[2:])])
    assert len(np.unique(joined.values)) == len(joined.values) == 17  # offsets -8..8
    assert joined.index is not None
    assert joined.index.dtype == np.uint8


def test_columns_of_which_some_have_rows_can_be_joined() -> None:
    """Large structures are encoded one by one, small ones together; both may be in one list."""
    together = Column.of_pairs(np.array([2, 1]), np.array([5.0, 7, 9]), np.array([0, 1, 1, 0, 2]))
    alone = Column.of([Encoded(np.array([7.0, 8]), np.array([[1, 0], [0, 1]], dtype=np.uint8))])
    own = Column(np.array([1, 1]), np.array([0.5, 0.25]), np.array([0, 0]), np.arange(3), None, np.arange(3))
    for several in ([together, alone], [alone, together], [own, own, together], [own, alone]):
        assert_alike(Column.joined(several), [each for column in several for each in column])


def test_features_of_other_shapes_are_refused() -> None:
    one, two = (Column.of_units(np.array([1]), np.zeros((1, width))) for width in (2, 3))
    with pytest.raises(EncodingError, match=r"a column has values of shapes \(2,\) and \(3,\) for different struct"):
        Column.joined([one, two])


def test_parts_have_so_many_structures_or_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks_module, "STRUCTURES", 3)
    assert [len(each) for each in chunks_module.parts(PATHS)] == [3, 2]
    monkeypatch.setattr(chunks_module, "PAIRS", 85)
    assert [len(each) for each in chunks_module.parts(iter(PATHS))] == [3, 2]
    monkeypatch.setattr(chunks_module, "PAIRS", 10)
    assert [len(each) for each in chunks_module.parts(PATHS)] == [2, 1, 2]
    assert list(chunks_module.parts([])) == []


@pytest.mark.slow
def test_columns_are_those_of_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks_module, "STRUCTURES", 2)
    encodings: list[Base] = [Distance(), Depth(), Laplacian(2), Neighbours(), Distance()]
    one, two = (columns(PATHS, encodings, jobs) for jobs in (1, 2))
    assert list(one) == list(two) == encodings[:4]
    for encoding in (Distance(), Depth(), Neighbours()):  # of a Laplacian, the numbers of ``one`` are not bit for bit
        assert_alike(one[encoding], [encoding.one(each) for each in PATHS])
    for encoding in one:
        for name in ("sizes", "values", "index", "starts", "rows", "row_starts", "listed"):
            mine, theirs = getattr(one[encoding], name), getattr(two[encoding], name)
            assert (mine is None) == (theirs is None)
            assert mine is None or (mine.dtype, mine.tobytes()) == (theirs.dtype, theirs.tobytes())


def test_there_is_nothing_of_nothing() -> None:
    assert columns([], [Depth()], jobs=2) == {}
    assert columns(PATHS, []) == {}
    with pytest.raises(ConfigError, match="jobs is 0; give 1 or more processes"):
        columns(PATHS, [Depth()], jobs=0)
