"""Sandwich: the sum of cosines, and the product of sinusoids that it is."""

from __future__ import annotations

import math

import pytest
import torch

from structpe.encodings import Distance, UndirectedDistance
from structpe.errors import PositionError
from structpe.positions import Dims, Site
from structpe.positions.decay import Sandwich
from structpe.structure import path
from tests.positions.cases import TREES, encoded


@pytest.mark.parametrize(("heads", "width"), [(2, 128), (3, 10)])
def test_it_is_a_product_of_sinusoids_less_its_largest(heads: int, width: int) -> None:
    model = Sandwich(Dims(6 * heads, heads, 2), width=width).double()
    terms = model.terms(model.prepare(encoded(model, [path("abcdefg")])), Site(1))
    found = terms.bias[0].dense()[0]
    table = [
        [wave(t / 10000 ** (2 * i / width)) for i in range(1, width // 2 + 1) for wave in (math.sin, math.cos)]
        for t in range(7)
    ]
    for t in range(7):
        for s in range(7):
            product = sum(a * b for a, b in zip(table[t], table[s], strict=True))
            for h in range(1, heads + 1):
                wanted = (product - width / 2) / (8 * h / heads)
                assert found[t, s, h - 1].item() == pytest.approx(wanted, abs=1e-12)
    assert not found.diagonal().any()


def test_on_a_graph_it_falls_with_distance() -> None:
    model = Sandwich(Dims(8, 2, 1), UndirectedDistance(max_distance=9))
    bias = model.terms(model.prepare(encoded(model, TREES[:1])), Site(0)).bias[0].dense()[0, 0, :, 0]
    far = encoded(model, TREES[:1])[model.encodings[0]].dense()[0, 0]
    near = far < 100
    order = far[near].argsort(stable=True)
    falling = bias[near][order]
    assert (falling[1:] <= falling[:-1] + 1e-6).all()
    assert torch.equal(falling[:1], torch.zeros(1))
    lost = Sandwich(Dims(8, 2, 1), Distance())
    with pytest.raises(PositionError, match="'sandwich' got a pair of units without a path"):
        lost.prepare(encoded(lost, TREES[:1]))
