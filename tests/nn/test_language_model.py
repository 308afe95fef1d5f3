"""The decoder without an encoder: nothing flows backwards, and a segment with a memory sees what is before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from structpe.errors import ConfigError, PositionError
from structpe.nn.language_model import LanguageModel
from structpe.nn.layer import OwnAttention, StackConfig
from structpe.positions import MODELS, Block, Cells, Dims, PositionModel, Positions, Site, Spec, build
from structpe.positions.batch import encode
from structpe.structure import path
from structpe.terms import Terms

DIMS = Dims(16, 2, 2)


PADDED = [
    "rotary",
    "t5",
    "sinusoidal",
    "cape",
    "rwse",
    "sliding-window",
    "rnn",
    "graformer",
    "swin",
    "nope",
    "dufter-abs",
]


def small(dims: Dims) -> StackConfig:
    options: dict[str, Any] = {"message_passing": None, "feedforward": 32, "norm": "layer", "norm_first": True}
    return StackConfig(dims.width, dims.layers, dims.heads, **options)


def model(position: str | PositionModel) -> LanguageModel:
    torch.manual_seed(0)
    position = build(position, DIMS) if isinstance(position, str) else position
    return LanguageModel(small(DIMS), 11, position).double().eval()


def places(net: LanguageModel, n: int) -> Positions:
    return encode([path(["w"] * n)], net.decoder.position.encodings)


def units(n: int, seed: int = 0) -> Tensor:
    return torch.randint(11, (2, n), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("position", ["alibi", "rotary", "t5", "shaw", "sinusoidal"])
def test_what_comes_later_changes_nothing(position: str) -> None:
    net = model(position)
    text, other = units(9), units(9)
    other[:, 6:] = (other[:, 6:] + 1) % 11
    here, there = (net(of, places(net, 9))[0] for of in (text, other))
    torch.testing.assert_close(here[:, :6], there[:, :6], rtol=0, atol=1e-12)
    assert not torch.allclose(here[:, 6:], there[:, 6:], atol=1e-3)


def test_it_gives_probabilities() -> None:
    net = model("rotary")
    torch.testing.assert_close(net(units(5), places(net, 5))[0].exp().sum(-1), torch.ones(2, 5).double())


@pytest.mark.parametrize("position", ["alibi", "rotary", "t5", "shaw"])
def test_a_second_segment_is_the_second_half_of_one(position: str) -> None:
    """For one layer: in deeper ones the memory has not seen what a whole text has, nor has it in Transformer-XL."""
    dims = Dims(16, 2, 1)
    torch.manual_seed(0)
    net = LanguageModel(small(dims), 11, build(position, dims)).double().eval()
    text, positions = units(10), places(net, 10)
    whole, _ = net(text, positions)
    first, memory = net(text[:, :5], positions.step(0, 5))
    second, _ = net(text[:, 5:], positions.step(5, 10), memory)
    torch.testing.assert_close(torch.cat([first, second], dim=1), whole, rtol=0, atol=1e-9)
    assert not memory[0].requires_grad


@pytest.fixture
def own() -> Iterator[PositionModel]:
    """A block that adds nothing, in the registry for a while."""

    class Own(Block, name="own-attention-of-a-test"):
        spec = Spec("x", "sequence", Cells("R", "-", learnable=False, recurring=False, unbound=True, params="0"))

        def __init__(self, dims: Dims) -> None:
            super().__init__(dims, [])

        def attend(self, x: Tensor, prepared: Positions, site: Site, terms: Terms) -> tuple[Tensor, Positions]:
            return torch.zeros_like(x), prepared

    yield Own(DIMS)
    MODELS.forget(Own.name)


def test_an_attention_of_its_own_has_no_memory(own: PositionModel) -> None:
    net = model(own)
    assert all(isinstance(layer.attention, OwnAttention) for layer in net.decoder.stack.layers)
    _, memory = net(units(4), places(net, 4))
    with pytest.raises(PositionError, match="a position model with its own attention cannot read earlier segments"):
        net(units(4), places(net, 8).step(4, 8), memory)


def test_two_attentions_of_their_own_are_refused(own: PositionModel) -> None:
    with pytest.raises(PositionError, match="have their own attention; only one model of a sum may"):
        own + own


@pytest.mark.parametrize("position", ["alibi", "rotary", "t5", "shaw", "sinusoidal", "learned", "graformer-survey"])
def test_it_makes_positions_of_texts_itself(position: str) -> None:
    net = model(position)
    torch.testing.assert_close(net(units(9))[0], net(units(9), places(net, 9))[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("position", ["rotary", "t5", "sinusoidal", "transformer-xl"])
def test_made_positions_go_on_after_a_memory(position: str) -> None:
    net = model(position)
    whole = places(net, 10)
    _, memory = net(units(10)[:, :6], whole.step(0, 6))
    here, there = net(units(10)[:, 6:], None, memory)[0], net(units(10)[:, 6:], whole.step(6, 10), memory)[0]
    torch.testing.assert_close(here, there, rtol=0, atol=1e-12)


@pytest.mark.parametrize("position", PADDED)
def test_a_padded_text_is_as_alone(position: str) -> None:
    net = model(position)
    text = units(9)
    padded = net(text, lengths=torch.tensor([9, 4]))[0]
    torch.testing.assert_close(padded[1:, :4], net(text[1:, :4])[0], rtol=0, atol=1e-12)
    torch.testing.assert_close(padded[:1], net(text[:1])[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("given", "named", "message"),
    [
        (torch.tensor([[1, 11]]), {}, r"ids are 1..11, and the vocabulary has 11 units, 0..10"),
        (torch.tensor([[-1, 3]]), {}, r"ids are -1..3, and the vocabulary has 11 units"),
        (torch.tensor([1, 2]), {}, r"takes ids \(b, n\), whole numbers; given is shape \(2,\) of torch.int64"),
        (torch.tensor([[1.0]]), {}, r"takes ids \(b, n\), whole numbers; given is shape \(1, 1\) of torch.float32"),
        (torch.zeros(2, 0, dtype=torch.long), {}, r"given is shape \(2, 0\)"),
        (units(4), {"lengths": torch.tensor([4])}, r"lengths are \[4\] for ids \(2, 4\); give 2 of them, each 1 to 4"),
        (units(4), {"lengths": torch.tensor([4, 5])}, r"lengths are \[4, 5\] for ids \(2, 4\)"),
        (units(4), {"lengths": torch.tensor([4, 0])}, r"lengths are \[4, 0\] for ids \(2, 4\)"),
        (units(4), {"lengths": torch.tensor([3, 2])}, r"the longest text has 3 units, .*; cut them to \(2, 3\)"),
    ],
)
def test_ids_and_lengths_that_do_not_fit_are_refused(given: Tensor, named: dict[str, Tensor], message: str) -> None:
    with pytest.raises(PositionError, match=message):
        model("rotary")(given, **named)


def test_what_goes_not_together_is_said() -> None:
    net = model("rotary")
    with pytest.raises(PositionError, match="lengths and positions cannot be combined"):
        net(units(4), places(net, 4), lengths=torch.tensor([4, 3]))
    _, memory = net(units(4))
    with pytest.raises(PositionError, match="lengths and memory cannot be combined"):
        net(units(4), None, memory, torch.tensor([4, 3]))


def test_a_model_that_needs_more_than_order_says_what_to_give() -> None:
    net = model("zhu-feature")
    with pytest.raises(
        PositionError,
        match=r"cannot be computed from the order of the units alone: .*; give positions = structpe.encode\(structures",
    ):
        net(units(4))


@pytest.mark.parametrize("size", [0, -3])
def test_a_vocabulary_has_units(size: int) -> None:
    with pytest.raises(ConfigError, match=rf"the vocabulary has {size} units; give 1 or more"):
        LanguageModel(small(DIMS), size, build("rotary", DIMS))


@pytest.mark.parametrize("position", ["rotary", "t5", "sinusoidal"])
def test_steps_with_a_cache_are_the_whole_text(position: str) -> None:
    net, text = model(position), units(7)
    whole, _ = net(text)
    state = net.start(2)
    for place in range(7):
        torch.testing.assert_close(
            net.step(text[:, place : place + 1], state)[:, 0], whole[:, place], rtol=0, atol=1e-9
        )


def test_what_depends_on_the_future_writes_no_text() -> None:
    with pytest.raises(PositionError, match=r"a decoder cannot use position model 'graformer': it depends on units"):
        model("graformer").start(1)
