"""Forgetting attention: the equation key by key, the reference of its authors, and what its sums leave out."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from structpe.encodings import Depth
from structpe.positions import Dims, Positions, Site
from structpe.positions.batch import encode
from structpe.positions.own_attention import ForgettingAttention
from structpe.terms import Terms
from tests.golden import golden
from tests.positions.cases import TREES, encoded, labelled_path, made, noise
from tests.positions.waves import wave


@torch.no_grad()
def by_hand(model: ForgettingAttention, x: Tensor, layer: int, before: list[list[int]]) -> Tensor:
    """One layer over units (n, d); ``before[i]`` are the units up to i in their order, i last."""
    heads, width = model.dims.heads, model.dims.head
    q, k, v = model.projections[layer](x).view(len(x), 3, heads, width).unbind(1)
    gate = torch.sigmoid(model.gates[layer](x))
    out = torch.zeros(len(x), heads, width, dtype=torch.float64)
    for h in range(heads):
        for i, earlier in enumerate(before):
            raw = []
            for place, j in enumerate(earlier):
                kept = math.prod(gate[t, h].item() for t in earlier[place + 1 :])
                raw.append(kept * math.exp(q[i, h] @ k[j, h] / math.sqrt(width)))
            for j, weight in zip(earlier, raw, strict=True):
                out[i, h] += weight / sum(raw) * v[j, h]
    return model.outs[layer](out.flatten(1))


def test_the_equation_on_a_text_and_by_depth_in_a_tree() -> None:
    for encoding, structure in ((None, labelled_path(7)), (Depth(), TREES[0])):
        model = made("forgetting-attention", Dims(6, 2, 2), **({"encoding": encoding} if encoding else {}))
        n = structure.unit_count
        key = list(range(n)) if encoding is None else encoding.one(structure).values.tolist()
        order = sorted(range(n), key=lambda u: (key[u], u))
        before = [order[: order.index(i) + 1] for i in range(n)]
        x, prepared = noise(1, n, 6), model.prepare(encoded(model, [structure]))
        for layer in range(2):
            mine, _ = model.attend(x, prepared, Site(layer), Terms())
            torch.testing.assert_close(mine[0], by_hand(model, x[0], layer, before), rtol=0, atol=1e-12)


def test_the_reference_of_flash_linear_attention() -> None:
    q, k, v, gates = (wave(2, 3, 11, 4, shift=s) for s in (0.0, 1.0, 2.0, 3.0))
    gates = logsigmoid(2 * wave(2, 3, 11, shift=3.0))
    model = ForgettingAttention(Dims(12, 3, 1))
    prepared = model.prepare(encode([labelled_path(11)] * 2, model.encodings))
    everything = torch.ones(1, 1, 11, 11, dtype=torch.bool)
    mine = model.mixed(q, torch.cat([k, gates[..., None]], dim=-1), v, everything, prepared, Site(0))
    torch.testing.assert_close(mine, golden("forgetting_attention")["out.mixed"], rtol=0, atol=1e-12)


def test_padding_in_front_of_the_order_does_not_count() -> None:
    """Its place, 0, is before all others."""
    model, x = made("forgetting-attention"), noise(2, 7, 8)
    texts = [labelled_path(4), labelled_path(7)]
    positions = encode(texts, model.encodings)
    assert positions.present is not None
    present = positions.present[:, None, None]
    both, _ = model.attend(x, model.prepare(positions), Site(0), Terms(mask=(present,)))
    alone, _ = model.attend(x[:1, :4], model.prepare(encode(texts[:1], model.encodings)), Site(0), Terms())
    torch.testing.assert_close(both[:1, :4], alone, rtol=0, atol=1e-12)


def test_gates_of_hidden_units_count_and_open_gates_change_nothing() -> None:
    model, x = made("forgetting-attention"), noise(1, 6, 8)
    prepared = model.prepare(encoded(model, [labelled_path(6)]))
    hidden = torch.ones(1, 1, 6, 6, dtype=torch.bool)
    hidden[..., 3] = False
    seen, _ = model.attend(x, prepared, Site(0), Terms(mask=(hidden,)))
    model.gates[0].bias.data += 1
    more, _ = model.attend(x, prepared, Site(0), Terms(mask=(hidden,)))
    assert not torch.allclose(seen, more)
    model.gates[0].weight.data.zero_()
    model.gates[0].bias.data.fill_(60.0)  # f = 1
    q, k, v = model.project(x, Site(0))
    plain = (q @ k[..., :-1].mT / 2).masked_fill(~torch.ones(6, 6, dtype=torch.bool).tril(), -math.inf).softmax(-1) @ v
    mine, _ = model.attend(x, prepared, Site(0), Terms())
    torch.testing.assert_close(mine, model.outs[0](plain.transpose(1, 2).flatten(2)), rtol=0, atol=1e-9)


def test_as_its_authors_it_starts_with_gates_of_one_half_and_no_other_biases() -> None:
    model = ForgettingAttention(Dims(8, 2, 2))
    assert not any(gate.bias.any() for gate in model.gates)
    assert all(each.bias is None for each in (*model.projections, *model.outs))
    assert isinstance(model.prepare(Positions({model.encodings[0]: torch.arange(3)[None]})), Tensor)
