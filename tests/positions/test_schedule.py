"""Position models in some layers only: what each layer gets, what it costs, and schedules as plain data."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from structpe.data.batch import Example, collate
from structpe.errors import PositionError
from structpe.nn.language_model import LanguageModel
from structpe.nn.layer import Attention, Context, OwnAttention, StackConfig
from structpe.nn.stack import Stack
from structpe.positions import Dims, PositionModel, Site, Sources, Sum, build, describe
from structpe.positions.build import fitted
from structpe.structure import path
from structpe.terms import Terms
from tests.positions.cases import TREES, encoded, labelled_path, noise
from tests.together import together

DIMS = Dims(8, 2, 6)
SMOLLM3 = {"cycle": ["rotary", "rotary", "rotary", "nope"]}
GEMMA = {"cycle": [["rotary", {"name": "sliding-window", "encoding": {"name": "window", "max_distance": 2}}], "rotary"]}


def randomised(model: PositionModel) -> PositionModel:
    torch.manual_seed(0)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    return model.double().eval()


def test_a_cycle_gives_each_layer_its_models() -> None:
    model = build(SMOLLM3, DIMS)
    prepared = model.prepare(encoded(model, TREES))
    used = [sorted(model.terms(prepared, Site(layer)).used()) for layer in range(6)]
    assert used == [["maps"], ["maps"], ["maps"], [], ["maps"], ["maps"]]
    model = build(GEMMA, DIMS)
    prepared = model.prepare(encoded(model, TREES))
    used = [sorted(model.terms(prepared, Site(layer)).used()) for layer in range(6)]
    assert used == [["maps", "pairs"], ["maps"]] * 3
    assert describe(model)[0] == describe(build("rotary", DIMS))  # equal members are one model, here in all layers


def test_a_model_in_some_layers_has_numbers_for_these_only_in_order() -> None:
    model = randomised(build({"name": "t5-unshared", "in_layers": [1, 4]}, DIMS))
    (inner,) = model
    assert inner.dims.layers == 2
    assert sum(p.numel() for p in model.parameters()) == model.claimed_params() == inner.claimed_params()
    prepared = model.prepare(encoded(model, TREES))
    for layer in range(6):
        terms = model.terms(prepared, Site(layer))
        if layer in (1, 4):
            (bias,), (own,) = terms.bias, inner.terms(prepared[0], Site((1, 4).index(layer))).bias
            assert torch.equal(bias.table, own.table)
        else:
            assert not terms.used()


def test_sites_before_and_beside_attention_follow_the_schedule_too() -> None:
    x = noise(3, 10, 8)
    model = randomised(build({"name": "universal-sinusoidal", "in_layers": [2]}, Dims(8, 2, 3)))
    prepared = model.prepare(encoded(model, TREES))
    assert model.layer(x, prepared, Site(0)) is x
    assert not torch.equal(model.layer(x, prepared, Site(2)), x)
    model = build({"name": "shortformer", "in_layers": [0]}, Dims(8, 2, 3))
    prepared = model.prepare(encoded(model, TREES))
    given = Sources(x, x, x)
    assert model.sources(given, prepared, Site(1)) is given
    assert not torch.equal(model.sources(given, prepared, Site(0)).key, x)


def test_own_attention_in_some_layers_only() -> None:
    """A decoder with rotary positions and forgetting attention in turn is the two kinds of layer, one after another."""
    position = randomised(build({"cycle": ["forgetting-attention", "rotary"]}, Dims(8, 2, 4)))
    whole = Stack(StackConfig.transformer(position.dims, 12), position).double().eval()
    kinds = [type(layer.attention) for layer in whole.layers]
    assert kinds == [OwnAttention, Attention] * 2
    batch = collate([Example.of(path(["w"] * 5), {e: e.one(path(["w"] * 5)) for e in position.encodings})], "together")
    x = noise(5, 8)
    out = whole(x, batch)
    block, rotary = position
    prepared = block.prepare(encoded(block, [path(["w"] * 5)]))
    alone = Context.of(build("rotary", Dims(8, 2, 1)), batch)
    for number, layer in enumerate(whole.layers):
        read = layer.attention_norm(x)
        if number % 2 == 0:
            x = x + block.attend(read[None], prepared, Site(number // 2), Terms())[0][0]
        else:
            x = x + layer.attention(read, alone, Site(0))
        x = x + layer.feedforward(layer.feedforward_norm(x))
    torch.testing.assert_close(out, whole.norm(x), rtol=0, atol=1e-9)
    assert rotary.dims.layers == 2


@pytest.mark.parametrize(
    "config",
    [
        SMOLLM3,
        GEMMA,
        {"cycle": ["forgetting-attention", "nope", "t5"]},
        ["sinusoidal", {"name": "shaw", "in_layers": [5]}, {"name": "path-attention", "in_layers": [0, 2]}],
    ],
)
def test_a_decoder_writes_with_a_schedule_as_it_reads(config: Any) -> None:
    position = randomised(build(config, DIMS))
    torch.manual_seed(0)
    net = LanguageModel(StackConfig.transformer(DIMS, 12), 7, position).double().eval()
    units = torch.randint(7, (2, 9), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        whole, _ = net(units)
        state = net.start(2)
        steps = torch.cat([net.step(unit, state) for unit in units.split(1, dim=1)], dim=1)
    torch.testing.assert_close(steps, whole, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "config",
    [SMOLLM3, GEMMA, {"name": "t5-unshared", "in_layers": [1, 4]}, ["sinusoidal", {"cycle": ["shaw", "nope"]}]],
)
def test_a_description_builds_the_same_again(config: Any) -> None:
    model = build(config, DIMS)
    described = json.loads(json.dumps(describe(model)))
    again = build(described, DIMS)
    assert describe(again) == described
    assert [p.shape for p in again.parameters()] == [p.shape for p in model.parameters()]
    again.load_state_dict(model.state_dict())


def test_sums_of_schedules_and_labels_of_training_keep_their_layers() -> None:
    one = build({"name": "t5", "in_layers": [0]}, DIMS)
    assert [own["in_layers"] for own in describe(one + one)] == [[0], [0]]
    inner = Sum(Dims(8, 2, 2), [build("shaw", Dims(8, 2, 2)), build("t5", Dims(8, 2, 1))], [None, [1]])
    ((shaw, t5),) = describe(Sum(DIMS, [inner], [[2, 4]]))
    assert (shaw["in_layers"], t5["in_layers"]) == ([2, 4], [4])
    labelled = {"name": "zhu-sum", "in_layers": [3], "encoding": {"name": "label-path", "max_length": 4}}
    ((described),) = fitted(labelled, DIMS, lambda: [labelled_path(4)])
    assert described["in_layers"] == [3]
    assert described["encoding"]["labels"] == ["a"]


@together(
    ("config", "text"),
    [
        ({"name": "t5", "in_layers": 3}, "in_layers is a list of numbers of layers, from 0; given is 3"),
        ({"name": "t5", "in_layers": [0, True]}, r"given is \[0, True\]"),
        (
            {"name": "t5", "in_layers": [6]},
            r"'t5' is to act in layers \[6\]; give some of 0 to 5, each once and in ord",
        ),
        ({"name": "t5", "in_layers": []}, r"'t5' is to act in layers \[\]; give some of 0 to 5"),
        ({"name": "t5", "in_layers": [2, 1]}, r"to act in layers \[2, 1\]"),
        (
            {"name": "sinusoidal", "in_layers": [2]},
            "'sinusoidal' acts at the input only, before all layers; leave in_l",
        ),
        ({"cycle": []}, "a cycle is a mapping with a list of position models, and no other key; given is {'cycle': "),
        ({"cycle": ["t5"], "name": "t5"}, "and no other key"),
        ({"cycle": ["t5"] * 7}, "a cycle of 7 position models has more than the 6 layers of the Transformer; give 6"),
        (
            {"cycle": [{"name": "t5", "in_layers": [1]}]},
            "a member of a cycle has neither in_layers nor a cycle of its own",
        ),
        ({"cycle": [["cope", "path-attention"]]}, "cope and path-attention have their own attention; only one"),
        ({"cycle": ["cope", ["path-attention", "deberta-emd"]]}, "path-attention has its own attention, which ignores"),
    ],
)
def test_schedules_that_cannot_be(config: Any, text: str) -> None:
    with pytest.raises(PositionError, match=text):
        build(config, DIMS)


def test_two_blocks_never_meet_in_a_cycle() -> None:
    assert build({"cycle": ["cope", "path-attention"]}, DIMS).own_attention


@pytest.mark.parametrize("name", ["rwse", "lap-pe", "tupe-a", "floater-input"])
def test_an_option_named_layers_is_no_schedule(name: str) -> None:
    described = describe(build(name, DIMS))
    assert "layers" in described
    assert describe(build(described, DIMS)) == described
    assert describe(build({**described, "layers": 1}, DIMS))["layers"] == 1
