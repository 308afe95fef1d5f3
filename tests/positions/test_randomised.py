"""Randomised positions: what is drawn, by whom it is read, and that evaluation draws nothing."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch

from structpe.encodings import UNREACHABLE, WITHIN, Order
from structpe.errors import PositionError
from structpe.positions import MODELS, Dims, Site, build
from structpe.positions.batch import encode
from structpe.positions.stochastic import Randomised
from structpe.structure import path
from tests.positions.cases import TREES, Around, encoded, noise

DIMS = Dims(8, 2, 2)


def places(model: Randomised, n: int) -> list[int]:
    """r_t, read off a model that is given them."""
    positions = encode([path(["w"] * n)], model.encodings)
    return model._drawn(positions[Order()])[0].tolist()


def test_a_training_step_draws_a_sorted_subsample_of_all_places() -> None:
    torch.manual_seed(0)
    model, counts = Randomised(DIMS, max_length=10, longest=10).train(), Counter()
    for _ in range(300):
        drawn = places(model, 4)
        assert drawn == sorted(set(drawn))
        counts.update(drawn)
    assert set(counts) == set(range(10))
    assert max(counts.values()) < 2 * min(counts.values())  # each 120 times in the mean


def test_offsets_keep_their_signs_and_zero() -> None:
    torch.manual_seed(0)
    model = Randomised(DIMS, {"name": "t5", "encoding": "distance"}, max_length=50, longest=10).train()
    given = encoded(model, TREES)[model.encodings[0]]
    drawn = model._drawn(given)
    assert torch.equal(drawn.index, given.index)
    new = dict(zip(given.table.tolist(), drawn.table.tolist(), strict=True))
    assert new[0] == 0
    special = {value for value in new if abs(value) > 1000}
    assert all(new[value] == value for value in special)
    assert {UNREACHABLE, WITHIN + 1} <= special
    plain = sorted(set(new) - special)
    assert [new[value] for value in plain] == sorted(new[value] for value in plain)
    assert all(new[-value] == -new[value] for value in plain if -value in new)
    assert any(abs(new[value]) > 9 for value in plain)


@pytest.mark.parametrize(
    "name", ["rotary", "sinusoidal", "alibi", "t5", "shaw", "transformer-xl", "forgetting-attention"]
)
def test_evaluation_spreads_places_evenly_and_any_model_reads_them(name: str) -> None:
    """A text of which every third unit is given is the text with three times as far between units."""
    torch.manual_seed(0)
    model = Randomised(DIMS, name, max_length=30, longest=10).double().eval()
    x = noise(1, 4, 8)
    every = encode([path(["w"] * 10)], model.encodings)
    sparse = {}
    for e, p in every.items():
        if e.arity == 1:
            sparse[e] = p[:, ::3]
        else:
            index = (p.index if isinstance(p.index, torch.Tensor) else p.index.dense())[:, ::3, ::3]
            sparse[e] = type(p)(p.table, p.rows, index)
    inner = model.inner
    theirs = Around(inner)(type(every)(sparse), x)
    torch.testing.assert_close(Around(model)(encode([path("abcd")], model.encodings), x), theirs, rtol=0, atol=1e-9)
    assert model.sites == inner.sites
    assert model.causal == inner.causal
    assert model.own_attention == inner.own_attention


def test_training_learns_through_the_other_model() -> None:
    torch.manual_seed(0)
    model = Randomised(DIMS, {"name": "learned", "max_length": 64}, max_length=64, longest=16).double().train()
    positions, x = encode([path("abcdef")], model.encodings), noise(1, 6, 8)
    model.inputs(x, model.prepare(positions)).sum().backward()
    touched = model.inner.table.grad.abs().sum(1) > 0
    assert int(touched.sum()) == 6
    other = model.inputs(x, model.prepare(positions))
    assert not torch.equal(other, model.inputs(x, model.prepare(positions)))
    assert model.claimed_params() == sum(p.numel() for p in model.parameters()) == 64 * 8


def test_some_layers_and_descriptions() -> None:
    model = build({"name": "randomised", "model": {"name": "t5", "num_buckets": 8}, "in_layers": [1]}, DIMS)
    prepared = model.prepare(encoded(model, [path("abc")]))
    assert not model.terms(prepared, Site(0)).used()
    assert model.terms(prepared, Site(1)).used() == {"bias"}
    assert Randomised(DIMS).options() == {"model": "rotary", "max_length": 2048, "longest": 512}
    assert MODELS["randomised"] is Randomised


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"max_length": 8, "longest": 9},
            "'randomised' spreads 9 units over 8 places; give longest=8 at most, or a larger",
        ),
        ({"model": "dwivedi"}, "'randomised' draws places and distances, whole numbers; 'dwivedi' reads 'laplacian'"),
        ({"model": "zhu-sum"}, "'zhu-sum' reads 'label-path', which returns other values"),
        ({"model": "rotari"}, "there is no position model named 'rotari'"),
    ],
)
def test_what_cannot_be_randomised(options: dict[str, Any], text: str) -> None:
    with pytest.raises(PositionError, match=text):
        Randomised(DIMS, **options)


def test_a_text_with_more_units_than_places() -> None:
    model = Randomised(DIMS, max_length=5, longest=5).train()
    assert places(model, 5) == [0, 1, 2, 3, 4]
    with pytest.raises(
        PositionError, match="draws from 5 places, and a text of this batch has a place or distance 5; bu"
    ):
        places(model, 6)
