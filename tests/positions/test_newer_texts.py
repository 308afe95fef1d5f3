"""Newer positions of texts: their formulas, written out unit by unit."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from structpe.encodings import Depth
from structpe.positions import MODELS, Dims, PositionModel, Positions, Site
from structpe.positions.decay import GRAPEA
from structpe.positions.own_attention import ForgettingAttention, StickBreaking
from structpe.positions.rotary import RotaryHalf
from structpe.positions.rotary_adaptive import GRAPEM, CARoPE, RePo, SelectiveRoPE
from structpe.structure import Structure
from structpe.terms import Terms
from tests.positions.cases import TREES, Around, encoded, labelled_path, made, noise


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


@pytest.mark.parametrize("gates", ["query", "key", "both"])
@torch.no_grad()
def test_grape_a_is_its_equation(gates: str) -> None:
    model, x = made("grape-a", Dims(6, 2, 2), gates=gates), noise(1, 6, 6)
    assert isinstance(model, GRAPEA)
    for layer in range(2):
        mine, _ = model.attend(x, model.prepare(encoded(model, [labelled_path(6)])), Site(layer), Terms())
        q, k, v = model.projections[layer](x[0]).view(6, 3, 2, 3).unbind(1)
        out = torch.zeros_like(v)
        for h, of_alibi in enumerate((2**-4, 2**-8)):
            slope = of_alibi * math.log1p(math.exp(model.slope[layer, h]))
            for i in range(6):
                raw = []
                for j in range(i + 1):
                    chosen = 0.0
                    for x_, direction in ((q[i, h], model.of_query), (k[j, h], model.of_key)):
                        if direction is not None:
                            u = direction[layer, h, :, 0]
                            chosen += math.log1p(math.exp(x_ @ u / u.norm() / math.sqrt(3)))
                    raw.append(math.exp(q[i, h] @ k[j, h] / math.sqrt(3) - (i - j) * slope * chosen))
                out[i, h] = sum(w * v[j, h] for j, w in enumerate(raw)) / sum(raw)
        torch.testing.assert_close(mine[0], model.outs[layer](out.flatten(1)), rtol=0, atol=1e-12)


@pytest.mark.parametrize("per_head", [False, True])
@torch.no_grad()
def test_grape_m_starts_as_rotary_and_learns_how_fast_pairs_turn(per_head: bool) -> None:
    x, positions = noise(1, 2, 5, 6), encoded(RotaryHalf(Dims(12, 2, 1)), [labelled_path(5)])
    model = GRAPEM(Dims(12, 2, 2), per_head=per_head).double()
    same = RotaryHalf(Dims(12, 2, 2))
    for mine, rotary in zip(*(turned(each, positions, x, 1) for each in (model, same)), strict=True):
        torch.testing.assert_close(mine, rotary, rtol=0, atol=1e-5)
    model = made("grape-m", Dims(12, 2, 2), per_head=per_head)  # type: ignore[assignment]
    for layer in range(2):
        q, k = turned(model, positions, x, layer)
        assert torch.equal(q, k)
        for h, t, i in itertools.product(range(2), range(5), range(3)):
            angle = t * math.exp(model.frequencies[layer, h if per_head else 0, i])
            a, b = x[0, h, t, i].item(), x[0, h, t, i + 3].item()
            wanted = a * math.cos(angle) - b * math.sin(angle), a * math.sin(angle) + b * math.cos(angle)
            assert (q[0, h, t, i].item(), q[0, h, t, i + 3].item()) == pytest.approx(wanted, abs=1e-12)


def turned(model: PositionModel, positions: Positions, x: Tensor, layer: int) -> tuple[Tensor, Tensor]:
    (turn,) = model.terms(model.prepare(positions), Site(layer)).maps
    both: tuple[Tensor, Tensor] = turn(x, x)
    return both


@pytest.mark.parametrize(("structure", "key"), [(labelled_path(7), None), (TREES[0], Depth())])
@torch.no_grad()
def test_selective_rope_adds_up_what_units_contain(structure: Structure, key: Depth | None) -> None:
    options = {"encoding": key} if key else {}
    model = made("selective-rope", Dims(8, 2, 2), rank=3, base=20.0, **options)
    assert isinstance(model, SelectiveRoPE)
    n = structure.unit_count
    number = key.one(structure).values.tolist() if key else range(n)
    order = sorted(range(n), key=lambda u: (number[u], u))
    x = noise(1, n, 8)
    for layer in range(2):
        mine, _ = model.attend(x, model.prepare(encoded(model, [structure])), Site(layer), Terms())
        q, k, v = model.projections[layer](x[0]).view(n, 3, 2, 4).unbind(1)
        short = torch.cat([part / math.sqrt(1e-6 + part @ part) for part in x[0].view(-1, 4)]).view(n, 8)
        phi = short @ model.down[layer].weight.T @ model.up[layer].weight.T  # (n, 4): two numbers of two heads
        total, turns = torch.zeros(4, dtype=torch.float64), torch.zeros(n, 4, dtype=torch.float64)
        for place, u in enumerate(order):
            for back in range(min(4, place + 1)):
                total = total + model.filters[layer, :, 3 - back] * phi[order[place - back]]
            turns[u] = total
        out = torch.zeros_like(v)
        for h in range(2):
            both = []
            for vectors in (q[:, h], k[:, h]):
                angle = turns[:, 2 * h : 2 * h + 2] * torch.tensor([1.0, 20**-0.5])
                number_ = torch.complex(vectors[:, :2], vectors[:, 2:]) * torch.polar(torch.ones_like(angle), angle)
                both.append(number_)
            score = torch.einsum("ic,jc->ij", both[0], both[1].conj()).real / 2
            out[:, h] = score.softmax(-1) @ v[:, h]
        torch.testing.assert_close(mine[0], model.outs[layer](out.flatten(1)), rtol=0, atol=1e-7)


@pytest.mark.parametrize(("structure", "key"), [(labelled_path(6), None), (TREES[0], Depth())])
@torch.no_grad()
def test_carope_adds_up_powers_that_units_choose(structure: Structure, key: Depth | None) -> None:
    options = {"encoding": key} if key else {}
    model, n = made("carope", Dims(8, 2, 2), **options), structure.unit_count
    assert isinstance(model, CARoPE)
    number = key.one(structure).values.tolist() if key else range(n)
    order = sorted(range(n), key=lambda u: (number[u], u))
    x = noise(1, n, 8)
    for layer in range(2):
        mine, _ = model.attend(x, model.prepare(encoded(model, [structure])), Site(layer), Terms())
        q, k, v = model.projections[layer](x[0]).view(n, 3, 2, 4).unbind(1)
        chosen = 1 / (1 + (1 + model.gates[layer](x[0]).exp()).log())
        angles = torch.zeros(n, 2, 2, dtype=torch.float64)
        for place, u in enumerate(order):
            for h, pair in itertools.product(range(2), range(2)):
                angles[u, h, pair] = sum(chosen[other, h] ** pair for other in order[: place + 1])
        first, second = (
            torch.complex(each[..., :2], each[..., 2:]) * torch.polar(torch.ones_like(angles), angles)
            for each in (q, k)
        )
        score = torch.einsum("ihp,jhp->hij", first, second.conj()).real / 2
        out = torch.einsum("hij,jhd->ihd", score.softmax(-1), v).flatten(1)
        torch.testing.assert_close(mine[0], model.outs[layer](out), rtol=0, atol=1e-12)


@torch.no_grad()
def test_carope_starts_as_rotary() -> None:
    model, x = CARoPE(Dims(12, 2, 1)).double(), noise(1, 6, 12)
    mine, _ = model.attend(x, model.prepare(encoded(model, [labelled_path(6)])), Site(0), Terms())
    q, k, v = (each.transpose(0, 1)[None] for each in model.projections[0](x[0]).view(6, 3, 2, 6).unbind(1))
    rotary = RotaryHalf(Dims(12, 2, 1))
    score = scores(rotary, encoded(rotary, [labelled_path(6)]), q, k, 0)
    wanted = model.outs[0]((score.softmax(-1) @ v).transpose(1, 2).flatten(2))
    torch.testing.assert_close(mine, wanted, rtol=0, atol=1e-5)


@torch.no_grad()
def test_repo_puts_units_where_their_content_says() -> None:
    model, x = made("repo", Dims(8, 2, 2), rank=3, base=20.0), noise(1, 5, 8)
    assert isinstance(model, RePo)
    for layer in range(2):
        mine, _ = model.attend(x, model.prepare(encoded(model, [labelled_path(5)])), Site(layer), Terms())
        q, k, v = model.projections[layer](x[0]).view(5, 3, 2, 4).unbind(1)
        gate, content = (x[0] @ each[layer].weight.T for each in (model.gates, model.contents))
        places = gate * torch.sigmoid(gate) * content @ model.places[layer].weight.T
        out = torch.zeros_like(v)
        for h in range(2):
            score = torch.zeros(5, 5, dtype=torch.float64)
            for i, j, pair in itertools.product(range(5), range(5), range(2)):
                angle = (places[i, h] - places[j, h]) * 20.0 ** (-pair / 2)
                a, b = (torch.complex(vectors[pair], vectors[pair + 2]) for vectors in (q[i, h], k[j, h]))
                score[i, j] += (a * b.conj() * torch.polar(torch.ones_like(angle), angle)).real / 2
            out[:, h] = score.softmax(-1) @ v[:, h]
        torch.testing.assert_close(mine[0], model.outs[layer](out.flatten(1)), rtol=0, atol=1e-12)


@torch.no_grad()
def test_cable_is_forgetting_attention() -> None:
    """Sums of -softplus(z) between query and key, as its code has them, without the division by sqrt(d_h)."""
    model, x = made("forgetting-attention", Dims(8, 2, 1)), noise(1, 6, 8)
    assert isinstance(model, ForgettingAttention)
    positions = encoded(model, [labelled_path(6)])
    q, k, v = (each.transpose(0, 1) for each in model.projections[0](x[0]).view(6, 3, 2, 4).unbind(1))
    sums = torch.cumsum(-functional.softplus(-model.gates[0](x[0])), dim=0).T
    bias = sums[:, :, None] - sums[:, None, :]
    score = (q / 2) @ k.mT + bias.masked_fill(torch.ones(6, 6).triu(1).bool(), -math.inf)
    wanted = model.outs[0]((score.softmax(-1) @ v).transpose(0, 1).flatten(1))
    mine, _ = model.attend(x, model.prepare(positions), Site(0), Terms())
    torch.testing.assert_close(mine[0], wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["stick-breaking", "grape-a", "selective-rope", "pope", "grape-m", "repo", "carope"])
@torch.no_grad()
def test_a_step_is_the_last_row(name: str) -> None:
    model, x = MODELS[name](Dims(8, 2, 2)).double().eval(), noise(2, 6, 8)
    around, positions = Around(model), encoded(model, [labelled_path(6)] * 2)
    mask = torch.ones(6, 6, dtype=torch.bool).tril()[None, None]
    torch.testing.assert_close(around.steps(positions, x), around(positions, x, mask), rtol=0, atol=1e-12)
