"""Spectral attention and the positional stream, compared with their equations unit by unit."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from structpe.encodings import Adjacency, Eigenpairs
from structpe.errors import UnsupportedTerm
from structpe.positions import MODELS, Dims, PositionModel, Site
from structpe.positions.batch import encode
from structpe.structure import Structure
from structpe.terms import Terms
from tests.positions.cases import TREES, Around, encoded, made, noise, present

GRAPH = Structure(
    nodes=tuple("abcdef"),
    edges=np.array([[0, 1], [1, 0], [1, 2], [3, 2], [3, 4]]),
    units=tuple("aabcdeff"),
    owner=np.array([0, 0, 1, 2, 3, 4, 5, 5]),
)
"""Edges in both directions and in one, an isolated node; two nodes of two units."""


def kinds(structure: Structure) -> list[list[int]]:
    """0 none, 1 an edge query -> key, 2 key -> query, 3 both, 4 the unit itself, 5 another of its node."""
    edges = {(int(a), int(b)) for a, b in structure.edges}
    owner = structure.unit_owner.tolist()
    return [
        [
            4 if i == j else 5 if a == b else ((a, b) in edges) + 2 * ((b, a) in edges)
            for j, b in enumerate(owner)
        ]
        for i, a in enumerate(owner)
    ]  # fmt: skip


# --- SAN ---


def san_by_hand(model: PositionModel, x: Tensor, structure: Structure, layer: int) -> Tensor:
    attention, gamma, width = model.attentions[layer], 0.1, 4
    number = {0: 0, 1: 1, 2: 2, 3: 3, 5: 4}
    of_pairs, out = kinds(structure), torch.zeros_like(x)
    for i in range(len(x)):
        mixed = []
        for head in range(2):
            part = slice(head * width, (head + 1) * width)
            total, weight = torch.zeros(width, dtype=x.dtype), torch.zeros((), dtype=x.dtype)
            for j in range(len(x)):
                kind = of_pairs[i][j]
                if kind == 4:
                    continue
                real = kind in (1, 2, 3)
                q, k, e = (part_.weight for part_ in (attention.real if real else attention.fake))
                edge = model.edges.weight[number[kind]]
                score = sum((q @ x[i])[part] * (k @ x[j])[part] * (e @ edge)[part]) / math.sqrt(width)
                w = torch.exp(score.clamp(-5, 5)) * (1 if real else gamma) / (1 + gamma)
                total, weight = total + w * (attention.value.weight @ x[j])[part], weight + w
            mixed.append(total / (weight + 1e-6))
        out[i] = attention.out.weight @ torch.cat(mixed) + attention.out.bias
    return out


@pytest.mark.parametrize("structure", [GRAPH, TREES[0]], ids=["graph", "tree"])
def test_spectral_attention_is_its_equation(structure: Structure) -> None:
    model, n = made("san"), structure.unit_count
    x = noise(1, n, 8)
    prepared = model.prepare(encoded(model, [structure]))
    for layer in range(3):
        out, prepared = model.attend(x, prepared, Site(layer), Terms())
        torch.testing.assert_close(out[0], san_by_hand(model, x[0], structure, layer), rtol=0, atol=1e-9)


def test_scores_are_clamped() -> None:
    model = made("san")
    out, _ = model.attend(100 * noise(1, 8, 8), model.prepare(encoded(model, [GRAPH])), Site(0), Terms())
    torch.testing.assert_close(out[0], san_by_hand(model, 100 * noise(1, 8, 8)[0], GRAPH, 0), rtol=0, atol=1e-9)


def test_pairs_without_an_edge_count_by_gamma() -> None:
    """With gamma 0, a unit of a node without neighbours attends to nothing."""
    model = made("san", gamma=0.0)
    out, _ = model.attend(noise(1, 8, 8), model.prepare(encoded(model, [GRAPH])), Site(0), Terms())
    torch.testing.assert_close(out[0, 6], model.attentions[0].out.bias, rtol=0, atol=1e-12)
    assert not torch.allclose(out[0, 5], model.attentions[0].out.bias)


@pytest.mark.parametrize("name", ["san", "lap-pe-transformer"])
def test_the_transformer_over_eigenvectors_sees_those_that_are_there(name: str) -> None:
    model, x = made(name), noise(3, 10, 8)
    changed = model.inputs(x, model.prepare(encoded(model, TREES)))
    for row, structure in enumerate(TREES):
        pairs = torch.from_numpy(model.encodings[0].one(structure).values).double()
        m = min(structure.size, 8)
        mixed = model.of_all.mix(model.of_all.embed(pairs[:, :m, :2])).sum(1)
        torch.testing.assert_close(changed[row, : len(mixed), -4:], mixed, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["san", "lap-pe", "lap-pe-transformer"])
def test_training_flips_whole_eigenvectors_of_the_whole_batch(name: str) -> None:
    """What is said in training is what is said of eigenvectors with other signs."""
    model = made(name, encoding=Eigenpairs(2)).train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        if isinstance(module, torch.nn.MultiheadAttention):
            module.dropout = 0.0
    positions, x = encoded(model, TREES), torch.zeros(3, 10, 8, dtype=torch.float64)
    possible = []
    for signs in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
        pairs = positions[model.encodings[0]].clone()
        pairs[..., 0] *= torch.tensor(signs)
        flipped = type(positions)({**positions, model.encodings[0]: pairs}, present=positions.present)
        possible.append(model.eval().inputs(x, model.prepare(flipped)))
    seen = set()
    for _ in range(40):
        said = model.train().inputs(x, model.prepare(positions))
        found = [i for i, each in enumerate(possible) if torch.allclose(said, each, rtol=0, atol=1e-9)]
        assert found
        seen.add(found[0])
    assert seen == {0, 1, 2, 3}


# --- LSPE ---


def linear(module: torch.nn.Linear, x: Tensor) -> Tensor:
    return module.weight @ x + module.bias


def rest(norm: torch.nn.Module, x: Tensor) -> Tensor:
    """Batch normalisation in evaluation, of running averages 0 and 1."""
    return x / math.sqrt(1 + 1e-5) * norm.weight + norm.bias


def lspe_by_hand(model: PositionModel, x: Tensor, structure: Structure) -> list[Tensor]:
    """What each layer adds, fed with its own sum."""
    of_pairs, n = kinds(structure), structure.unit_count
    number = {1: 0, 2: 1, 3: 2, 5: 3}
    s = torch.from_numpy(model.encodings[0].one(structure).values).double()
    p = [linear(model.enter, s[i]) for i in range(n)]
    e = {(i, j): model.edges.weight[number[of_pairs[i][j]]] for i in range(n) for j in range(n)
         if of_pairs[i][j] in number}  # fmt: skip
    h, added = list(x), []
    for number_, layer in enumerate(model.layers):
        gate = {(i, j): linear(layer.b1, h[j]) + linear(layer.b2, h[i]) + linear(layer.b3, e[i, j]) for i, j in e}
        eta = {}
        for i, j in e:
            eta[i, j] = gate[i, j].sigmoid() / (sum(gate[i, k].sigmoid() for a, k in e if a == i) + 1e-6)
        new_h, new_p = [], []
        for i in range(n):
            nothing = torch.zeros(8, dtype=x.dtype)
            sums = linear(layer.a1, torch.cat([h[i], p[i]]))
            sums = sums + sum((eta[i, j] * linear(layer.a2, torch.cat([h[j], p[j]])) for a, j in e if a == i), nothing)
            new_h.append(torch.relu(rest(layer.norm, sums / math.sqrt(n))))
            step = linear(layer.c1, p[i]) + sum((eta[i, j] * linear(layer.c2, p[j]) for a, j in e if a == i), nothing)
            new_p.append(p[i] + torch.tanh(step))
        if number_ < 2:
            e = {pair: e[pair] + torch.relu(rest(layer.norm_links, gate[pair])) for pair in e}
        p = new_p
        if number_ == 2:
            owner = structure.unit_owner.tolist()
            final = [linear(model.final, each) for each in p]
            share = [1 / owner.count(a) for a in owner]
            mean = sum(w * f for w, f in zip(share, final, strict=True)) / structure.size
            centred = [f - mean for f in final]
            length = sum(w * f * f for w, f in zip(share, centred, strict=True)).sqrt()
            new_h = [a + linear(model.leave, f / length) for a, f in zip(new_h, centred, strict=True)]
        added.append(torch.stack(new_h))
        h = [a + b for a, b in zip(h, new_h, strict=True)]
    return added


@pytest.mark.parametrize("structure", [GRAPH, TREES[0]], ids=["graph", "tree"])
def test_the_positional_stream_is_its_equations(structure: Structure) -> None:
    model, x = made("lspe"), noise(1, structure.unit_count, 8)
    state, expected = model.prepare(encoded(model, [structure])), lspe_by_hand(model, x[0], structure)
    for layer in range(3):
        out, state = model.attend(x, state, Site(layer), Terms())
        torch.testing.assert_close(out[0], expected[layer], rtol=0, atol=1e-9)
        x = x + out


def test_normalisation_in_training_heeds_no_padding() -> None:
    """A batch of one structure, and the same with rows of padding behind it, train alike."""
    results = []
    for room in (7, 12):
        model = made("lspe").train()
        nodes = replace(TREES[0], units=None, owner=None)
        positions = encoded(model, [nodes, path_of(room)])
        x = torch.zeros(2, room, 8, dtype=torch.float64)
        x[:, :7] = noise(2, 7, 8)
        there = torch.arange(room)[None] < torch.tensor([[7], [0]])
        masked = positions.of(there)
        out, _ = model.attend(x, model.prepare(masked), Site(0), Terms(mask=(there[:, None, None],)))
        results.append((out[0, :7], model.layers[0].norm.mean, model.layers[0].norm_links.variance))
    for few, many in zip(*results, strict=True):
        torch.testing.assert_close(few, many, rtol=0, atol=1e-12)
    assert results[0][1].abs().max() > 0


def path_of(size: int) -> Structure:
    return Structure(("x",) * size, [[i, i + 1] for i in range(size - 1)])


def test_a_mask_for_each_head_is_refused() -> None:
    model, mask = made("lspe"), torch.ones(1, 2, 8, 8, dtype=torch.bool)
    mask[0, 1, 0, 1] = False
    with pytest.raises(UnsupportedTerm, match="position model 'lspe' has no heads: a mask for each of 2 heads"):
        model.attend(noise(1, 8, 8), model.prepare(encoded(model, [GRAPH])), Site(0), Terms(mask=(mask,)))


@pytest.mark.parametrize("name", ["san", "lspe"])
def test_masked_units_are_not_attended_to(name: str) -> None:
    model, x = made(name), noise(3, 10, 8)
    other = torch.where(present(TREES)[:, 0, 0, :, None], x, 7.0)
    before, after = (Around(model)(encoded(model, TREES), units, present(TREES)) for units in (x, other))
    for row, structure in enumerate(TREES):
        n = structure.unit_count
        torch.testing.assert_close(before[row, :n], after[row, :n], rtol=0, atol=1e-9)


def test_kinds_of_links_are_those_of_the_adjacency() -> None:
    codes = encode([GRAPH], [Adjacency()])[Adjacency()].dense()[0]
    assert torch.where(codes > 4, 5, codes).tolist() == kinds(GRAPH)


@pytest.mark.parametrize("name", ["san", "lspe"])
def test_scores_of_others_are_refused(name: str) -> None:
    model = MODELS[name](Dims(8, 2, 1))
    with pytest.raises(UnsupportedTerm, match=f"position model '{name}' has its own attention.* bias"):
        model.attend(
            torch.zeros(1, 8, 8), model.prepare(encoded(model, [GRAPH], torch.float32)), Site(0),
            Terms(bias=(torch.zeros(1, 1, 8, 8),)),
        )  # fmt: skip
