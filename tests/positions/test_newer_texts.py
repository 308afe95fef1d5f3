"""Newer positions of texts: their formulas, written out unit by unit."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from structpe.encodings import Depth
from structpe.positions import Dims, PositionModel, Positions, Site
from structpe.positions.own_attention import StickBreaking
from structpe.structure import Structure
from structpe.terms import Terms
from tests.positions.cases import TREES, encoded, labelled_path, made, noise


def scores(model: PositionModel, positions: Positions, q: Tensor, k: Tensor, layer: int) -> Tensor:
    """(b, h, n, m) the scores before the softmax."""
    terms = model.terms(model.prepare(positions), Site(layer))
    for turn in terms.maps:
        q, k = turn(q, k)
    return q @ k.mT * terms.scale / math.sqrt(q.shape[-1])


def test_pope_is_its_formula() -> None:
    model = made("pope", Dims(6, 2, 2), base=50.0)
    q, k = noise(2, 1, 2, 5, 3).unbind(0)
    for layer in range(2):
        wanted = torch.zeros(1, 2, 5, 5, dtype=torch.float64)
        for h in range(2):
            for t in range(5):
                for s in range(5):
                    for c in range(3):
                        phase = min(max(model.phases[layer, h, c].item(), -2 * math.pi), 0.0)  # type: ignore[index,union-attr]
                        length = math.log1p(math.exp(q[0, h, t, c])) * math.log1p(math.exp(k[0, h, s, c]))
                        wanted[0, h, t, s] += length * math.cos((s - t) * 50.0 ** (-c / 3) + phase) / math.sqrt(3)
        mine = scores(model, encoded(model, [labelled_path(5)]), q, k, layer)
        torch.testing.assert_close(mine, wanted, rtol=0, atol=1e-12)


def sticks(model: StickBreaking, x: Tensor, layer: int, before: list[list[int]], hidden: int) -> Tensor:
    """One layer over units (n, d); ``before[i]`` are the keys of i, the nearest last."""
    q, k, v = model.projections[layer](x).view(len(x), 3, model.dims.heads, -1).unbind(1)
    out = torch.zeros_like(v)
    for h in range(model.dims.heads):
        for i, keys in enumerate(before):
            left = 1.0
            for j in reversed([j for j in keys if j != hidden]):
                share = 1 / (1 + math.exp(-(q[i, h] @ k[j, h]) / math.sqrt(model.dims.head)))
                out[i, h] += left * share * v[j, h]
                left *= 1 - share
    mixed: Tensor = model.outs[layer](out.flatten(1))
    return mixed


@pytest.mark.parametrize("current", [False, True])
@pytest.mark.parametrize(("structure", "key"), [(labelled_path(7), None), (TREES[0], Depth())])
@torch.no_grad()
def test_stick_breaking_is_its_product(structure: Structure, key: Depth | None, current: bool) -> None:
    options = {"encoding": key} if key else {}
    model = made("stick-breaking", Dims(6, 2, 2), current=current, **options)
    assert isinstance(model, StickBreaking)
    n = structure.unit_count
    number = key.one(structure).values.tolist() if key else range(n)
    order = sorted(range(n), key=lambda u: (number[u], u))
    before = [order[: order.index(i) + current] for i in range(n)]
    x, mask = noise(1, n, 6), torch.arange(n)[None, None, None] != 2
    for layer in range(2):
        mine, _ = model.attend(x, model.prepare(encoded(model, [structure])), Site(layer), Terms(mask=(mask,)))
        torch.testing.assert_close(mine[0], sticks(model, x[0], layer, before, 2), rtol=0, atol=1e-12)


def test_stick_breaking_of_far_scores_is_finite() -> None:
    """Shares of nearly 0 and 1, whose logarithms would be infinite, in single precision."""
    model = StickBreaking(Dims(4, 1, 1))
    seen = torch.ones(1, 1, 4, 4, dtype=torch.bool)
    q = torch.tensor([[1.0], [400.0], [-400.0], [400.0]]).expand(1, 1, 4, 4).clone().requires_grad_()
    k, v = torch.ones(1, 1, 4, 4), torch.eye(4)[None, None]
    mixed = model.mixed(q, k, v, seen, torch.arange(4)[None], Site(0))
    wanted = [[0.0] * 4, [1.0, 0, 0, 0], [0.0] * 4, [0, 0, 1.0, 0]]
    assert torch.equal(mixed[0, 0], torch.tensor(wanted))
    mixed.sum().backward()
    assert q.grad is not None
    assert q.grad.isfinite().all()
