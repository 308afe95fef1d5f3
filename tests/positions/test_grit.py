"""GRIT: random walks by powers of a matrix, and a layer of the authors' code pair by pair."""

from __future__ import annotations

import math
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch

from structpe.encodings import RRWP, LabelPath, Offset, RandomWalk
from structpe.errors import EncodingError, PositionError, UnsupportedTerm
from structpe.positions import MODELS, Dims, Site, build
from structpe.positions.batch import encode
from structpe.positions.by_rows import LIVE, ONE_BLOCK
from structpe.positions.grit import signed_root
from structpe.structure import Structure, path
from structpe.terms import Terms
from tests.positions.cases import Around, made, noise


def molecule(seed: int = 0, size: int = 9) -> Structure:
    graph = nx.gnp_random_graph(size, 0.3, seed=seed)
    return Structure(("x",) * size, np.array(graph.edges).reshape(-1, 2), directed=False)


@pytest.mark.parametrize("seed", range(4))
def test_walks_by_powers_of_the_matrix(seed: int) -> None:
    structure = molecule(seed)
    a = structure.adjacency()
    with np.errstate(divide="ignore"):
        scale = np.where(a.sum(1) > 0, 1 / a.sum(1), 0)
    m = np.diag(scale) @ a
    pairs = RRWP(steps=5).one(structure).pairs()
    for step in range(5):
        np.testing.assert_allclose(pairs[:, :, step], np.linalg.matrix_power(m, step), atol=1e-12)


def test_the_diagonals_are_those_of_the_random_walk_encoding() -> None:
    structure = molecule(2)
    diagonal = np.einsum("iik->ik", RRWP(steps=7).one(structure).pairs())[:, 1:]
    np.testing.assert_allclose(diagonal, RandomWalk(6).one(structure).values, atol=1e-6)


def test_units_have_what_their_nodes_have() -> None:
    structure = path("abc").with_units("abbc", [0, 1, 1, 2])
    pairs, owner = RRWP().one(structure).pairs(), [0, 1, 1, 2]
    np.testing.assert_array_equal(pairs, RRWP().one(path("abc")).pairs()[owner][:, owner])


def test_signed_roots_number_by_number() -> None:
    z = torch.tensor([-4.0, -0.25, -0.0, 0.0, 9.0, math.inf], dtype=torch.float64)
    torch.testing.assert_close(signed_root(z), torch.tensor([-2.0, -0.5, 0, 0, 3, math.inf], dtype=torch.float64))


def test_signed_roots_have_the_gradient_of_the_authors_formula() -> None:
    """Theirs is sqrt(relu(z)) - sqrt(relu(-z)); at 0 its gradient is 0, and so is ours."""
    z = torch.tensor([-4.0, -0.25, -0.0, 0.0, 1e-30, 9.0], dtype=torch.float64, requires_grad=True)
    other = z.detach().clone().requires_grad_()
    signed_root(z).sum().backward()
    (torch.relu(other).sqrt() - torch.relu(-other).sqrt()).sum().backward()
    assert z.grad is not None
    torch.testing.assert_close(z.grad, other.grad)
    assert z.grad[2:4].tolist() == [0, 0]
    away = torch.tensor([[-3.0, -0.5], [0.5, 3.0]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(signed_root, (away,), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(signed_root, (away,))
    assert torch.equal(torch.func.vmap(signed_root)(away), signed_root(away))


@pytest.mark.parametrize("times", [1, 40])
def test_a_layer_pair_by_pair(times: int) -> None:
    """The authors' layer as messages along edges, with loops in place of tensors."""
    structure = molecule(1)
    n, h, c = structure.size, 2, 4
    model, x = made("grit", Dims(8, 2, 2)), noise(1, n, 8)
    block = model.attentions[0]
    walks = torch.from_numpy(RRWP().one(structure).pairs())
    degree = structure.adjacency().sum(1)
    x = model.inputs(x, prepared := model.prepare(encode([structure], model.encodings)))
    with torch.no_grad():
        block.score.mul_(times)
        out, after = model.attend(x, prepared, Site(0), Terms())
        outside = set()
        q, k, v = block.query(x)[0], block.key(x)[0], block.value(x)[0]
        for i in range(n):
            scores, seen = torch.zeros(n, h, dtype=torch.float64), []
            for j in range(n):
                e = model.relative.weight @ walks[i, j]
                met = (q[i] + k[j]) * (block.weigh.weight @ e + block.weigh.bias)
                root = torch.tensor([math.copysign(math.sqrt(abs(z)), z) for z in met.tolist()], dtype=torch.float64)
                seen.append((root + block.add.weight @ e + block.add.bias).clamp(min=0))
                for head in range(h):
                    part = seen[j][head * c : (head + 1) * c]
                    scores[j, head] = min(max(score := float(part @ block.score[head]), -5.0), 5.0)
                    outside.add(0 if abs(score) <= 5 else math.copysign(1, score))
                normed = torch.nn.functional.layer_norm(e + block.pairs(seen[j]), (8,), *block.norm.parameters())
                torch.testing.assert_close(after.pairs[i * n + j], normed, rtol=0, atol=1e-9)
            weights = scores.softmax(0)
            y = torch.zeros(8, dtype=torch.float64)
            for head in range(h):
                part = slice(head * c, (head + 1) * c)
                y[part] = sum(weights[j, head] * (v[j, part] + seen[j][part] @ block.of_pairs[head]) for j in range(n))
            scaled = y * block.scaler[0] + math.log(1 + degree[i]) * y * block.scaler[1]
            torch.testing.assert_close(out[0, i], block.out(scaled), rtol=0, atol=1e-9)
    assert outside == ({0} if times == 1 else {-1, 0, 1})  # scores end at 5, above and below


@pytest.mark.parametrize("directed", [False, True])
def test_labels_of_edges_are_added_to_the_states_of_pairs(directed: bool) -> None:
    edges, words = [[0, 1], [1, 2], [2, 0], [2, 3]], "abca"
    structure = Structure(("x",) * 5, np.array(edges), tuple(words), directed=directed)
    model = made("grit", labels=LabelPath(("a", "b"), max_length=1, longer="symbol"))
    plain, known = model.prepare(encode([structure], model.encodings)), model.options()["labels"].labels
    walks = torch.from_numpy(RRWP().one(structure).pairs())
    row = {}
    for (a, b), word in zip(edges, words, strict=True):
        unknown = word not in known
        row[a, b] = 0 if unknown else 1 + 2 * known.index(word)
        row[b, a] = 0 if unknown else 1 + 2 * known.index(word) + directed
    for i, j in np.ndindex(5, 5):
        expected = model.relative.weight @ walks[i, j]
        expected = expected + model.edges.table[row[i, j]] if (i, j) in row else expected
        torch.testing.assert_close(plain.pairs[i * 5 + j], expected, rtol=0, atol=1e-12)


def test_states_may_be_normalised_over_the_pairs_of_a_batch_padding_left_out() -> None:
    """The batch norm of the authors' configurations: statistics of all pairs of every graph, none of the padding."""
    structures = [molecule(1, 5), molecule(2, 3)]
    model = made("grit", Dims(8, 2, 2), norm="batch").train()
    x, prepared = noise(2, 5, 8), model.prepare(encode(structures, model.encodings))
    block = model.attentions[0]
    present = torch.arange(5)[None] < torch.tensor([5, 3])[:, None]
    _, after = model.attend(x, prepared, Site(0, training=True), Terms(mask=(present[:, None, None],)))
    states = []
    for structure, units in zip(structures, x, strict=True):
        walks = torch.from_numpy(RRWP().one(structure).pairs())
        e, part = walks @ model.relative.weight.T, units[: structure.size]
        met = (block.query(part)[:, None] + block.key(part)[None]) * block.weigh(e)
        seen = torch.relu(torch.sign(met) * met.abs().sqrt() + block.add(e))
        states.append((e + block.pairs(seen)).flatten(0, 1))
    real = torch.cat(states)
    normed = (real - real.mean(0)) / (real.var(0, unbiased=False) + 1e-5).sqrt() * block.norm.weight + block.norm.bias
    torch.testing.assert_close(after.pairs, normed, rtol=0, atol=1e-9)
    torch.testing.assert_close(block.norm.mean, 0.1 * real.mean(0), rtol=0, atol=1e-9)
    torch.testing.assert_close(block.norm.variance, 0.9 + 0.1 * real.var(0), rtol=0, atol=1e-9)


@pytest.mark.parametrize("masked", [True, False])
def test_padding_has_no_states(masked: bool) -> None:
    model = made("grit", Dims(8, 2, 2))
    structures = [molecule(1, 5), path("a"), molecule(2, 3)]
    present = torch.arange(5)[None] < torch.tensor([5, 1, 3])[:, None]
    prepared = model.prepare(encode(structures, model.encodings))
    assert prepared.pairs.shape == (25 + 1 + 9, 8)
    terms, x = Terms(mask=(present[:, None, None],) if masked else ()), noise(3, 5, 8)
    out, after = model.attend(x, prepared, Site(0), terms)
    begin = 0
    for number, structure in enumerate(structures):
        n = structure.size
        alone, states = model.attend(
            x[number : number + 1, :n], model.prepare(encode([structure], model.encodings)), Site(0), Terms()
        )
        torch.testing.assert_close(out[number, :n], alone[0], rtol=0, atol=1e-12)
        torch.testing.assert_close(after.pairs[begin : begin + n * n], states.pairs, rtol=0, atol=1e-12)
        begin += n * n


def test_structures_of_one_size_need_no_mark_of_padding() -> None:
    model, structures, x = made("grit", Dims(8, 2, 2)), [molecule(1, 5), molecule(2, 5)], noise(2, 5, 8)
    positions = encode(structures, model.encodings)
    marked, plain = (model.attend(x, model.prepare(p), Site(0), Terms()) for p in (positions, positions.of(None)))
    torch.testing.assert_close(plain[0], marked[0])
    torch.testing.assert_close(plain[1].pairs, marked[1].pairs)


def test_one_structure_serves_several_rows() -> None:
    model, structure, x = made("grit", Dims(8, 2, 2)), molecule(3, 6), noise(3, 6, 8)
    prepared = model.prepare(encode([structure], model.encodings))
    first, state = model.attend(x, prepared, Site(0), Terms())
    second, _ = model.attend(first, state, Site(1), Terms())
    for row in range(3):
        one, state = model.attend(x[row : row + 1], prepared, Site(0), Terms())
        torch.testing.assert_close(first[row], one[0], rtol=0, atol=1e-12)
        torch.testing.assert_close(second[row], model.attend(one, state, Site(1), Terms())[0][0], rtol=0, atol=1e-12)


def test_it_may_be_built_without_the_rectifier() -> None:
    structure, (with_it, without) = molecule(1), (made("grit", rectified=flag) for flag in (True, False))
    x = noise(1, structure.size, 8)
    outs = [
        model.attend(x, model.prepare(encode([structure], model.encodings)), Site(0), Terms())[0]
        for model in (with_it, without)
    ]
    assert not torch.allclose(*outs)
    for block in (with_it.attentions[0], without.attentions[0]):
        block.add.bias.data += 1e3  # where nothing is negative, both are one
        block.score.data.zero_()
    outs = [
        model.attend(x, model.prepare(encode([structure], model.encodings)), Site(0), Terms())[0]
        for model in (with_it, without)
    ]
    torch.testing.assert_close(*outs)


@pytest.mark.parametrize(
    "options", [{"norm": "batch"}, {"labels": LabelPath(("a", "b"), max_length=1, longer="symbol")}]
)
def test_the_formula_counts_the_options_too(options: dict[str, Any]) -> None:
    model = MODELS["grit"](Dims(8, 2, 3), **options)
    assert model.claimed_params() == sum(p.numel() for p in model.parameters())
    again = type(model)(model.dims, **model.options())
    assert again.load_state_dict(model.state_dict())


def test_what_begins_the_layers() -> None:
    structure = molecule(1)
    model = made("grit")
    x = noise(1, structure.size, 8)
    own = torch.from_numpy(np.einsum("iik->ik", RRWP().one(structure).pairs()))
    begun = model.inputs(x, model.prepare(encode([structure], model.encodings)))
    torch.testing.assert_close(begun[0], x[0] + own @ model.absolute.weight.T)


def test_it_goes_with_models_at_the_input_and_refuses_others() -> None:
    dims, structure = Dims(8, 2, 2), path("abcd")
    both = build(["sinusoidal", "grit"], dims).double()
    assert Around(both)(encode([structure], both.encodings), noise(1, 4, 8)).shape == (1, 4, 8)
    wrong = build(["t5", "grit"], dims).double()
    with pytest.raises(UnsupportedTerm, match="'grit' has its own attention, which does not support bias"):
        Around(wrong)(encode([structure], wrong.encodings), noise(1, 4, 8))


def test_a_unit_that_may_attend_nowhere_gets_no_more_than_the_bias() -> None:
    model = made("grit")
    prepared = model.prepare(encode([path("abc")], model.encodings))
    nowhere = Terms(mask=(torch.zeros(1, 1, 1, 3, dtype=torch.bool),))
    out, _ = model.attend(noise(1, 3, 8), prepared, Site(0), nowhere)
    torch.testing.assert_close(out, model.attentions[0].out.bias.expand_as(out))


def test_what_is_refused() -> None:
    with pytest.raises(PositionError, match="'grit' needs the labels of single edges: LabelPath"):
        MODELS["grit"](Dims(8, 2, 1), labels=LabelPath(("a",)))
    takes = "option 'norm' of position model 'grit' takes one of 'layer', 'batch'"
    with pytest.raises(PositionError, match=f"{takes}; given is 'instance'"):
        MODELS["grit"](Dims(8, 2, 1), norm="instance")
    with pytest.raises(PositionError, match=r"'grit' needs a vector per pair .*; 'offset' gives one number"):
        MODELS["grit"](Dims(8, 2, 1), encoding=Offset())
    with pytest.raises(EncodingError, match="steps is 0"):
        RRWP(0)


def test_a_bias_of_walks_pair_by_pair() -> None:
    """An undirected graph in two parts, each head from its own row of the last layer."""
    structure = Structure(("x",) * 6, np.array([[0, 1], [1, 2], [2, 0], [3, 4]]), directed=False)
    model = made("random-walk-bias", hidden=5, encoding=RRWP(steps=4))
    terms = model.terms(model.prepare(encode([structure], model.encodings)), Site(1))
    a = structure.adjacency()
    walk = a / np.maximum(a.sum(1, keepdims=True), 1)
    first, _, last = model.of_walks
    for i, j in np.ndindex(6, 6):
        p = torch.tensor([np.linalg.matrix_power(walk, step)[i, j] for step in range(4)])
        hidden = [(row @ p + c).clamp(min=0) for row, c in zip(first.weight, first.bias, strict=True)]
        for head in range(2):
            said = sum(w * x for w, x in zip(last.weight[head], hidden, strict=True)) + last.bias[head]
            torch.testing.assert_close(terms.bias[0].dense()[0, i, j, head], said, rtol=0, atol=1e-9)
    with pytest.raises(
        PositionError, match=r"'random-walk-bias' needs a vector per pair .*; 'offset' gives one number"
    ):
        MODELS["random-walk-bias"](Dims(8, 2, 1), encoding=Offset())


@pytest.mark.parametrize("rectified", [True, False])
@pytest.mark.parametrize("sizes", [(6,), (5, 5), (6, 3, 1)], ids=str)
@pytest.mark.parametrize("at_once", [1 << 25, 0], ids=["one block", "blocks"])
def test_gradients_by_hand_are_those_that_pytorch_finds(
    rectified: bool, sizes: tuple[int, ...], at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch.func gets formulas, whose gradients PyTorch knows; some pairs are hidden, in one query all are."""
    monkeypatch.setitem(ONE_BLOCK, "cpu", at_once)
    monkeypatch.setitem(LIVE, "cpu", 500)
    model = made("grit", Dims(8, 2, 2), rectified=rectified)
    positions, x = encode([molecule(1, size) for size in sizes], model.encodings), noise(len(sizes), max(sizes), 8)
    names, parameters = zip(*model.named_parameters(), strict=True)
    there = torch.rand(len(sizes), 2, max(sizes), max(sizes), generator=torch.Generator().manual_seed(0)) < 0.8
    there[:, :, 1:2] = False

    class Whole(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            prepared = model.prepare(positions)
            for layer in range(2):
                out, prepared = model.attend(x, prepared, Site(layer), Terms(mask=(there,)))
                x = x + out
            return x.square().sum() + prepared.pairs.sin().sum()

    def loss(x: torch.Tensor, *given: torch.Tensor) -> torch.Tensor:
        named = {f"model.{name}": each for name, each in zip(names, given, strict=True)}
        return torch.func.functional_call(net, named, (x,))

    net = Whole()
    expected = torch.func.grad(loss, tuple(range(1 + len(names))))(x, *(each.detach() for each in parameters))
    x.requires_grad_()
    found = torch.autograd.grad(net(x), [x, *parameters], create_graph=True, allow_unused=True)
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(torch.zeros_like(theirs) if mine is None else mine, theirs)
    again, *_ = torch.autograd.grad(found[0].square().sum(), x)
    of_func = torch.func.grad(lambda x: torch.func.grad(loss)(x, *parameters).square().sum())(x.detach())
    torch.testing.assert_close(again, of_func)
