"""Models for graphs published since 2022: outputs of the authors' code, or their formula in plain loops.

Weights and inputs of the golden files are waves of numbers that anyone can make again, so that only outputs are stored.
"""

from __future__ import annotations

import math
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from torch import Tensor, nn

from structpe.attention import attend
from structpe.encodings import RRWP, LabelPath, PersonalizedPageRank, Resistance, UndirectedDistance
from structpe.errors import PositionError
from structpe.positions import MODELS, Dims, PositionModel, Site, Sources, build
from structpe.structure import Structure, path
from structpe.terms import Terms
from structpe.transforms.nodes import with_virtual_node
from tests.golden import golden
from tests.positions.cases import Around, encoded, made, noise

EDGES = [(0, 1), (1, 2), (2, 3), (3, 0), (2, 4), (4, 5), (5, 6), (1, 4)]
GRAPH = Structure(("x",) * 8, EDGES, directed=False)
"""The last of its nodes is alone."""
DIMS = Dims(8, 2, 1)
CLOSE: dict[str, Any] = {"rtol": 0, "atol": 1e-12}


def wave(*shape: int, number: int) -> Tensor:
    return torch.sin(number + 0.7 * torch.arange(math.prod(shape), dtype=torch.float64)).view(shape) / shape[-1] ** 0.5


def fill(tensors: dict[int, Tensor]) -> None:
    for number, tensor in tensors.items():
        tensor.data = wave(*tensor.shape, number=number)


def whole(first: int, *layers: nn.Module) -> None:
    """Weight and bias of layers, numbered from the first."""
    fill(dict(enumerate([p for layer in layers for p in (layer.weight, layer.bias)], start=first)))


def heads(x: Tensor, w: Tensor, b: Tensor | float = 0) -> Tensor:
    """(1, h, n, d/h) W x + b."""
    return (x @ w.T + b).view(1, len(x), 2, -1).transpose(1, 2)


def built(name: str, **options: Any) -> PositionModel:
    return MODELS[name](DIMS, **options).double().eval()


@pytest.mark.parametrize(("name", "theirs"), [("sat", "gnn"), ("sat-subgraph", "khopgnn")])
def test_sat_is_the_authors_attention(name: str, theirs: str) -> None:
    """Units split off nodes change nothing for the others."""
    model, x = built(name, hops=2), wave(8, 8, number=1)
    extractor: Any = model.extractors[0]
    for layer, convolution in enumerate(extractor.convolutions):
        first = 10 + 10 * layer
        fill(
            {first: convolution.around.weight, first + 1: convolution.itself.bias, first + 2: convolution.itself.weight}
        )
    fill({30: extractor.norm.weight, 31: extractor.norm.bias, 32: extractor.norm.mean})
    extractor.norm.variance = wave(*extractor.norm.variance.shape, number=33).square() + 0.5
    whole(34, extractor.out)
    prepared = model.prepare(encoded(model, [GRAPH]))
    made_of = model.sources(Sources(x[None], x[None], x[None]), prepared, Site(0))
    expected = golden("sat")
    torch.testing.assert_close(made_of.query[0], expected[f"out.made_{theirs}"], **CLOSE)
    w = wave(16, 8, number=40)  # of keys first
    q, k, v = heads(made_of.query[0], w[8:]), heads(made_of.key[0], w[:8]), heads(x, wave(8, 8, number=41))
    out = attend(q, k, v, model.terms(prepared, Site(0)), "dense").transpose(1, 2).flatten(2)[0]
    out = out @ wave(8, 8, number=42).T + wave(8, number=43)
    torch.testing.assert_close(out, expected[f"out.attention_{theirs}"], **CLOSE)
    split = GRAPH.with_units([f"u{i}" for i in range(10)], [0, 1, 2, 2, 2, 3, 4, 5, 6, 7])
    places = split.unit_owner.tolist()
    again = model.prepare(encoded(model, [split]))
    of_units = model.sources(Sources(*[x[None, places]] * 3), again, Site(0)).query[0]
    torch.testing.assert_close(of_units, made_of.query[0, places], **CLOSE)


def test_listed_subgraphs_are_those_of_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """With padding, and with a node of several units; gradients too."""
    model = built("sat-subgraph", hops=2)
    split = GRAPH.with_units([f"u{i}" for i in range(10)], [0, 1, 2, 2, 2, 3, 4, 5, 6, 7])
    positions = encoded(model, [GRAPH, split, path("abcd")])
    x, found = noise(3, 10, 8).requires_grad_(), []
    for fewer in (1e-3, 1e9):
        monkeypatch.setattr("structpe.positions.graphs.FEWER", fewer)
        prepared = model.prepare(positions)
        assert (prepared.listed is not None) == (fewer < 1)
        out = model.gathered(model.extractors[0].convolutions, x, prepared)[positions.present]
        weights, parameters = noise(*out.shape), model.extractors[0].convolutions.parameters()
        found.append([out, *torch.autograd.grad(out, [x, *parameters], weights)])
    torch.testing.assert_close(*found, rtol=0, atol=1e-9)


def test_the_subgraph_ends_after_so_many_hops() -> None:
    """A circle of six looks like two triangles to any network over neighbours, but not within its subgraphs."""
    circle, triangles = (
        Structure(("x",) * 6, edges, directed=False)
        for edges in ([(i, (i + 1) % 6) for i in range(6)], [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)])
    )
    x = torch.ones(1, 6, 8, dtype=torch.float64)
    for name, apart in (("sat", False), ("sat-subgraph", True)):
        model = made(name, DIMS, hops=1 if name == "sat" else 2)
        here, there = (
            model.sources(Sources(x, x, x), model.prepare(encoded(model, [each])), Site(0)).query
            for each in (circle, triangles)
        )
        assert torch.allclose(here, there, rtol=0, atol=1e-9) != apart


@pytest.mark.parametrize(("kind", "slope"), [("flat", 0.0), ("leaky", 0.25)])
def test_gradformer_is_the_authors_attention(kind: str, slope: float) -> None:
    model, x, expected = built("gradformer", slope=slope), wave(8, 8, number=1), golden("gradformer")
    model.hops.data = torch.tensor([1.5, 3.0], dtype=torch.float64)
    terms = model.terms(model.prepare(encoded(model, [GRAPH])), Site(0))
    (gate,) = terms.gate
    torch.testing.assert_close(gate.dense()[0].movedim(-1, 0), expected[f"out.mask_{kind}"], **CLOSE)
    q, k, v = (heads(x, wave(8, 8, number=n), wave(8, number=n + 1)) for n in (10, 12, 14))
    out = attend(q, k, v, terms, "dense").transpose(1, 2).flatten(2)[0] @ wave(8, 8, number=16).T + wave(8, number=17)
    torch.testing.assert_close(out, expected[f"out.attention_{kind}"], **CLOSE)
    assert build("gradformer", DIMS).hops.tolist() == [5, 5]
    with pytest.raises(PositionError, match=r"'gradformer' takes a gamma above 0 and at most 1; given is 1\.5"):
        build({"name": "gradformer", "gamma": 1.5}, DIMS)


def test_gradformer_fades_with_units_of_one_node_too() -> None:
    model = built("gradformer", hops=1.0)
    (gate,) = model.terms(
        model.prepare(encoded(model, [path("ab").with_units("abbbb", [0, 1, 1, 1, 1])])), Site(0)
    ).gate
    assert gate.dense()[0, :, :, 0].tolist()[1] == [1, 1, 1, 0.5, 0.25]


def test_graphormer_gd_is_the_authors_attention() -> None:
    """They write 3.14159 for pi, which makes their Gaussians 4e-7 higher."""
    graph = with_virtual_node(Structure(("x",) * 7, EDGES, ("a",) * 8, directed=False))
    model, x, expected = (
        built("graphormer-gd", kernels=6, distances=12, paths=LabelPath(max_length=5).fit([graph])),
        wave(8, 1, 8, number=1)[:, 0],
        golden("graphormer_gd"),
    )
    for first, part in ((20, model.bias), (40, model.factor)):
        table = wave(12, 2, number=first)[1:]  # their first row is of padding
        part.spatial.table.data[:11], part.spatial.token.data = table, wave(1, 2, number=first + 1)[0]
        part.network.means.data = wave(1, 6, number=first + 2)[0]
        part.network.widths.data = wave(1, 6, number=first + 3)[0]
        weight = wave(6, 6, number=first + 4)
        part.network.hidden.weight.data = torch.cat([weight, torch.ones(6, 1, dtype=torch.float64)], dim=1)
        fill(
            {first + 5: part.network.hidden.bias, first + 6: part.network.out.weight, first + 7: part.network.out.bias}
        )
    model.edges.table.data.zero_()
    whole(60, *(each[0] for each in (model.queries, model.keys, model.values, model.outs)))
    prepared = model.prepare(encoded(model, [graph]))
    torch.testing.assert_close(prepared.bias[0], expected["out.bias"], rtol=0, atol=1e-6)
    torch.testing.assert_close(prepared.factor[0], expected["out.factor"], rtol=0, atol=1e-6)
    out, _ = model.attend(x[None], prepared, Site(0), Terms())
    torch.testing.assert_close(out[0], expected["out.attention"], rtol=0, atol=1e-6)


@pytest.mark.parametrize("basis", [True, False])
def test_pearl_is_the_authors_encoder(basis: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Theirs is a sum over samples, ours the mean; with batch normalisation at rest."""
    name, powers = ("b-pearl", 4) if basis else ("r-pearl", 2)
    model = built(name, powers=powers, hidden=6, width=5, layers=3)
    whole(10, model.enter)
    model.phi.eps.data = torch.stack([wave(1, number=20 + 10 * i)[0] for i in range(3)])
    for i, network in enumerate(model.phi.networks):
        whole(21 + 10 * i, network[0], network[2])
    samples = 1
    if not basis:
        samples = 7
        monkeypatch.setattr(type(model), "_drawn", lambda self, counts, device: [wave(8, 7, number=1)])
    out = model.prepare(encoded(model, [GRAPH]))[0] * samples
    torch.testing.assert_close(out, golden("pearl")[f"out.{'basis' if basis else 'random'}"], rtol=0, atol=1e-11)


def test_random_pearl_is_the_same_in_evaluation_and_another_in_training() -> None:
    """Alone or in a batch, whatever its units; and more samples come nearer to the mean."""
    model, split = built("r-pearl"), GRAPH.with_units([str(i) for i in range(9)], [0, 0, 1, 2, 3, 4, 5, 6, 7])
    alone = model.prepare(encoded(model, [GRAPH]))[0]
    together = model.prepare(
        encoded(model, [path("ab"), split]).of(torch.tensor([[True] * 2 + [False] * 7, [True] * 9]))
    )
    torch.testing.assert_close(together[1, 1:], alone, rtol=0, atol=1e-12)
    assert not together[0, 2:].any()
    model.train()
    drawn = [model.prepare(encoded(model, [GRAPH]))[0] for _ in range(2)]
    assert not torch.allclose(*drawn)
    torch.manual_seed(0)
    few, many = (torch.stack([_sampled(model, samples) for _ in range(8)]).var(0).mean() for samples in (4, 400))
    assert many < few / 10


def _sampled(model: PositionModel, samples: int) -> Tensor:
    model.samples = samples  # type: ignore[assignment]
    prepared: Tensor = model.prepare(encoded(model, [GRAPH]))
    return prepared.detach()


def test_ppgt_pair_by_pair() -> None:
    """Attention and stem of the authors' code, read and written again as loops."""
    model, x = made("ppgt", Dims(8, 2, 2), encoding=RRWP(steps=3), hidden=5), noise(1, 8, 8)
    prepared = model.prepare(encoded(model, [GRAPH]))
    walks = torch.from_numpy(RRWP(steps=3).one(GRAPH).pairs())
    degree = torch.from_numpy(GRAPH.adjacency().sum(1))
    for i in range(8):
        own = torch.cat([walks[i, i], torch.log1p(degree[i : i + 1]), torch.tensor([math.log(9)]).double()])
        added = model.own.weight @ own + model.own.bias
        torch.testing.assert_close(model.inputs(x, prepared)[0, i], x[0, i] + added, rtol=0, atol=1e-6)
    out, _ = model.attend(x, prepared, Site(1), Terms())
    q, k, v = (each[1](x)[0].view(8, 2, 4) for each in (model.queries, model.keys, model.values))
    for i in range(8):
        mixed = torch.zeros(2, 4, dtype=torch.float64)
        for head in range(2):
            scores, factors = [], []
            for j in range(8):
                z = walks[i, j].tolist()
                lifted = [*z, *(math.sin(2**m * math.pi * c) for m in range(3) for c in z)]
                lifted += [math.cos(2**m * math.pi * c) for m in range(3) for c in z]
                e = model.leave(nn.functional.gelu(model.enter(torch.tensor(lifted).double())))
                bias, factor = (each[1](e)[head] for each in (model.biases, model.factors))
                scores.append(q[i, head] @ k[j, head] - k[j, head] @ k[j, head] / 2 / math.sqrt(4) + bias)
                factors.append(1 + factor)
            weights = torch.stack(scores).softmax(0) * torch.stack(factors)
            mixed[head] = weights @ v[:, head]
        torch.testing.assert_close(out[0, i], model.outs[1](mixed.flatten()), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "encoding",
    [Resistance(), UndirectedDistance(), PersonalizedPageRank(threshold=0.05), PersonalizedPageRank(directed=True)],
    ids=["ohms", "edges", "ranks", "directed"],
)
@pytest.mark.parametrize("name", ["mlp-bias", "rbf-bias"])
def test_a_bias_of_any_value_of_a_pair(name: str, encoding: Any) -> None:
    """By plain loops: what has no number, as between parts of a graph, is a mark of its own."""
    graph = GRAPH.with_units("abcdefghi", [0, 1, 2, 3, 4, 5, 6, 6, 7])
    model = made(name, DIMS, encoding=encoding)
    (bias,) = model.terms(model.prepare(encoded(model, [graph])), Site(0)).bias
    values, network, marked = encoding.one(graph).pairs(), model.of_values, 0
    for i, j in np.ndindex(9, 9):
        far, number = float(values[i, j] == 1 << 20), float(values[i, j])
        number = number - (1 << 22) if number > 1 << 21 else (0.0 if far else number)
        marked += int(far)
        if name == "rbf-bias":
            spread = network.widths.abs() + 0.01
            bells = (-((number - network.means) ** 2) / spread**2 / 2).exp() / (spread * math.sqrt(2 * math.pi))
            inner = torch.cat([bells * (1 - far), torch.tensor([far]).double()])
            expected = network.out(nn.functional.gelu(network.hidden(inner)))
        else:
            expected = network(torch.tensor([number, far]).double())
        torch.testing.assert_close(bias.dense()[0, i, j], expected, rtol=0, atol=1e-6)
    assert marked >= 14


def test_a_network_on_walks_is_what_random_walk_bias_is() -> None:
    mine, theirs = made("mlp-bias", DIMS, encoding=RRWP()), made("random-walk-bias", DIMS)
    mine.of_values.load_state_dict(theirs.of_walks.state_dict())
    x = noise(1, 8, 8)
    outs = [Around(model)(encoded(model, [GRAPH]), x) for model in (mine, theirs)]
    torch.testing.assert_close(*outs, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"name": "rbf-bias", "encoding": "rrwp"},
            "'rbf-bias' needs one number for each pair .*'rrwp' gives 8 numbers",
        ),
        ({"name": "mlp-bias", "encoding": "label-path"}, "'mlp-bias' needs a number or a vector .* gives sequences"),
        ({"name": "mlp-bias", "encoding": "neighbours"}, "needs an encoding of all pairs; 'neighbours' lists some"),
        ({"name": "ppgt", "encoding": "depth"}, "'ppgt' needs an encoding of pairs of units"),
        ({"name": "graphormer-gd", "resistance": "rrwp"}, "'graphormer-gd' needs one number for each pair"),
    ],
)
def test_encodings_that_do_not_fit(config: Any, message: str) -> None:
    with pytest.raises(PositionError, match=message):
        build(config, DIMS)


def test_ranks_along_directions_by_steps() -> None:
    """P = c sum of (1 - c)^m W^m, where a walk from s leaves along the edges of s only."""
    edges = [(0, 1), (1, 2), (2, 0), (0, 3), (3, 4), (1, 4), (1, 4), (5, 0)]
    graph, c = Structure(("x",) * 6, edges), 0.3
    leads = np.zeros((6, 6))
    for s, t in edges:
        leads[t, s] = 1
    step = leads / np.maximum(leads.sum(0), 1)
    expected = c * sum(np.linalg.matrix_power((1 - c) * step, m) for m in range(200))
    values = PersonalizedPageRank(restart=c, threshold=None, directed=True).one(graph).pairs()
    np.testing.assert_allclose(values, -np.log(expected + 1e-9), rtol=0, atol=1e-9)
    both = nx.to_directed(nx.Graph(edges))
    same = [
        PersonalizedPageRank(directed=along).one(each).pairs()
        for along, each in (
            (False, graph),
            (True, Structure(("x",) * 6, list(both.edges))),
            (True, Structure(("x",) * 6, edges, directed=False)),
        )
    ]
    np.testing.assert_allclose(same[1], same[0], rtol=0, atol=1e-9)
    np.testing.assert_allclose(same[2], same[0], rtol=0, atol=1e-9)
