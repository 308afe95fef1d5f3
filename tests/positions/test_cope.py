"""Contextual positions: the equations key by key, and what it must not see."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from structpe.encodings import Depth
from structpe.errors import PositionError, UnsupportedTerm
from structpe.positions import Dims, Site
from structpe.positions.own_attention import CoPE
from structpe.terms import Terms
from tests.positions.cases import TREES, Around, encoded, labelled_path, made, noise, present
from tests.strategies import relabelled


def cope_by_hand(model: CoPE, x: Tensor, layer: int, hidden: set[int], divisor: float = 1.0) -> Tensor:
    """One layer over units (n, d) in order; keys in ``hidden`` are masked; the term of positions has a divisor."""
    n, heads, width = len(x), model.dims.heads, model.dims.head
    projected = model.projections[layer](x).reshape(n, 3, heads, width).tolist()
    table, out = model.table.at(layer), torch.zeros(n, heads * width, dtype=torch.float64)
    for h in range(heads):
        vectors = table[:, h % table.shape[1]].tolist()

        def product(a: list[float], b: list[float]) -> float:
            return sum(u * v for u, v in zip(a, b, strict=True))

        for i in range(n):
            q = projected[i][0][h]
            seen = [j for j in range(i + 1) if j not in hidden]
            content = {j: product(q, projected[j][1][h]) / math.sqrt(width) for j in seen}
            raw = {}
            for j in seen:
                p = min(sum(1 / (1 + math.exp(-content[u])) for u in seen if u >= j), len(vectors) - 1)
                low, high = product(q, vectors[math.floor(p)]), product(q, vectors[math.ceil(p)])
                part = p - math.floor(p)
                raw[j] = math.exp(content[j] + (part * high + (1 - part) * low) / divisor)
            for j in seen:
                v = torch.tensor(projected[j][2][h], dtype=torch.float64)
                out[i, h * width : (h + 1) * width] += raw[j] / sum(raw.values()) * v
    return model.outs[layer](out)


@pytest.mark.parametrize("sharing", ["none", "head-wise", "layer-wise", "both"])
@pytest.mark.parametrize(("length", "divided"), [(2, False), (3, True), (64, False)])
def test_the_equations(sharing: str, length: int, divided: bool) -> None:
    model = made("cope", Dims(6, 2, 2), max_length=length, sharing=sharing, divided=divided)
    x, positions = noise(1, 7, 6), encoded(model, [labelled_path(7)])
    masked = torch.ones(1, 1, 1, 7, dtype=torch.bool)
    masked[..., 3] = False
    for layer in range(2):
        mine, _ = model.attend(x, model.prepare(positions), Site(layer), Terms(mask=(masked,)))
        wanted = cope_by_hand(model, x[0], layer, {3}, math.sqrt(3) if divided else 1.0)
        torch.testing.assert_close(mine[0], wanted, rtol=0, atol=1e-9)


def test_units_are_counted_in_their_order_however_they_are_stored() -> None:
    model, structure = made("cope"), TREES[0]
    new, units = relabelled(structure, np.array([3, 0, 6, 1, 5, 2, 4]))
    x = noise(1, 10, 8)
    before = Around(model)(encoded(model, [structure]), x)
    after = Around(model)(encoded(model, [new]), x[:, units])
    torch.testing.assert_close(after, before[:, units], rtol=0, atol=1e-9)


def test_what_comes_later_is_not_seen() -> None:
    model, x = made("cope"), noise(1, 6, 8)
    shorter, longer = (Around(model)(encoded(model, [labelled_path(n)]), x[:, :n]) for n in (5, 6))
    torch.testing.assert_close(shorter, longer[:, :5], rtol=0, atol=1e-9)


def test_it_starts_without_positions() -> None:
    torch.manual_seed(0)
    assert not CoPE(Dims(8, 2, 3)).table.weight.any()


def test_a_tree_counts_by_depth() -> None:
    model = made("cope", encoding=Depth())
    assert Around(model)(encoded(model, TREES), noise(3, 10, 8), present(TREES)).isfinite().all()


def test_what_it_cannot_do_is_refused() -> None:
    with pytest.raises(PositionError, match="'cope' needs 2 positions or more; given is max_length=1"):
        CoPE(Dims(8, 2, 1), max_length=1)
    model = made("cope")
    with pytest.raises(UnsupportedTerm, match="'cope' has its own attention, which does not support scale"):
        model.attend(noise(1, 3, 8), model.prepare(encoded(model, [labelled_path(3)])), Site(0), Terms(scale=2.0))
