"""Rotary positions as independent choices: old names are points of the space, and choices combine as loops say."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from structpe.encodings import Depth, Order, Remaining
from structpe.errors import PositionError
from structpe.formats import tree
from structpe.positions import MODELS, Dims, PositionModel, Site
from structpe.positions.batch import encode
from structpe.positions.build import build, describe
from structpe.positions.rotary import RotaryModel
from structpe.structure import path
from tests.together import together

SCALED = sorted(name for name, model in MODELS.items() if issubclass(model, RotaryModel) and model.scales)
SENTENCE = tree(["the", "keeper", "of", "the", "old", "lamp", "lit", "it", "again"], [2, 7, 2, 6, 6, 3, 0, 7, 7])
TEXTS = [path(["w"] * 40), SENTENCE, path(["w"] * 3)]


def turned(model: PositionModel, structures: list[Any] = TEXTS, width: int = 16) -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    n = max(each.unit_count for each in structures)
    q, k = torch.randn(2, len(structures), 2, n, width, dtype=torch.float64)
    (turn,) = model.terms(model.prepare(encode(structures, model.encodings)), Site(0)).maps
    both: tuple[Tensor, Tensor] = turn(q, k)
    return both


def same(one: dict[str, Any], other: dict[str, Any], dims: Dims = Dims(32, 2, 1)) -> None:
    for a, b in zip(turned(build(one, dims)), turned(build(other, dims)), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("name", SCALED)
def test_the_name_of_scaled_frequencies_is_a_point(name: str) -> None:
    options: dict[str, Any] = (
        {} if name in ("ntk-aware", "position-interpolation", "p-rope") else {"original_length": 20}
    )
    options |= {"scale": 3.0} if "scale" in build(name, Dims(32, 2, 1)).options() else {}
    same(
        {"name": name, "base": 500.0, **options},
        {"name": "rotary", "layout": "halves", "base": 500.0, "frequencies": {"name": name, **options}},
    )


def test_rotary_half_and_mrope_are_points() -> None:
    same({"name": "rotary-half", "fraction": 0.5}, {"name": "rotary", "layout": "halves", "fraction": 0.5})
    axes = {"axes": ["order", "remaining"], "sections": [5, 3]}
    same(
        {"name": "mrope", "encodings": ["order", "remaining"], "sections": [5, 3], "base": 70.0},
        {"name": "rotary", "layout": "halves", "base": 70.0, **axes},
    )


@pytest.mark.parametrize("name", [*SCALED, "plain"])
def test_of_a_part_of_the_channels_exponents_belong_to_the_part(name: str) -> None:
    """As a head of that width, beside channels that stay."""
    part = turned(build({"name": "rotary", "frequencies": name, "fraction": 0.5}, Dims(32, 2, 1)))
    alone = build({"name": "rotary", "frequencies": name}, Dims(16, 2, 1))
    torch.manual_seed(0)
    q, k = torch.randn(2, 3, 2, 40, 16, dtype=torch.float64)
    (turn,) = alone.terms(alone.prepare(encode(TEXTS, alone.encodings)), Site(0)).maps
    for whole, own, given in zip(part, turn(q[..., :8], k[..., :8]), (q, k), strict=True):
        assert torch.equal(whole[..., :8], own)
        assert torch.equal(whole[..., 8:], given[..., 8:])


@together("order", ["sections", "interleaved"])
@together("layout", ["pairs", "halves"])
@together("sections", [[4, 2, 2], [6, 1, 1], [3, 3, 2]])
def test_axes_share_out_the_pairs(order: str, layout: str, sections: list[int]) -> None:
    """Pair by pair: the interleaved order as the code of Qwen3-VL has it."""
    axes = [Order(), Depth(), Remaining()]
    config = {"name": "rotary", "axes": [each.name for each in axes], "sections": sections, "order": order}
    model = build({**config, "layout": layout, "base": 300.0}, Dims(32, 2, 1))
    of = [0] * 8
    if order == "sections":
        of = [0] * sections[0] + [1] * sections[1] + [2] * sections[2]
    else:
        for axis in (1, 2):
            for pair in range(axis, sections[axis] * 3, 3):
                of[pair] = axis
    places = [encode([SENTENCE], [axis])[axis][0].tolist() for axis in axes]
    torch.manual_seed(0)
    q, _ = torch.randn(2, 1, 2, 9, 16, dtype=torch.float64)
    mine, _ = turned(model, [SENTENCE])
    for unit in range(9):
        for pair in range(8):
            angle = places[of[pair]][unit] * 300.0 ** (-pair / 8)
            a, b = (2 * pair, 2 * pair + 1) if layout == "pairs" else (pair, pair + 8)
            x, y = q[0, :, unit, a], q[0, :, unit, b]
            torch.testing.assert_close(mine[0, :, unit, a], x * math.cos(angle) - y * math.sin(angle))
            torch.testing.assert_close(mine[0, :, unit, b], x * math.sin(angle) + y * math.cos(angle))


def test_axes_with_frequencies_that_follow_the_length() -> None:
    """Two axes of the same places are one."""
    frequencies = {"name": "dynamic-ntk", "original_length": 5}
    same(
        {"name": "rotary", "axes": ["order", "order"], "frequencies": frequencies},
        {"name": "rotary", "frequencies": frequencies},
    )
    same(
        {"name": "rotary", "axes": ["order", "order"], "frequencies": {"name": "longrope", "kept": 4}},
        {"name": "rotary", "frequencies": {"name": "longrope", "kept": 4}},
    )


@pytest.mark.parametrize("sections", [[8, 0], [0, 8], [3, 5]])
@pytest.mark.parametrize("frequencies", ["plain", {"name": "dynamic-ntk", "original_length": 5}])
def test_an_axis_may_have_no_pair(frequencies: Any, sections: list[int]) -> None:
    same(
        {"name": "rotary", "axes": ["order", "order"], "sections": sections, "frequencies": frequencies},
        {"name": "rotary", "frequencies": frequencies},
    )


def test_every_share_has_its_pairs() -> None:
    """As of a number of pairs divided by the width, whose product with it floats may round down."""
    for width in (44, 46, 128):
        for pairs in range(1, width // 2 + 1):
            model = build({"name": "rotary", "fraction": 2 * pairs / width}, Dims(width, 1, 1))
            assert len(model.inverse_frequencies()) == pairs  # type: ignore[operator]


def test_given_frequencies_and_a_given_factor() -> None:
    model = build(
        {"name": "rotary", "frequencies": [2.0, 0.5], "fraction": 0.25, "attention_factor": 3.0}, Dims(16, 1, 1)
    )
    cos, sin = model.cos_sin(encode([path(["w"] * 4)], model.encodings))  # type: ignore[operator]
    angles = torch.arange(4.0, dtype=torch.float64)[:, None] * torch.tensor([2.0, 0.5], dtype=torch.float64)
    torch.testing.assert_close(cos[0], 3 * angles.cos())
    torch.testing.assert_close(sin[0], 3 * angles.sin())
    assert build(describe(model), Dims(16, 1, 1)).options() == model.options()


def test_single_precision_rounds_the_angles() -> None:
    long = path(["w"] * 5000)
    exact, rounded = (
        build({"name": "rotary", "precision": each}, Dims(16, 1, 1)).cos_sin(encode([long], [Order()]))[0]  # type: ignore[operator]
        for each in ("double", "single")
    )
    assert rounded.dtype == torch.float32
    expected = (torch.arange(5000.0)[:, None] * (10000 ** (-torch.arange(0, 16, 2).double() / 16)).float()).cos()
    assert torch.equal(rounded[0], expected)
    assert 1e-6 < (exact - rounded).abs().max() < 1e-2


def test_the_slowest_pairs_of_p_rope_do_not_turn() -> None:
    """Exponents belong to the whole head: unlike a fraction of the channels."""
    model = build({"name": "p-rope", "share": 0.6, "scale": 2.0}, Dims(16, 1, 1))
    frequencies = model.inverse_frequencies().tolist()  # type: ignore[operator]
    assert frequencies == pytest.approx([10000 ** (-i / 8) / 2 if i < 4 else 0.0 for i in range(8)], rel=1e-12)


WRONG = [
    (
        {"frequencies": "alibi"},
        r"the frequencies of position model 'rotary' are 'plain', or those of .*'?yarn'?; given is",
    ),
    ({"frequencies": {"name": "plain", "scale": 2.0}}, r"frequencies 'plain' have no option; give base to 'rotary'"),
    ({"frequencies": {"name": "yarn", "base": 2.0}}, r"give 'base' to the position model 'rotary' itself"),
    ({"frequencies": {"name": "yarn", "bogus": 2.0}}, r"position model 'yarn' has no option named 'bogus'"),
    ({"frequencies": [1.0]}, r"a frequency for each of the 8 pairs of channels that it turns; given are 1: 1.0"),
    ({"frequencies": [math.inf] * 8}, r"give a finite number"),
    ({"axes": ["order", "depth"], "encoding": "depth"}, r"takes an encoding or axes, not both"),
    ({"axes": ["order", "depth"], "sections": [8, 1]}, r"has 8 pairs .* and 2 axes; sections are \[8, 1\]"),
    ({"sections": [4, 4]}, r"has 8 pairs .* and 1 axes"),
    (
        {"axes": ["order", "depth"], "sections": [2, 6], "order": "interleaved"},
        r"cannot interleave sections of \[2, 6\] pairs; those of the first axis are the most",
    ),
    ({"order": "interleaved"}, r"has one axis, so order has no effect; leave it out"),
    ({"attention_factor": 0.0}, r"factor above 0; given is attention_factor=0.0"),
    ({"layout": "quarters"}, r"option 'layout' of position model 'rotary' takes"),
]


@together(("options", "message"), WRONG)
def test_what_does_not_combine_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(PositionError, match=message):
        build({"name": "rotary", **options}, Dims(32, 2, 1))


def test_a_share_is_at_most_1() -> None:
    with pytest.raises(PositionError, match=r"'p-rope' turns a share of pairs from 0 to 1; given is 1.1"):
        build({"name": "p-rope", "share": 1.1}, Dims(32, 2, 1))
