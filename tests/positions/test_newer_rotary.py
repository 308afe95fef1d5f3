"""Rotary positions of Llama 3, of several axes, with learned frequencies and on a part of the channels; FIRE."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import structpe
from structpe.encodings import Depth, Laplacian, Order
from structpe.encodings.coordinates import Coordinates
from structpe.errors import PositionError
from structpe.positions import MODELS, Dims, PositionModel, Site
from structpe.positions.batch import encode
from structpe.positions.decay import FIRE
from structpe.positions.rotary import Rotary, RotaryHalf
from structpe.positions.rotary_axes import WIRE, MixedRotary, MRoPE
from structpe.positions.rotary_scaled import Llama3
from structpe.structure import Structure, path
from tests.positions.cases import TREES, Around, encoded, noise


def turned(model: PositionModel, structure: Structure, x: Tensor, layer: int = 0) -> Tensor:
    """(h, n, d_h) what becomes of queries (h, n, d_h)."""
    prepared = model.prepare(encode([structure], model.encodings))
    (turn,) = model.terms(prepared, Site(layer)).maps
    queries, keys = turn(x[None], x[None])
    assert torch.equal(queries, keys)
    return queries[0]


def rotate_half(x: Tensor) -> Tensor:
    """Hugging Face's, as in its models."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat([-second, first], dim=-1)


@pytest.mark.parametrize(("width", "scale", "trained"), [(64, 8.0, 8192), (16, 2.0, 64), (128, 32.0, 8192)])
def test_llama3_is_that_of_hugging_face(width: int, scale: float, trained: int) -> None:
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    config = LlamaConfig(
        hidden_size=width,
        num_attention_heads=1,
        rope_parameters={
            "rope_type": "llama3",
            "rope_theta": 500_000.0,
            "factor": scale,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": trained,
        },
    )
    theirs, length = ROPE_INIT_FUNCTIONS["llama3"](config, torch.device("cpu"))
    assert length == 1
    mine = Llama3(Dims(width, 1, 1), scale=scale, original_length=trained).inverse_frequencies()
    torch.testing.assert_close(mine.float(), theirs, rtol=1e-5, atol=0)


def test_llama3_that_is_no_longer_changes_nothing() -> None:
    x = noise(1, 9, 8)
    same = RotaryHalf(Dims(8, 1, 1), base=500_000.0)
    torch.testing.assert_close(
        turned(Llama3(Dims(8, 1, 1), scale=1.0), path("abcdefghi"), x), turned(same, path("abcdefghi"), x)
    )
    with pytest.raises(PositionError, match=r"takes a fast above slow; given are 1.0 and 1.0"):
        Llama3(Dims(8, 1, 1), fast=1.0)


def test_the_sections_of_mrope_are_those_of_hugging_face() -> None:
    """Their tables: the sections of the frequencies, twice, each with the angles of its axis."""
    width, sections = 16, (2, 3, 3)
    places = torch.tensor([[0, 1, 2, 2, 2, 3], [0, 1, 5, 6, 7, 3], [0, 1, 0, 1, 4, 3]])
    frequencies = 1.0 / (10000.0 ** (torch.arange(0, width, 2, dtype=torch.float64) / width))
    angles = places[..., None] * frequencies
    angles = torch.cat([angles, angles], dim=-1)
    chosen = torch.cat([m[i % 3] for i, m in enumerate(angles.split(sections * 2, dim=-1))], dim=-1)
    x = noise(1, 6, width)
    theirs = x * chosen.cos() + rotate_half(x) * chosen.sin()
    structure = Structure(("a",) * 6, [], features={f"axis{a}": places[a].numpy() for a in range(3)})
    axes = tuple(structpe.encodings.Feature(f"axis{a}") for a in range(3))
    mine = turned(MRoPE(Dims(width, 1, 1), axes, sections), structure, x)
    torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-12)


def test_mrope_of_equal_axes_is_rotary() -> None:
    x, text = noise(2, 7, 6), path("abcdefg")
    mine = turned(MRoPE(Dims(12, 2, 1), (Order(), Order())), text, x)
    torch.testing.assert_close(mine, turned(RotaryHalf(Dims(12, 2, 1)), text, x), rtol=0, atol=1e-12)


def test_depth_is_an_axis() -> None:
    """Units of one place and another depth are turned differently, by the second half of the pairs only."""
    model, x = MRoPE(Dims(8, 1, 1)), torch.ones(1, TREES[0].unit_count, 8, dtype=torch.float64)
    found = turned(model, TREES[0], x)[0]
    place, depth = (encoding.one(TREES[0]).values for encoding in (Order(), Depth()))
    frequencies = 10000.0 ** (-2 * np.arange(4) / 8)
    for u in range(TREES[0].unit_count):
        for pair in range(4):
            angle = float((place if pair < 2 else depth)[u] * frequencies[pair])
            assert found[u, pair].item() == pytest.approx(math.cos(angle) - math.sin(angle), abs=1e-12)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"sections": (1, 2)},
            r"has 4 pairs of channels in a head and 2 axes; sections are \[1, 2\], give 2 whole num",
        ),
        ({"sections": (1, 1, 2)}, "give 2 whole numbers whose sum is 4"),
        ({"sections": (5, -1)}, "give 2 whole numbers whose sum is 4"),
        ({"encodings": ()}, "needs an axis; give an encoding or several"),
    ],
)
def test_sections_that_do_not_fit_are_refused(options: dict, text: str) -> None:
    with pytest.raises(PositionError, match=text):
        MRoPE(Dims(8, 1, 1), **options)


def grid(height: int, width: int) -> Structure:
    places = np.array([(y, x) for y in range(height) for x in range(width)])
    return Structure(("p",) * len(places), [], features={"coordinates": places}, directed=False)


@pytest.mark.parametrize("head", [4, 6, 8])
def test_mixed_rotary_is_a_literal_loop(head: int) -> None:
    torch.manual_seed(0)
    model, image = MixedRotary(Dims(2 * head, 2, 3)).double(), grid(3, 4)
    x = noise(2, 12, head)
    for layer in range(3):
        found = turned(model, image, x, layer)
        for h in range(2):
            for u, (row, column) in enumerate(image.features["coordinates"].tolist()):
                for i in range(head // 2):
                    v = model.frequencies[layer, h, i].tolist()
                    angle = v[0] * row + v[1] * column
                    a, b = x[h, u, 2 * i].item(), x[h, u, 2 * i + 1].item()
                    wanted = (a * math.cos(angle) - b * math.sin(angle), a * math.sin(angle) + b * math.cos(angle))
                    assert found[h, u, 2 * i : 2 * i + 2].tolist() == pytest.approx(wanted, abs=1e-12)


def test_mixed_rotary_starts_as_its_authors() -> None:
    """Lengths base^(-4i/d_h), twice; the second half at right angles to the first; a direction per layer and head."""
    torch.manual_seed(3)
    v = MixedRotary(Dims(32, 2, 3)).frequencies.detach().double()  # (l, h, 8, 2) of (y, x)
    length = v.norm(dim=-1)
    torch.testing.assert_close(
        length, (10.0 ** (-4 * torch.arange(4).double() / 16)).repeat(2).expand(3, 2, 8), rtol=1e-5, atol=0
    )
    first, second = v[..., :4, :], v[..., 4:, :]
    assert (first * second).sum(-1).abs().max() < 1e-6
    directions = torch.atan2(first[..., 0], first[..., 1])
    torch.testing.assert_close(directions, directions[..., :1].expand_as(directions), rtol=0, atol=1e-5)
    assert len({round(float(each), 4) for each in directions[..., 0].flatten()}) == 6


def test_a_class_token_is_not_turned() -> None:
    image = grid(2, 2)
    places = np.concatenate([[[-1, -1]], image.features["coordinates"]])
    with_token = Structure(("c", *image.nodes), [], features={"coordinates": places}, directed=False)
    model, x = MixedRotary(Dims(8, 1, 1)).double(), noise(1, 5, 8)
    found = turned(model, with_token, x)
    assert torch.equal(found[:, 0], x[:, 0])
    torch.testing.assert_close(found[:, 1:], turned(model, image, x[:, 1:]))


def test_wire_is_a_literal_loop() -> None:
    torch.manual_seed(0)
    model = WIRE(Dims(12, 2, 2), Laplacian(k=3)).double()
    tree, x = TREES[0], noise(2, TREES[0].unit_count, 6)
    vectors = Laplacian(k=3).one(tree).values.astype(np.float64)
    for layer in range(2):
        found = turned(model, tree, x, layer)
        for h in range(2):
            for u in range(tree.unit_count):
                for i in range(3):
                    angle = float(vectors[u] @ model.frequencies[layer, h, i].detach().numpy())
                    a, b = x[h, u, 2 * i].item(), x[h, u, 2 * i + 1].item()
                    wanted = (a * math.cos(angle) - b * math.sin(angle), a * math.sin(angle) + b * math.cos(angle))
                    assert found[h, u, 2 * i : 2 * i + 2].tolist() == pytest.approx(wanted, abs=1e-6)


def test_wire_of_coordinates_is_rotary() -> None:
    """With the frequencies of one axis, as the paper says of grids."""
    model, x = WIRE(Dims(8, 1, 1), Coordinates()).double(), noise(1, 5, 8)
    frequencies = Rotary(Dims(8, 1, 1)).inverse_frequencies()
    model.frequencies.data = torch.stack([torch.zeros(4), frequencies], dim=-1)[None, None].double()
    found = turned(model, grid(1, 5), x)
    torch.testing.assert_close(found, turned(Rotary(Dims(8, 1, 1)), path("abcde"), x), rtol=0, atol=1e-12)


def test_numbers_instead_of_vectors_are_refused() -> None:
    with pytest.raises(PositionError, match=r"needs a vector per unit .* 'order' gives one number"):
        WIRE(Dims(8, 1, 1), Order())
    with pytest.raises(PositionError, match="'mixed-rotary' needs 2 numbers per unit; 'order' gives one"):
        turned(MixedRotary(Dims(8, 1, 1), Order()), path("ab"), noise(1, 2, 8))


@pytest.mark.parametrize("fraction", [0.25, 0.5, 1.0])
def test_a_part_of_the_channels_is_turned_as_in_gpt_neox(fraction: float) -> None:
    """Their way: cos and sin of the width that is turned, the rest passed through."""
    width, n = 16, 5
    part = int(width * fraction)
    frequencies = 1.0 / (10000.0 ** (torch.arange(0, part, 2, dtype=torch.float64) / part))
    angles = torch.arange(n)[:, None] * frequencies
    angles = torch.cat([angles, angles], dim=-1)
    x = noise(1, n, width)
    theirs = torch.cat(
        [x[..., :part] * angles.cos() + rotate_half(x[..., :part]) * angles.sin(), x[..., part:]], dim=-1
    )
    mine = turned(RotaryHalf(Dims(width, 1, 1), fraction=fraction), path("abcde"), x)
    torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-12)


def test_a_part_of_neighbouring_channels() -> None:
    x = noise(1, 5, 12)
    mine = turned(Rotary(Dims(12, 1, 1), fraction=0.5), path("abcde"), x)
    whole = turned(Rotary(Dims(6, 1, 1)), path("abcde"), x[..., :6])
    torch.testing.assert_close(mine, torch.cat([whole, x[..., 6:]], dim=-1), rtol=0, atol=0)


@pytest.mark.parametrize("fraction", [0.0, 1.5, 0.2])
def test_a_fraction_without_a_pair_is_refused(fraction: float) -> None:
    with pytest.raises(PositionError, match=f"turns a fraction {fraction} of the 8 channels of a head; give a number"):
        Rotary(Dims(8, 1, 1), fraction=fraction)


class Theirs(nn.Module):
    """FIRE as its paper prints it, for causal attention over 0, 1, ..., n - 1."""

    def __init__(self, heads: int, width: int) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(1, width), nn.ReLU(), nn.Linear(width, heads))
        self.c, self.multiplier, self.start = 0.1, 1.0, 512.0

    def forward(self, n: int) -> Tensor:
        places = torch.arange(n, dtype=torch.float64)
        distance = places[:, None] - places[None, :]
        normalizer = torch.maximum(places, torch.tensor(abs(self.multiplier * self.start)).double())[:, None]
        distance = torch.log(abs(self.c * distance) + 1)
        normalizer = torch.log(abs(self.c * normalizer) + 1) + 1e-6
        return self.mlp((distance / normalizer)[..., None]).permute(2, 0, 1)


@pytest.mark.parametrize("threshold", [512.0, 4.0])
def test_fire_is_what_its_paper_prints(threshold: float) -> None:
    torch.manual_seed(0)
    model, theirs = FIRE(Dims(8, 2, 2), threshold=threshold).double(), Theirs(2, 32).double()
    theirs.start, theirs.c = threshold, 0.3
    model.slope.data[:] = -0.3
    model.networks[1].load_state_dict(theirs.mlp.state_dict())
    prepared = model.prepare(encode([path("abcdefghij")], model.encodings))
    (bias,) = model.terms(prepared, Site(1)).bias
    torch.testing.assert_close(bias[0], theirs(10), rtol=0, atol=1e-12)


def test_fire_may_be_shared() -> None:
    model = FIRE(Dims(8, 2, 3), shared=True).double()
    assert model.claimed_params() == sum(p.numel() for p in model.parameters()) == 32 * 2 + 32 * 2 + 2 + 2
    prepared = model.prepare(encode([path("abcd")], model.encodings))
    first, last = (model.terms(prepared, Site(layer)).bias[0] for layer in (0, 2))
    assert torch.equal(first, last)


@pytest.mark.parametrize("name", ["fire", "mrope", "llama3"])
def test_a_step_is_the_last_row(name: str) -> None:
    model = MODELS[name](Dims(8, 2, 2)).double().eval()
    x = noise(2, 6, 8)
    around, positions = Around(model), encoded(model, [path("abcdef"), path("ghijkl")])
    mask = torch.ones(6, 6, dtype=torch.bool).tril()[None, None]
    torch.testing.assert_close(around.steps(positions, x), around(positions, x, mask), rtol=0, atol=1e-12)
