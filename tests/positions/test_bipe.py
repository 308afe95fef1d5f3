"""Bilevel positions: the authors' segments, a table within them and rotations between them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from structpe.encodings.order import SegmentNumber, SegmentPlace
from structpe.errors import EncodingError
from structpe.positions import Dims, Site, build
from structpe.positions.batch import encode
from structpe.positions.rotary_axes import BiPE
from structpe.structure import Structure, path
from tests.golden import golden
from tests.positions.cases import TREES, noise

TEXTS = [[5, 6, 869, 7, 13, 13, 8, 9, 10, 869], [869, 1, 2, 3, 4, 5, 6, 7, 8, 9]]


def text(words: list[int]) -> Structure:
    plain = path([str(word) for word in words])
    marks = np.array([word in (869, 13) for word in words], dtype=int)
    return Structure(plain.nodes, plain.edges, order=plain.order, features={"separator": marks})


def test_segments_are_those_of_the_authors_code() -> None:
    """Which ends the places of a segment at 4 here, as the model does with its table."""
    for row, words in enumerate(TEXTS):
        assert SegmentNumber().one(text(words)).values.tolist() == golden("bipe")["out.segments"][row].tolist()
        places = SegmentPlace().one(text(words)).values
        assert np.minimum(places, 4).tolist() == golden("bipe")["out.places"][row].tolist()


def test_segments_follow_the_reading_order_and_end_with_the_last_unit_of_a_node() -> None:
    marked = Structure(
        ("a", "b", "c"),
        [],
        order=np.array([2, 0, 1]),
        units=tuple("AabBc"),
        owner=np.array([0, 0, 1, 1, 2]),
        features={"separator": np.array([0, 1, 0])},
    )  # in order: c, A a, or the like
    order = np.argsort([int(p) for p in build("sinusoidal", Dims(8, 2, 1)).encodings[0].one(marked).values])
    number, place = SegmentNumber().one(marked).values[order], SegmentPlace().one(marked).values[order]
    owner = marked.owner[order]
    ends = [u for u in range(5) if owner[u] == 1 and (u == 4 or owner[u + 1] != 1)]
    wanted_number, wanted_place, start, segment = [], [], 0, 0
    for u in range(5):
        wanted_number.append(segment)
        wanted_place.append(u - start)
        if u in ends:
            segment, start = segment + 1, u + 1
    assert number.tolist() == wanted_number
    assert place.tolist() == wanted_place
    assert SegmentNumber().one(TREES[0]).values.tolist() == [0] * 10  # no mark, one segment
    with pytest.raises(EncodingError, match="no reading order"):
        SegmentNumber().one(Structure(("a",), []))


def test_a_table_within_and_rotary_between() -> None:
    torch.manual_seed(0)
    model = BiPE(Dims(8, 2, 2), max_length=5).double()
    structures = [text(words) for words in TEXTS]
    prepared, x = model.prepare(encode(structures, model.encodings)), noise(2, 10, 8)
    rows = golden("bipe")["out.places"]
    torch.testing.assert_close(model.inputs(x, prepared), x + model.table[rows], rtol=0, atol=0)
    rotary = build({"name": "rotary-half", "encoding": "segment-number"}, Dims(8, 2, 2))
    theirs = rotary.terms(rotary.prepare(encode(structures, rotary.encodings)), Site(1))
    q, k = noise(2, 2, 10, 4), noise(2, 2, 10, 4, seed=1)
    for mine, other in zip(model.terms(prepared, Site(1)).maps[0](q, k), theirs.maps[0](q, k), strict=True):
        assert torch.equal(mine, other)


def test_a_decoder_with_a_cache_knows_no_marks() -> None:
    assert not BiPE(Dims(8, 2, 1)).causal
