"""Encoder, decoder and both together: padding, caches, messages and copying change nothing that they should not."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import nn

from structpe.data.batch import Batch, EdgeTypes, Example, collate
from structpe.encodings.distance import Distance
from structpe.encodings.order import Offset
from structpe.errors import ConfigError, PositionError
from structpe.nn.convolutions import CONVOLUTIONS
from structpe.nn.seq2seq import EncoderDecoder, TransformerConfig
from structpe.positions import MODELS, PositionModel, Sum
from structpe.structure import Structure, path
from tests.representatives import only

CONFIG = TransformerConfig(width=16, heads=2, encoder_layers=2, decoder_layers=2, feedforward=32, dropout=0.0)
GRAPHS = [
    Structure(("want", "boy", "go"), [[0, 1], [0, 2], [2, 1]], (":ARG0", ":ARG1", ":ARG0"), order=[0, 1, 2], root=0),
    path(["a", "b", "c", "d", "e"]),
    Structure(("x", "y"), [[1, 0]], (":mod",), order=[0, 1], root=1).with_units(("x", "y", "y'"), (0, 1, 1)),
]
EDGES = EdgeTypes.fit(GRAPHS)


class Backwards(Offset):
    """An encoding that says it needs the whole text."""

    causal = False


def model(**options: object) -> EncoderDecoder:
    """A small model in float64 whose encoder knows distances and whose decoder knows order."""
    torch.manual_seed(1)
    config = dataclasses.replace(CONFIG, **options)
    dims = config.dims("encoder")
    position = Sum(dims, [MODELS["t5"](dims, encoding=Distance()), MODELS["sinusoidal"](dims)])
    decoder = Sum(config.dims("decoder"), [MODELS["t5-causal"](config.dims("decoder"))])
    return EncoderDecoder(config, 30, position, decoder, EDGES.size).double().eval()


def batch(graphs: list[Structure], position: PositionModel, target: Sequence[Sequence[int]] = ()) -> Batch:
    """The graphs, smallest first, with unit ids that depend on the unit's text alone."""
    examples = []
    for number, graph in enumerate(graphs):
        units = np.array([5 + ord(text[0]) % 20 for text in graph.unit_texts])
        text = np.array(target[number] if target else [2, 7, 8, 9, 3])
        encoded = {encoding: encoding.one(graph) for encoding in position.encodings}
        examples.append(dataclasses.replace(Example.of(graph, encoded, text, edge_types=EDGES), x=units))
    made = collate(examples, padding=0)
    each = (positions.to(torch.device("cpu"), torch.float64) for positions in made.positions)
    return made.replaced(positions=tuple(each))


def _rows(graphs: list[Structure]) -> list[int]:
    """The row of each graph in the batch, which has the smallest first."""
    order = sorted(range(len(graphs)), key=lambda i: graphs[i].unit_count)
    return [order.index(i) for i in range(len(graphs))]


@pytest.mark.parametrize("convolution", [None, *CONVOLUTIONS])
@pytest.mark.parametrize("copying", only((False, True), True))
@torch.no_grad()
def test_padded_together_equals_one_by_one(convolution: str | None, copying: bool) -> None:
    net = model(message_passing=convolution, copy_units=copying)
    together = net(batch(GRAPHS, net.encoder.position))
    for row, graph in zip(together[_rows(GRAPHS)], GRAPHS, strict=True):
        alone = net(batch([graph], net.encoder.position))[0]
        torch.testing.assert_close(row, alone, rtol=0, atol=1e-9)


@pytest.mark.parametrize("copying", [False, True])
def test_steps_with_a_cache_equal_the_full_computation(copying: bool) -> None:
    net = model(copy_units=copying)
    given = batch(GRAPHS, net.encoder.position)
    assert given.target is not None
    full = net.step(given.target, net.start(given))
    state = net.start(given)
    for place in range(given.target.shape[1]):
        step = net.step(given.target[:, place : place + 1], state)
        torch.testing.assert_close(step[:, 0], full[:, place], rtol=0, atol=1e-9)


def test_a_later_unit_changes_nothing_before_it() -> None:
    net = model()
    given = batch(GRAPHS[:1], net.encoder.position)
    full = net.step(torch.tensor([[2, 7, 8, 9]]), net.start(given))
    other = net.step(torch.tensor([[2, 7, 8, 11]]), net.start(given))
    torch.testing.assert_close(full[:, :3], other[:, :3])
    assert not torch.allclose(full[:, 3], other[:, 3])


@pytest.mark.parametrize("convolution", [None, "gine", "gatedgcn"])
def test_relabelling_nodes_changes_nothing(convolution: str | None) -> None:
    net = model(message_passing=convolution)
    graph = GRAPHS[0]
    order = [2, 0, 1]
    place = {old: new for new, old in enumerate(order)}
    moved = dataclasses.replace(
        graph,
        nodes=tuple(graph.nodes[old] for old in order),
        edges=[[place[s], place[t]] for s, t in graph.edges.tolist()],
        order=[int(graph.order[old]) for old in order],
        root=place[0],
    )
    here = net.encode(batch([graph], net.encoder.position))
    there = net.encode(batch([moved], net.encoder.position))
    torch.testing.assert_close(there, here[order], rtol=0, atol=1e-9)


def test_probabilities_sum_to_one_with_and_without_copying() -> None:
    for copying in (False, True):
        net = model(copy_units=copying)
        total = net(batch(GRAPHS, net.encoder.position)).exp().sum(-1)
        torch.testing.assert_close(total, torch.ones_like(total), rtol=0, atol=1e-9)


def test_copying_is_the_mixture_that_its_docstring_says() -> None:
    net = model(copy_units=True)
    given = batch(GRAPHS[2:], net.encoder.position)
    state = net.start(given)
    copy, source = net.copy, state.copied
    assert copy is not None
    assert source is not None
    hidden = torch.randn(1, 1, 16, dtype=torch.float64)
    logits = torch.randn(1, 1, 30, dtype=torch.float64)
    gate = torch.sigmoid(copy.gate(hidden)).item()
    weights = torch.softmax(copy.key(net.encode(given)) @ copy.query(hidden)[0, 0] / math.sqrt(16), dim=0)
    expected = (1 - gate) * torch.softmax(logits[0, 0], dim=0)
    for unit, weight in zip(given.x.tolist(), weights.tolist(), strict=True):
        expected[unit] += gate * weight
    got = copy(hidden, logits, source, state.present)[0, 0].exp()
    torch.testing.assert_close(got.double(), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("copying", [False, True])
def test_the_loss_is_its_formula_over_all_log_probabilities(copying: bool) -> None:
    net = model(copy_units=copying)
    given = batch(GRAPHS, net.encoder.position, [[2, 7, 8, 3], [2, 6, 3], [2, 25, 3]])
    assert given.target is not None
    scores = net(given)
    total, count = net.loss(given, padding=0)
    real = [(b, t) for b in range(3) for t in range(3) if given.target[b, t + 1] != 0]
    torch.testing.assert_close(total, -sum(scores[b, t, given.target[b, t + 1]] for b, t in real))
    assert count == len(real)
    if not copying:
        smooth = -sum(0.9 * scores[b, t, given.target[b, t + 1]] + 0.1 * scores[b, t].mean() for b, t in real)
        torch.testing.assert_close(net.loss(given, padding=0, smoothing=0.1)[0], smooth)


def test_a_decoder_refuses_positions_that_need_the_future() -> None:
    dims = CONFIG.dims("decoder")
    position = MODELS["t5"](dims, encoding=Backwards())
    with pytest.raises(PositionError, match=r"a decoder cannot use encoding 'offset'.*not yet written"):
        EncoderDecoder(CONFIG, 30, MODELS["sinusoidal"](CONFIG.dims("encoder")), position)


def test_unknown_convolution_names_the_known_ones() -> None:
    known = r"^model.message_passing: there is no convolution named 'gpt'.* gatedgcn, gatv2, gcn, gin, .*; or null"
    with pytest.raises(ConfigError, match=known):
        model(message_passing="gpt")


def test_the_activation_is_between_the_two_maps() -> None:
    """x Phi(x) by the error function of Python, number by number."""
    functions = {"relu": lambda z: max(z, 0.0), "gelu": lambda z: z * (1 + math.erf(z / math.sqrt(2))) / 2}
    x = torch.linspace(-3, 3, 80, dtype=torch.float64).view(5, 16)
    for activation, function in functions.items():
        net = model(activation=activation)
        for part in (net.encoder.layers[1].feedforward, net.decoder.stack.layers[0].feedforward):
            hidden = torch.tensor([[function(z) for z in row] for row in part[0](x).tolist()], dtype=torch.float64)
            torch.testing.assert_close(part(x), part[-1](hidden))


def test_dropouts_that_are_not_given_are_the_one_that_is() -> None:
    for side in ("encoder", "decoder"):
        stack = dataclasses.replace(CONFIG, dropout=0.2).stack(side)
        assert (stack.dropout, stack.attention.dropout, stack.input_dropout) == (0.2, 0.2, 0.2)
        stack = dataclasses.replace(CONFIG, dropout=0.2, attention_dropout=0.3, input_dropout=0.0).stack(side)
        assert (stack.dropout, stack.attention.dropout, stack.input_dropout) == (0.2, 0.3, 0.0)
    with pytest.raises(ConfigError, match=r"^model\.attention_dropout is 1\.0; it must be 0 or more and below 1$"):
        dataclasses.replace(CONFIG, attention_dropout=1.0)


def test_reading_and_writing_share_one_embedding() -> None:
    """A unit more costs d numbers, where an output of its own would cost 2 d."""
    dims = CONFIG.dims("encoder")
    sizes = [
        sum(p.numel() for p in EncoderDecoder(CONFIG, units, MODELS["t5"](dims), MODELS["nope"](dims)).parameters())
        for units in (30, 31)
    ]
    assert sizes[1] - sizes[0] == CONFIG.width


def test_every_parameter_gets_a_gradient() -> None:
    net = model(message_passing="gine", copy_units=True)
    given = batch(GRAPHS, net.encoder.position)
    net.loss(given, padding=0, smoothing=0.1)[0].backward()
    # The keys' bias moves all scores of a query alike, so softmax gives it no gradient; of the copy's too.
    silent = [n for n, p in net.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
    assert [n for n in silent if n != "copy.key.bias"] == []


def test_a_decoder_refuses_a_model_that_asks_keys_about_queries() -> None:
    dims = CONFIG.dims("decoder")
    position = Sum(dims, [MODELS["t5"](dims), MODELS["graformer"](dims)])
    with pytest.raises(PositionError, match=r"a decoder cannot use position model 'graformer': it depends on units"):
        EncoderDecoder(CONFIG, 30, MODELS["sinusoidal"](CONFIG.dims("encoder")), position)


def test_a_decoder_follows_its_model_to_another_device() -> None:
    """The positions that it keeps are those of the device that it last ran on."""
    net = model()
    net.step(torch.tensor([[2, 7]]), net.start(batch(GRAPHS[:1], net.encoder.position)))
    there = net.decoder._path(2, torch.device("meta"), 1)
    assert all(p.rows.device.type == "meta" for p in there.values())
    assert all(p.rows.device.type == "cpu" for p in net.decoder._path(2, torch.device("cpu"), 1).values())


@pytest.mark.parametrize(
    ("convolution", "after", "expected"),
    [("gcn", "auto", nn.GELU), ("gcn", "relu", nn.ReLU), ("gine", "auto", nn.Identity), ("gine", "gelu", nn.GELU)],
)
def test_the_activation_after_the_convolution_of_an_encoder(convolution: str, after: str, expected: type) -> None:
    net = model(message_passing=convolution, activation="gelu", message_activation=after)
    assert [type(layer.activation) for layer in net.encoder.layers] == [expected] * 2
