"""Half precision loses the rounding of queries, keys and values, and neither places nor what is added to scores.

The last queries of a text of 2,000 units, where places are large, and terms may be large where scores matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from structpe.attention import additive, attend, weights
from structpe.attention.reference import rounded
from structpe.positions import MODELS, Dims, PositionModel, Positions, Site, Sources, build
from structpe.positions.batch import encode
from structpe.precision import exactly, widened
from structpe.structure import path
from structpe.terms import Factor, Terms
from tests.positions.cases import BLOCKS, CAUSAL, NAMES, able, labelled_path, made, noise, used_by

DIMS = Dims(32, 4, 1)
UNITS, LAST = 2000, 48
PAIRS = 300
"""Units of models that no decoder may use, or of which some act on each pair by a network: all of their queries."""
CLOSE = 0.01
NEARLY = dict.fromkeys(("comrope", "huang-m1", "huang-m2"), 0.012)
"""Measured: 1.0 % (comrope, dense) and 1.0 to 1.1 % (tables), where the others are below 1 %."""
LONG: dict[str, dict[str, Any]] = {
    "cai": {"depths": UNITS},
    "detr-learned": {"shape": (1, UNITS)},
    "graph-bert": {"rows": UNITS},
    "vit": {"shape": (1, UNITS)},
    "vit-2d": {"shape": (1, UNITS)},
    "vivit": {"shape": (1, 1, UNITS)},
    "randomised": {"longest": UNITS},
}
"""Options with which models of a fixed length take a long text."""
WHOLE = {
    "floater",
    "floater-convolution",
    "floater-input",
    "complex",
    "composite",
    "convolution",
    "pnat",
    "rnn",
    "rr",
    "lspe",
    *BLOCKS,
}


@contextmanager
def automatic() -> Iterator[None]:
    with torch.autocast("cpu", torch.bfloat16):
        yield


def half(x: Tensor) -> Tensor:
    return x.bfloat16()


def long(name: str) -> PositionModel:
    """A model with numbers that bfloat16 has, in float32."""
    length = MODELS[name](DIMS).options().get("max_length")
    rows = {"max_length": UNITS} if isinstance(length, int) and length < UNITS and name not in BLOCKS else {}
    model = made(name, DIMS, **rows, **LONG.get(name, {})).float()
    for parameter in model.parameters():
        parameter.data = half(parameter.data).float()
    return model


def sizes(name: str) -> tuple[int, int]:
    """Number of units, and of queries."""
    return (UNITS, LAST) if name in CAUSAL and name not in WHOLE else (PAIRS, PAIRS)


def seen(model: PositionModel, positions: Positions, x: Tensor, queries: int, kernel: str) -> Tensor:
    """(b, h, n, d_h) attention of the last n units x, or (b, n, d) of a block, to all of them.

    Queries, keys and values are of half precision in any case, what comes before as well.
    """
    mine = x[:, x.shape[1] - queries :]
    prepared, site = model.prepare(positions), Site(0)
    changed = model.layer(model.inputs(mine, prepared), prepared, site)
    terms = model.terms(prepared, site) + Terms(causal=model.causal)
    if model.own_attention:
        return model.attend(changed, prepared, site, terms)[0]
    sources = model.sources(Sources(changed, x, x), prepared, site)
    made_of = (sources.query, sources.key, sources.value)
    normed = (functional.layer_norm(each.double(), (DIMS.width,)) for each in made_of)
    each = (half(part @ weight).to(x.dtype) for part, weight in zip(normed, projections(), strict=True))
    q, k, v = (part.unflatten(-1, (DIMS.heads, -1)).transpose(1, 2) for part in each)
    return attend(q, k, v, terms, kernel)


def projections() -> list[Tensor]:
    return [noise(DIMS.width, DIMS.width, seed=i) / DIMS.width**0.5 for i in range(3)]


def off(got: Tensor, exact: Tensor) -> float:
    """The relative error of the head that has most."""
    heads = (0, 2, 3) if exact.ndim == 4 else (0, 1, 2)
    rows = slice(exact.shape[-2] // 2, None)
    error = (got.double() - exact)[..., rows, :].abs().mean(heads)
    return float((error / exact[..., rows, :].abs().mean(heads).clamp(min=1e-9)).max())


def assert_close(name: str, kernels: list[str], both: bool = True) -> None:
    """In every kernel, in both ways or in each way in turn."""
    units, queries = sizes(name)
    model = long(name)
    positions = encode([labelled_path(units)], model.encodings)
    positions = positions if queries == units else positions.step(units - queries, units)
    x = half(noise(1, units, DIMS.width)).double()
    with torch.no_grad():
        exact = seen(deepcopy(model).double(), positions, x, queries, "dense")
        for number, kernel in enumerate(kernels, len(name)):
            for how in ("bfloat16", "autocast") if both else (("bfloat16", "autocast")[number % 2],):
                ours = deepcopy(model).bfloat16() if how == "bfloat16" else model
                given = half(x) if how == "bfloat16" else x.float()
                moved = positions.to("cpu", torch.bfloat16) if how == "bfloat16" else positions
                with automatic() if how == "autocast" else nullcontext():
                    error = off(seen(ours, moved, given, queries, kernel), exact)
                assert error < NEARLY.get(name, CLOSE), f"{name}, kernel {kernel}, {how}: off by {error:.1%}"


ONE_OF_EACH = [
    "alibi-causal",
    "da-transformer",
    "deberta",
    "diet-abs",
    "diet-abs-lin",
    "disan",
    "exphormer",
    "huang-m4",
    "learned",
    "rotary",
    "shaw",
    "sliding-window",
]
"""Together they use every field of the equation that a model of the registry uses, and act at the input."""
WORST = ["alibi-causal", "continuous", "mixed-rotary", "mlp-bias", "fire", "lspe", "spe-sine"]
"""Those that were off by 3 to 50 % before sums and places were of float32."""


@pytest.mark.parametrize("name", WORST)
def test_what_was_lost_is_not(name: str) -> None:
    assert_close(name, ["auto"])


def kernels(name: str) -> list[str]:
    fields = used_by(name) | ({"causal"} if name in CAUSAL else set())
    return ["auto"] if name in BLOCKS else able(frozenset(fields))  # a block asks no kernel


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_every_field_in_every_kernel(name: str) -> None:
    assert_close(name, kernels(name), both=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_model_in_every_kernel(name: str) -> None:
    assert_close(name, kernels(name))


@pytest.mark.slow
def test_the_few_have_every_field() -> None:
    few, every = (frozenset().union(*map(used_by, names)) for names in (ONE_OF_EACH, NAMES))
    assert few >= every - {"feature_map"}
    assert any("inputs" in MODELS[name](DIMS).sites for name in ONE_OF_EACH)


@pytest.mark.parametrize("name", ["alibi-causal", "kerple-power"])
def test_terms_of_a_model_in_bfloat16_are_of_float32(name: str) -> None:
    """Real-valued positions, too, are not rounded before a model reads them."""
    model = long(name).bfloat16()
    positions = encode([path(["w"] * 9)], model.encodings).to("cpu", torch.bfloat16)
    (bias,) = model.terms(model.prepare(positions), Site(0)).bias
    assert getattr(bias, "table", bias).dtype == torch.float32
    points = encode([labelled_path(9)], MODELS["cape-2d"](DIMS).encodings)
    assert all(x.dtype == torch.float32 for x in points.to("cpu", torch.bfloat16).values())


def test_a_large_bias_keeps_its_digits_where_scores_matter() -> None:
    """As for a GPU, whose fused kernel takes a mask of half precision only; and in a mask for other libraries."""
    bias = (torch.arange(2000.0) / 2)[None, None, None].repeat(1, 1, 3, 1)
    bias[..., 0, 1500:], bias[..., 1, :] = -torch.inf, -torch.inf
    exact = torch.softmax(bias.double(), -1)[0, 0]
    got = rounded(bias, torch.bfloat16)
    assert got.dtype == torch.bfloat16
    torch.testing.assert_close(torch.softmax(got.double(), -1)[0, 0, [0, 2]], exact[[0, 2]], rtol=0, atol=2e-3)
    assert bool((got[0, 0, 1] == -torch.inf).all())
    mask = additive(Terms(bias=(bias,)), torch.empty(1, 1, 3, 0, dtype=torch.bfloat16), 2000)
    assert not mask[0, 0, 1].any()
    torch.testing.assert_close(torch.softmax(mask.double(), -1)[0, 0, [0, 2]], exact[[0, 2]], rtol=0, atol=2e-3)
    assert torch.equal(rounded(bias, torch.float32), bias)


@pytest.mark.parametrize("kernel", ["sdpa", "flex", "tiled"])
def test_factors_of_large_numbers_are_not_rounded(kernel: str) -> None:
    """m_h (s - t) of ALiBi as a product: m_h s - m_h t, which are far larger than their difference."""
    if kernel not in able(frozenset({"factors"})):
        pytest.skip(f"kernel {kernel} runs elsewhere")
    n = 2000
    places = torch.arange(float(n))[None, None, :, None] / 4
    one = torch.ones_like(places)
    factor = Factor(torch.cat([one, -places], -1), torch.cat([places, one], -1))
    q, k, v = (half(noise(1, 2, n, 8, seed=i)) for i in range(3))
    terms = Terms(factors=(factor,), causal=True)
    exact = attend(q[:, :, -20:].double(), k.double(), v.double(), cut(terms), "dense")
    assert off(attend(q[:, :, -20:], k, v, cut(terms), kernel), exact) < CLOSE


def cut(terms: Terms) -> Terms:
    (factor,) = terms.factors
    return Terms(factors=(Factor(factor.left[:, :, -20:], factor.right),), causal=True)


def test_under_autocast_attention_gives_its_dtype_and_functions_keep_it() -> None:
    q, k, v = (noise(1, 2, 5, 4, seed=i).float() for i in range(3))
    turn = torch.nn.Linear(4, 4)
    with automatic(), torch.no_grad():
        out = attend(q, k, v, Terms(maps=(lambda q, k: (turn(q), turn(k)),)))
        assert out.dtype == torch.bfloat16
        assert weights(half(q), half(k)).dtype == torch.bfloat16
        assert exactly(torch.matmul)(q, k.mT).dtype == torch.float32
        assert torch.is_autocast_enabled("cpu")
    torch.testing.assert_close(out.float(), attend(turn(q), turn(k), v).detach(), rtol=0.05, atol=0.05)


def test_a_network_is_widened_without_a_change_to_itself() -> None:
    network = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1, bias=False)).bfloat16()
    wide = widened(network)
    assert {x.dtype for x in wide.state_dict().values()} == {torch.float32}
    assert {x.dtype for x in network.parameters()} == {torch.bfloat16}
    wide(torch.ones(2, 3)).sum().backward()
    assert all(x.grad is not None and x.grad.any() for x in [network[2].weight])
    assert widened(network.float()) is network


def test_a_users_network_of_places_is_computed_without_autocast() -> None:
    model = build("mlp-bias", DIMS)
    positions = encode([labelled_path(30)], model.encodings)
    exact = model.terms(model.prepare(positions), Site(0)).bias[0]
    with automatic():
        under = model.terms(model.prepare(positions), Site(0)).bias[0]
    assert torch.equal(exact.table, under.table)  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["alibi", "alibi-causal", "sandwich"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_fixed_decay_is_as_exact_as_scores_of_half_precision(name: str, dtype: torch.dtype) -> None:
    """A bias of -600 in bfloat16 would be off by 2, and far keys of one query would tie."""
    given = encode([path(["w"] * 600)], MODELS[name](DIMS).encodings)
    exact, found = (
        getattr(bias := model.terms(model.prepare(given), Site(0)).bias[0], "table", bias)
        for model in (MODELS[name](DIMS).double(), MODELS[name](DIMS).to(dtype))
    )
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), exact, rtol=1e-6, atol=0)
