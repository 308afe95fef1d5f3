"""What is not a list of structures and a list of encodings is told so."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import structpe
from structpe.encodings.base import Encoding
from structpe.encodings.binned import Binned
from structpe.encodings.coordinates import Euclidean
from structpe.encodings.distance import Neighbours, UndirectedDistance
from structpe.encodings.features import Feature, Words
from structpe.encodings.order import Offset, Order
from structpe.encodings.trees import Depth
from structpe.encodings.walks import RandomWalk
from structpe.errors import EncodingError, PositionError
from structpe.positions.batch import encode, join
from structpe.structure import Structure, path
from structpe.terms import Lookup

SENTENCE = structpe.path(["a", "b"])


@pytest.mark.parametrize(
    ("structures", "encodings", "text"),
    [
        ([], [Order()], "encode takes a list of structures, one at least: encode([structure], ...)"),
        (SENTENCE, [Order()], "encode takes a list of structures, one at least"),
        (
            [SENTENCE],
            Order(),
            "encode takes a list of encodings, such as [Order(), Distance(max_distance=8)]; given is Order()",
        ),
        ([SENTENCE], iter([Order()]), "encode takes a list of encodings"),
        ([SENTENCE], [1], "and 1 is not one; a name such as 'distance' makes one with its defaults"),
        ([SENTENCE], "depth", "given is 'depth'"),
    ],
)
def test_wrong_arguments_are_named(structures: Any, encodings: Any, text: str) -> None:
    with pytest.raises(EncodingError, match=re.escape(text)):
        structpe.encode(structures, encodings)


def featured(values: list[Any]) -> Structure:
    return replace(path(["x"] * len(values)), features={"feature": np.array(values)})


def test_features_of_different_types_keep_their_values() -> None:
    given = encode([featured([1, 2]), featured([0.5, 0.25])], [Feature()])
    assert given[Feature()].tolist() == [[1, 2], [0.5, 0.25]]


def test_features_of_different_shapes_are_no_batch() -> None:
    with pytest.raises(EncodingError, match=r"'feature' has values of shapes \(\) and \(2,\) for different structures"):
        encode([featured([1, 2]), featured([[1, 2], [3, 4]])], [Feature()])


def test_encodings_have_names() -> None:
    structures = [path(["a", "b", "c"]), path(["c", "d"])]
    found = encode(structures, ["depth", {"name": "random-walk", "steps": 3}, "words"])
    assert list(found)[:2] == [Depth(), RandomWalk(steps=3)]
    assert torch.equal(found["depth"], encode(structures, [Depth()])[Depth()])
    assert torch.equal(found["words"], encode(structures, [Words().fit(structures)])["words"])
    twice = encode(structures, [RandomWalk(steps=2), RandomWalk(steps=3)])
    with pytest.raises(PositionError, match=r"the batch has several encodings named 'random-walk'; it was encoded by"):
        twice["random-walk"]
    with pytest.raises(PositionError, match=r"the batch has no encoding named 'distance'; it was encoded by: Random"):
        twice["distance"]
    with pytest.raises(PositionError, match=r"no encoding named 'distnce'\. Did you mean 'distance'\?"):
        encode(structures, ["distnce"])


@pytest.mark.parametrize("encoding", [Euclidean(), Binned()], ids=lambda e: e.name)
def test_real_numbers_that_recur_have_one_row(encoding: Encoding) -> None:
    """A network over distinct values runs once for each, also if columns were encoded one by one."""
    texts = [path(["x"] * size) for size in (3, 5, 4)]
    for given in (encode(texts, [encoding])[encoding], join({encoding: [encoding.one(s) for s in texts]})[encoding]):
        assert isinstance(given, Lookup)
        distances = given.table.reshape(len(given.table), -1)[:, 0]
        assert sorted(distances.tolist()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("lookups", [True, False])
def test_positions_of_one_structure_for_several_rows(lookups: bool) -> None:
    """Each row has the values of the structure, in tensors for three rows; lookups only if they are asked for."""
    graph = Structure(("a", "b", "c"), np.array([[0, 1], [0, 2], [2, 2]]), order=np.array([1, 0, 2]))
    order, distance, offset, edges = Order(), UndirectedDistance(), Offset(), Neighbours()
    for structure in (graph, path(["a", "b", "c"])):
        one = encode([structure], [order, distance, offset, edges]).of(torch.ones(1, 3, dtype=torch.bool))
        several = one.repeated(3, lookups)
        assert several.present is not None
        assert several.present.tolist() == [[True] * 3] * 3
        assert several[order].tolist() == one[order].tolist() * 3
        for encoding in (distance, offset):
            if not lookups:
                assert several[encoding] is one[encoding]
                continue
            lookup, index = several[encoding], several[encoding].index
            assert len(lookup.rows) == 3
            assert len(index) == 3 if isinstance(index, Tensor) else len(index.diagonals) == 1
            assert lookup.dense().tolist() == one[encoding].dense().tolist() * 3
        listed, pairs = several[edges], several[edges].pairs
        count = len(one[edges].index)
        assert pairs.batch.tolist() == [row for row in range(3) for _ in range(count)]
        assert listed.table.tolist() == one[edges].table.tolist()
        assert listed.index.tolist() == one[edges].index.tolist() * 3
        assert (pairs.query.tolist(), pairs.key.tolist()) == tuple(
            each.tolist() * 3 for each in (one[edges].pairs.query, one[edges].pairs.key)
        )
