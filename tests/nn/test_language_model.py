"""The decoder without an encoder: nothing flows backwards, and a segment with a memory sees what is before it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from structpe.data.encode import encode
from structpe.errors import PositionError
from structpe.nn.language_model import LanguageModel
from structpe.nn.layers import LayerConfig
from structpe.positions import MODELS, Block, Cells, Dims, PositionModel, Positions, Site, Spec, build
from structpe.structure import path
from structpe.terms import Terms

DIMS = Dims(16, 2, 2)


def model(position: str | PositionModel) -> LanguageModel:
    torch.manual_seed(0)
    position = build(position, DIMS) if isinstance(position, str) else position
    return LanguageModel(LayerConfig(DIMS, 32), 11, position).double().eval()


def places(net: LanguageModel, n: int) -> Positions:
    return encode([path(["w"] * n)], net.layers.position.encodings)


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
    net = LanguageModel(LayerConfig(dims, 32), 11, build(position, dims)).double().eval()
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
    assert all(layer.attention is None for layer in net.layers.layers)
    _, memory = net(units(4), places(net, 4))
    with pytest.raises(PositionError, match="a position model with an attention of its own has no memory"):
        net(units(4), places(net, 8).step(4, 8), memory)


def test_two_attentions_of_their_own_are_refused(own: PositionModel) -> None:
    with pytest.raises(PositionError, match="each bring an attention of their own; only one of a sum may"):
        own + own
