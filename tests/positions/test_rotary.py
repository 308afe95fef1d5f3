"""Rotary positions: the authors' numbers in both layouts, and their laws."""

from __future__ import annotations

import pytest
import torch

from structpe.encodings.laplacian import Laplacian
from structpe.errors import PositionError
from structpe.positions import MODELS, Dims, Site
from structpe.positions.batch import encode
from structpe.positions.rotary import Rotary, RotaryHalf, RotaryModel
from structpe.structure import path
from tests.golden import golden

DIMS = Dims(16, 2, 1)
LAYOUTS = {"interleaved": Rotary, "half": RotaryHalf}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_peers_numbers(layout: str) -> None:
    given = golden("rope")
    model = LAYOUTS[layout](DIMS)
    prepared = model.prepare(encode([path(["w"] * given.cfg["L"])], model.encodings))
    (turn,) = model.terms(prepared, Site(0)).maps
    for mine, theirs in zip(turn(given["in.q"], given["in.k"]), "qk", strict=True):
        torch.testing.assert_close(mine, given[f"out.{theirs}_{layout}"], rtol=0, atol=1e-5)


def test_the_layouts_differ_by_a_permutation_of_channels() -> None:
    positions = encode([path(["w"] * 9)], Rotary(DIMS).encodings)
    q, k = torch.randn(2, 1, 2, 9, 8, dtype=torch.float64)
    pairs = torch.tensor([0, 2, 4, 6, 1, 3, 5, 7])
    (one,), (other,) = (m.terms(m.prepare(positions), Site(0)).maps for m in (Rotary(DIMS), RotaryHalf(DIMS)))
    for a, b in zip(one(q, k), other(q[..., pairs], k[..., pairs]), strict=True):
        torch.testing.assert_close(a[..., pairs], b, rtol=0, atol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_cosines_and_sines_turn_as_the_map_does(layout: str) -> None:
    model = LAYOUTS[layout](DIMS)
    positions = encode([path(["w"] * 9)], model.encodings)
    (turn,) = model.terms(model.prepare(positions), Site(0)).maps
    cos, sin = model.cos_sin(positions)
    q = torch.randn(1, 2, 9, 8, dtype=torch.float64)
    first, second = (q[..., ::2], q[..., 1::2]) if layout == "interleaved" else q.chunk(2, -1)
    turned = turn(q, q)[0]
    mine = (turned[..., ::2], turned[..., 1::2]) if layout == "interleaved" else turned.chunk(2, -1)
    torch.testing.assert_close(mine[0], first * cos - second * sin)
    torch.testing.assert_close(mine[1], first * sin + second * cos)
    angles = torch.arange(9.0, dtype=torch.float64)[:, None] * model.inverse_frequencies()
    torch.testing.assert_close(cos[0], angles.cos())


def test_cosines_and_sines_are_those_of_hugging_face() -> None:
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    model = RotaryHalf(DIMS)
    theirs = LlamaRotaryEmbedding(LlamaConfig(hidden_size=16, num_attention_heads=2))
    mine = model.cos_sin(encode([path(["w"] * 9)], model.encodings))
    for one, other in zip(mine, theirs(torch.zeros(1), torch.arange(9)[None]), strict=True):
        torch.testing.assert_close(torch.cat([one, one], -1).float(), other, atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", ["yarn", "longrope", "axial-rotary", "dynamic-ntk", "xpos"])
def test_the_scalings_say_their_cosines_or_why_not(name: str) -> None:
    model = MODELS[name](Dims(16, 2, 1))
    assert isinstance(model, RotaryModel)
    positions = encode([path(["w"] * 9)], model.encodings)
    if name == "xpos":
        with pytest.raises(PositionError, match=r"'xpos' turns queries and keys differently.* apply the maps"):
            model.cos_sin(positions)
        return
    cos, sin = model.cos_sin(positions)
    assert cos.shape == sin.shape == (1, 9, 4)
    (turn,) = model.terms(model.prepare(positions), Site(0)).maps
    q = torch.randn(1, 2, 9, 8, dtype=torch.float64)
    torch.testing.assert_close(
        turn(q, q)[0].norm(dim=-1), (cos.square() + sin.square()).sqrt()[..., 0] * q.norm(dim=-1)
    )


def test_a_step_of_a_decoder_has_no_one_cosine() -> None:
    model = Rotary(DIMS)
    with pytest.raises(PositionError, match="turns queries and keys differently"):
        model.cos_sin(encode([path(["w"] * 9)], model.encodings).step(8, 9))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_lengths_stay(layout: str) -> None:
    model = LAYOUTS[layout](DIMS)
    (turn,) = model.terms(model.prepare(encode([path(["w"] * 9)], model.encodings)), Site(0)).maps
    q, k = torch.randn(2, 1, 2, 9, 8, dtype=torch.float64)
    torch.testing.assert_close(turn(q, k)[0].norm(dim=-1), q.norm(dim=-1))


def test_an_odd_head_is_refused() -> None:
    with pytest.raises(PositionError, match=r"the width of a head must be even; it is 6 / 2 = 3"):
        Rotary(Dims(6, 2, 1))


def test_a_vector_per_unit_is_refused() -> None:
    model = Rotary(DIMS, encoding=Laplacian(k=3))
    positions = encode([path(["w"] * 4)], model.encodings)
    with pytest.raises(PositionError, match=r"needs one number per unit \(.*\); 'laplacian' gives \(3,\)"):
        model.prepare(positions)
