"""Rotary positions for longer texts: the authors' tables, what each paper says of slow and fast pairs, and lengths."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from structpe.encodings import Depth, Distance, Order
from structpe.errors import PositionError
from structpe.positions import MODELS, Dims, PositionModel, Positions, Site
from structpe.positions.batch import encode
from structpe.positions.rotary import Turns
from structpe.structure import path
from tests.golden import golden
from tests.positions.cases import TREES, Around, causal, encoded, labelled_path, noise, present
from tests.together import together

HALVES = [
    "position-interpolation",
    "ntk-aware",
    "ntk-by-parts",
    "dynamic-ntk",
    "dynamic-interpolation",
    "yarn",
    "longrope",
    "longrope-dynamic",
]
DYNAMIC = {"dynamic-ntk": {}, "dynamic-interpolation": {}, "longrope-dynamic": {"scale": 8.0}}


def model_of(name: str, width: int, **options: Any) -> PositionModel:
    return MODELS[name](Dims(width, 1, 1), **options)


def tables(model: PositionModel, length: int) -> tuple[Tensor, Tensor]:
    """Cosine and sine (length, d_h/2) of each place and pair: what becomes of (1, 0) in the half-split layout."""
    width = model.dims.head
    x = (torch.arange(width) < width // 2).double().expand(1, 1, length, width)
    (turn,) = model.terms(model.prepare(encode([path(["w"] * length)], model.encodings)), Site(0)).maps
    turned, again = turn(x, x)
    assert torch.equal(turned, again)
    cos, sin = turned[0, 0].chunk(2, dim=-1)
    return cos, sin


AS_CODED = {
    "yarn": ("yarn", {"original_length": 16}),
    "yarn_ext": ("yarn", {"original_length": 2048, "scale": 8.0}),
    "linear_PI": ("position-interpolation", {}),
    "ntk": ("ntk-aware", {}),
    "partntk": ("ntk-by-parts", {}),
    "dyn_ntk": ("dynamic-ntk", {"original_length": 16}),
    "dyn_linear": ("dynamic-interpolation", {"original_length": 16}),
    "rope_base": ("rotary-half", {}),
}


@pytest.mark.parametrize("key", AS_CODED)
def test_the_authors_tables(key: str) -> None:
    given, (name, options) = golden("rope_scaling"), AS_CODED[key]
    theirs = [given[f"out.{key}.{wave}"] for wave in ("cos", "sin")]
    width = theirs[0].shape[1]
    for mine, table in zip(tables(model_of(name, width, **options), 40), theirs, strict=True):
        torch.testing.assert_close(mine.float(), table[:, : width // 2], rtol=0, atol=1e-5)
        torch.testing.assert_close(mine.float(), table[:, width // 2 :], rtol=0, atol=1e-5)


@pytest.mark.parametrize(("trained", "width"), [(16, 16), (100, 16), (2048, 64), (3, 8)])
@pytest.mark.parametrize("truncate", [True, False])
def test_the_line_of_yarn_with_and_without_rounded_ends(trained: int, width: int, truncate: bool) -> None:
    """As Hugging Face writes it, "truncate" and "attention_factor" included."""

    def pair(turns: float) -> float:
        return (width * math.log(trained / (turns * 2 * math.pi))) / (2 * math.log(10000))

    low, high = pair(32), pair(1)
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, width - 1)
    high += 0.001 * (low == high)
    cos, _ = tables(model_of("yarn", width, original_length=trained, truncate=truncate, attention_factor=1.5), 40)
    for i in range(width // 2):
        interpolated = max(0.0, min(1.0, (i - low) / (high - low)))
        frequency = 10000 ** (-2 * i / width) * (interpolated / 4 + 1 - interpolated)
        expected = [1.5 * math.cos(t * frequency) for t in range(40)]
        assert cos[:, i].tolist() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("fast", "slow", "first", "last"), [(32.0, 1e-9, 2, 15), (1e9, 1.0, 0, 6)])
def test_the_ends_of_the_line_of_yarn_are_clamped(fast: float, slow: float, first: int, last: int) -> None:
    """By hand, to 0..15 for a head of 16: without, they would be at 24 and at -14."""
    model = model_of("yarn", 16, original_length=2048, fast=fast, slow=slow)
    frequencies = model.inverse_frequencies().tolist()  # type: ignore[operator]
    for i, frequency in enumerate(frequencies):
        changed = min(1.0, max(0.0, (i - first) / (last - first)))
        assert frequency == pytest.approx(10000 ** (-i / 8) * (1 - 0.75 * changed), rel=1e-12)


@pytest.mark.parametrize("name", ["yarn", "longrope", "longrope-dynamic"])
def test_the_factor_may_be_given(name: str) -> None:
    usual, said = (tables(model_of(name, 8, **options), 9) for options in ({}, {"attention_factor": 3.0}))
    ratio = 3 / usual[0][0, 0]  # the cosine of no angle is the length itself
    for one, other in zip(usual, said, strict=True):
        torch.testing.assert_close(one * ratio, other, rtol=0, atol=1e-12)
    with pytest.raises(
        PositionError, match=rf"'{name}' multiplies queries and keys by a factor above 0; given is attention_factor=0.0"
    ):
        model_of(name, 8, attention_factor=0.0)


def test_kept_places_stay_as_long_as_they_are() -> None:
    cos, _ = tables(model_of("longrope", 8, attention_factor=3.0, kept=2), 5)
    assert cos[0, 0] == 1
    assert (tables(model_of("longrope", 8, attention_factor=3.0), 5)[0][2:] == cos[2:]).all()


# --- formulas, written out ---


def expected(name: str, i: int, width: int, length: int, a: float = 4.0, trained: int = 16) -> float:
    """Speed of the pair i, base 10000."""
    f = 10000 ** (-2 * i / width)
    if name == "position-interpolation":
        return f / a
    if name == "ntk-aware":
        return f * a ** (-2 * i / (width - 2))
    if name == "dynamic-ntk":  # with c = a
        longer = a * length / trained - (a - 1) if length > trained else 1
        return float((10000 * longer ** (width / (width - 2))) ** (-2 * i / width))
    if name == "dynamic-interpolation":
        return f * min(1, trained / length)
    factor = a ** (2 * i / (width - 2))
    return f / (1 + (factor - 1) * (length / trained - 1) / (a - 1)) if name == "longrope-dynamic" else f / factor


@together("length", [16, 17, 40])
@together("name", [n for n in HALVES if n not in ("ntk-by-parts", "yarn")])
def test_inverse_frequencies_by_hand(name: str, length: int) -> None:
    options: dict[str, Any] = {"original_length": 16} if "dynamic" in name or name == "longrope" else {}
    if name != "dynamic-interpolation":
        options["scale"] = 4.0
    cos, sin = tables(model_of(name, 8, **options), length)
    longer = math.sqrt(1 + math.log(4) / math.log(16)) if name.startswith("longrope") else 1
    for i in range(4):
        frequency = expected(name, i, 8, length)
        for place in (0, 1, length - 1):
            assert cos[place, i] == pytest.approx(math.cos(place * frequency) * longer, abs=1e-12)
            assert sin[place, i] == pytest.approx(math.sin(place * frequency) * longer, abs=1e-12)


def test_yarn_by_hand() -> None:
    """A head of 64 channels, trained on 2048 units: pairs stay up to 8 and are interpolated from 21 on."""
    frequencies = torch.atan2(*reversed([table[1] for table in tables(model_of("yarn", 64), 2)]))
    f = [10000 ** (-2 * i / 64) for i in range(32)]
    first = math.floor(64 * math.log(2048 / (32 * 2 * math.pi)) / (2 * math.log(10000)))
    last = math.ceil(64 * math.log(2048 / (1 * 2 * math.pi)) / (2 * math.log(10000)))
    assert (first, last) == (8, 21)
    for i, frequency in enumerate(frequencies.tolist()):
        stays = 1 - min(max((i - first) / (last - first), 0), 1)
        assert frequency == pytest.approx(f[i] / 4 * (1 - stays) + f[i] * stays, rel=1e-9)


@pytest.mark.parametrize("name", ["position-interpolation", "ntk-aware", "ntk-by-parts", "yarn", "longrope"])
def test_texts_that_are_no_longer_turn_as_in_training(name: str) -> None:
    for mine, plain in zip(
        tables(model_of(name, 16, scale=1.0), 30), tables(model_of("rotary-half", 16), 30), strict=True
    ):
        torch.testing.assert_close(mine, plain, rtol=0, atol=1e-12)


def test_kept_places_of_longrope_are_those_of_training() -> None:
    mixed = tables(model_of("longrope", 8, original_length=16, kept=5), 12)
    for table, plain, long in zip(
        mixed,
        tables(model_of("rotary-half", 8), 12),
        tables(model_of("longrope", 8, original_length=16), 12),
        strict=True,
    ):
        torch.testing.assert_close(table[:5], plain[:5], rtol=0, atol=1e-12)
        torch.testing.assert_close(table[5:], long[5:], rtol=0, atol=1e-12)


def test_given_factors_of_longrope() -> None:
    cos, _ = tables(model_of("longrope", 8, original_length=16, factors=(1.0, 2.0, 5.0, 7.5)), 12)
    longer = math.sqrt(1 + math.log(4) / math.log(16))
    for i, factor in enumerate((1.0, 2.0, 5.0, 7.5)):
        assert cos[11, i] == pytest.approx(math.cos(11 * 10000 ** (-i / 4) / factor) * longer, abs=1e-12)


# --- length is that of each text ---


@pytest.mark.parametrize("name", DYNAMIC)
def test_beyond_the_length_of_training_padded_together_is_one_by_one(name: str) -> None:
    model = MODELS[name](Dims(8, 2, 3), original_length=5, **DYNAMIC[name]).double()
    x = noise(3, 10, 8)
    together = Around(model)(encoded(model, TREES), x, present(TREES))
    for row, structure in enumerate(TREES):
        n = structure.unit_count
        alone = Around(model)(encoded(model, [structure]), x[row : row + 1, :n])
        torch.testing.assert_close(together[row, :n], alone[0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", DYNAMIC)
def test_a_text_that_grows_changes_its_first_units(name: str) -> None:
    model, x = MODELS[name](Dims(8, 2, 1), original_length=5, **DYNAMIC[name]).double(), noise(1, 9, 8)
    assert not model.causal
    shorter, longer = (Around(model)(encoded(model, [labelled_path(n)]), x[:, :n], causal(n)) for n in (8, 9))
    assert not torch.allclose(shorter, longer[:, :8], atol=1e-6)


@pytest.mark.parametrize("name", ["dynamic-ntk", "dynamic-interpolation"])
def test_up_to_the_length_of_training_nothing_changes(name: str) -> None:
    for mine, plain in zip(
        tables(model_of(name, 16, original_length=30), 30), tables(model_of("rotary-half", 16), 30), strict=True
    ):
        torch.testing.assert_close(mine, plain, rtol=0, atol=1e-12)


# --- xPos ---


@pytest.mark.parametrize("length", [6, 7])
def test_xpos_by_hand(length: int) -> None:
    """Turned and scaled channel by channel, as torchscale centres it."""
    model = MODELS["xpos"](Dims(6, 1, 1))
    q, k = noise(2, 1, 1, length, 6)
    (turn,) = model.terms(model.prepare(encode([path(["w"] * length)], model.encodings)), Site(0)).maps
    mine = turn(q, k)
    centre = math.floor(-length / 2)
    for x, got, sign in ((q, mine[0], 1), (k, mine[1], -1)):
        for t in range(length):
            for i in range(3):
                z = (2 * i + 0.4 * 6) / (1.4 * 6)
                power, angle = z ** (sign * (t + centre) / 512), t * 10000 ** (-2 * i / 6)
                a, b = (float(x[0, 0, t, c]) for c in (2 * i, 2 * i + 1))
                first, second = got[0, 0, t, 2 * i], got[0, 0, t, 2 * i + 1]
                assert first == pytest.approx(power * (a * math.cos(angle) - b * math.sin(angle)), abs=1e-12)
                assert second == pytest.approx(power * (a * math.sin(angle) + b * math.cos(angle)), abs=1e-12)


def test_xpos_decays_only_with_distance() -> None:
    model = MODELS["xpos"](Dims(8, 1, 1))
    x = noise(1, 1, 1, 8).expand(-1, -1, 200, -1)
    (turn,) = model.terms(model.prepare(encode([path(["w"] * 200)], model.encodings)), Site(0)).maps
    q, k = turn(x, x)
    score = (q @ k.transpose(-1, -2))[0, 0]
    torch.testing.assert_close(score[1:, 1:], score[:-1, :-1], rtol=0, atol=1e-9)
    pairs = (x[0, 0, 0].unflatten(-1, (-1, 2)) ** 2).sum(-1)
    z = (torch.arange(0, 8, 2).double() + 3.2) / 11.2
    angles = 150 * 10000 ** (-torch.arange(0, 8, 2).double() / 8)
    assert score[170, 20] == pytest.approx(float((pairs * z ** (150 / 512) * angles.cos()).sum()), abs=1e-9)


def faded(places: Tensor, dtype: torch.dtype, most: int) -> tuple[Tensor, Tensor]:
    """Queries and keys of one vector at some of ``most`` places, as a text of so many units has them; (p, wide)."""
    model = MODELS["xpos"](Dims(16, 1, 1))
    fading = model.prepare(Positions({Order(): torch.arange(most)[None]}))
    turned = Turns(fading.turned.queries[:, :, places], fading.turned.keys[:, :, places])
    some = replace(fading, turned=turned, queries=fading.queries[:, places], keys=fading.keys[:, places])
    x = (noise(1, 1, 1, 16) / 4).to(dtype).expand(-1, -1, len(places), -1)
    q, k = (each[0, 0].double() for each in model.terms(some, Site(0)).maps[0](x, x))
    return q, k


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("most", [20_000, 200_000])
def test_xpos_decays_only_with_distance_in_long_texts(most: int, dtype: torch.dtype) -> None:
    """Products of all places with those up to 60,000 before them, and a few ahead, are those near the beginning."""
    starts = torch.tensor([0, most // 3 - 7, most // 2, most - 2000])
    near, (behind, *more) = torch.tensor([0, 3, 250, 1000, 1999]), (0, 1500, 60_000)
    for gap in (behind, *more):
        places = torch.cat([(starts - gap)[:, None] + near, starts[:, None] + near], dim=1)
        keep = places.min(dim=1).values >= 0
        places = places[keep]
        q, k = faded(places.flatten(), dtype, most)
        assert q.isfinite().all()
        assert k.isfinite().all()
        n = len(near)
        q, k = q.view(-1, 2 * n, q.shape[-1])[:, n:], k.view(-1, 2 * n, k.shape[-1])[:, :n]
        scores = q @ k.transpose(-1, -2)
        x = (noise(1, 1, 1, 16) / 4).to(dtype).double()[0, 0, 0].unflatten(-1, (-1, 2)).square().sum(-1)
        apart = (gap + near[:, None] - near[None]).double()[..., None]
        z = (torch.arange(0, 16, 2).double() + 6.4) / 22.4
        angles = apart * 10000 ** (-torch.arange(0, 16, 2).double() / 16)
        expected = (x * z ** (apart / 512) * angles.cos()).sum(-1)
        scale = (x * z ** (apart / 512)).sum(-1)
        close = max(8 * torch.finfo(dtype).eps, 1e-10) * scale + 2e-4 * (dtype == torch.float16)
        assert ((scores - expected).abs() <= close).all()


def test_xpos_does_not_move_with_the_text() -> None:
    model = MODELS["xpos"](Dims(8, 1, 1))
    x = noise(1, 1, 300, 8).float()
    scores = []
    for first in (0, 1_000_000):
        prepared = model.prepare(Positions({Order(): torch.arange(first, first + 300)[None]}))
        q, k = model.terms(prepared, Site(0)).maps[0](x, x)
        scores.append(q @ k.transpose(-1, -2))
    torch.testing.assert_close(*scores, rtol=0, atol=1e-4)


def test_xpos_is_as_wide_as_the_head_in_texts_of_usual_length() -> None:
    for dtype, fits, not_any_more in ((torch.float32, 60_000, 80_000), (torch.float16, 8_000, 10_000)):
        for most, widened in ((fits, False), (not_any_more, True)):
            q, k = faded(torch.tensor([5]), dtype, most)
            assert q.shape == k.shape
            assert (q.shape[-1] > 16) == widened


# --- what is refused, and trees ---


@pytest.mark.parametrize("name", [*HALVES, "xpos"])
def test_they_turn_by_depth_too(name: str) -> None:
    model = MODELS[name](Dims(8, 2, 3), encoding=Depth()).double()
    out = Around(model)(encoded(model, TREES), noise(3, 10, 8), present(TREES))
    assert out.isfinite().all()


@pytest.mark.parametrize("name", [*HALVES, "xpos"])
def test_what_cannot_turn_is_refused(name: str) -> None:
    with pytest.raises(PositionError, match=f"{name!r} turns pairs of channels.*it is 6 / 2 = 3"):
        MODELS[name](Dims(6, 2, 1))
    with pytest.raises(PositionError, match=f"{name!r} needs an encoding of single units.*'distance' is not one"):
        MODELS[name](Dims(8, 2, 1), encoding=Distance())


@pytest.mark.parametrize("name", [n for n in HALVES if n != "dynamic-interpolation"])
def test_a_scale_below_1_is_refused(name: str) -> None:
    with pytest.raises(PositionError, match=rf"{name!r} takes a scale of 1 or more; given is 0\.5"):
        MODELS[name](Dims(8, 2, 1), scale=0.5)


def test_factors_of_longrope_that_do_not_fit_are_refused() -> None:
    with pytest.raises(
        PositionError, match=r"a positive factor for each of the 2 pairs.*given are 3: 1\.0, 2\.0, 3\.0"
    ):
        MODELS["longrope"](Dims(8, 2, 1), factors=(1.0, 2.0, 3.0))
    with pytest.raises(PositionError, match=r"a positive factor for each of the 2 pairs.*given are 2: 0\.0, 2\.0"):
        MODELS["longrope-dynamic"](Dims(8, 2, 1), factors=(0.0, 2.0))
    for name in ("longrope", "longrope-dynamic"):
        with pytest.raises(PositionError, match=f"{name!r} takes an original_length of 2 or more; given is 1"):
            MODELS[name](Dims(8, 2, 1), original_length=1)
    with pytest.raises(PositionError, match="divides by scale - 1"):
        MODELS["longrope-dynamic"](Dims(8, 2, 1), scale=1.0)
    model = MODELS["longrope-dynamic"](Dims(8, 2, 1), factors=(1.0, 20.0))
    with pytest.raises(
        PositionError, match="no positive factors for a text of 7 units; give an 'original_length' nearer"
    ):
        model.prepare(encode([path(["w"] * 7)], model.encodings))
