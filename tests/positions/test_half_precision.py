"""Half precision loses no more than the rounding of queries, keys and values: neither places nor what is added to scores.

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
from structpe.attention._written import rounded
from structpe.data.encode import encode
from structpe.positions import MODELS, Dims, PositionModel, Positions, Site, Sources, build
from structpe.precision import exactly, widened
from structpe.structure import path
from structpe.terms import Factor, Terms
from tests.positions.cases import BLOCKS, CAUSAL, NAMES, able, labelled_path, made, noise, used_by

DIMS = Dims(32, 4, 1)
UNITS, LAST = 2000, 48
PAIRS = 300
"""Units of models that no decoder may use, or of which some act on each pair by a network: all of their queries."""
CLOSE = 0.01
LONG: dict[str, dict[str, Any]] = {
    "cai": {"depths": UNITS},
    "detr-learned": {"shape": (1, UNITS)},
    "graph-bert": {"rows": UNITS},
    "vit": {"shape": (1, UNITS)},
    "vit-2d": {"shape": (1, UNITS)},
    "vivit": {"shape": (1, 1, UNITS)},
    **{name: {"length": UNITS} for name in ("diet-abs", "diet-rel", "dufter-abs", "dufter-rel", "shaw-absolute")},
    **{name: {"length": UNITS} for name in ("tupe-a", "tupe-r", "learned", "diet-abs-lin", "reformer")},
}
"""Options with which models of a fixed length take a long text."""
WHOLE = {"complex", "composite", "convolution", "pnat", "rnn", "rr", "lspe", *BLOCKS}


@contextmanager
def automatic() -> Iterator[None]:
    with torch.autocast("cpu", torch.bfloat16):
        yield


def half(x: Tensor) -> Tensor:
    return x.bfloat16()


def long(name: str) -> PositionModel:
    """A model with numbers that bfloat16 has, in float32."""
    options = {k: v for k, v in LONG.get(name, {}).items() if k in MODELS[name](DIMS).options()}
    model = made(name, DIMS, **options).float()
    for parameter in model.parameters():
        parameter.data = half(parameter.data).float()
    return model


def sizes(name: str) -> tuple[int, int]:
    """Number of units, and of queries."""
    return (UNITS, LAST) if name in CAUSAL and name not in WHOLE else (PAIRS, PAIRS)


def seen(model: PositionModel, positions: Positions, x: Tensor, kernel: str, causal: bool) -> Tensor:
    """(b, h, n, d_h) attention of the last n units x, or (b, n, d) of a block, to all of them.

    Queries, keys and values are of half precision in any case, what comes before as well.
    """
    n = positions.queries(model.encodings[0]).shape[1] if causal and len(model.encodings) else x.shape[1]
    n = min(n, x.shape[1])
    mine = x[:, x.shape[1] - n :]
    prepared, site = model.prepare(positions), Site(0)
    changed = model.layer(model.inputs(mine, prepared), prepared, site)
    terms = model.terms(prepared, site) + Terms(causal=causal)
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
    return float((error / exact[..., rows, :].abs().mean(heads)).max())


def assert_close(name: str, kernels: list[str]) -> None:
    units, queries = sizes(name)
    model, causal = long(name), name in CAUSAL
    positions = encode([labelled_path(units)], model.encodings)
    positions = positions if queries == units else positions.step(units - queries, units)
    x = half(noise(1, units, DIMS.width)).double()
    with torch.no_grad():
        exact = seen(deepcopy(model).double(), positions, x, "dense", causal)
        for kernel in kernels:
            for how in ("bfloat16", "autocast"):
                ours = deepcopy(model).bfloat16() if how == "bfloat16" else model
                given = half(x) if how == "bfloat16" else x.float()
                moved = positions.to("cpu", torch.bfloat16) if how == "bfloat16" else positions
                with automatic() if how == "autocast" else nullcontext():
                    error = off(seen(ours, moved, given, kernel, causal), exact)
                assert error < CLOSE, f"{name}, kernel {kernel}, {how}: off by {error:.1%}"


def signature(name: str) -> tuple[Any, ...]:
    model = MODELS[name](DIMS)
    return model.sites, used_by(name), model.spec.cells.learnable, name in CAUSAL, model.own_attention


ONE_OF_EACH = sorted({signature(name): name for name in NAMES}.values())
WORST = ["alibi-causal", "continuous", "mixed-rotary", "mlp-bias", "fire", "lspe", "spe-sine"]
"""Those that were off by 3 to 50 % before sums and places were of float32."""


@pytest.mark.parametrize("name", WORST)
def test_what_was_lost_is_not(name: str) -> None:
    assert_close(name, ["auto"])


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_one_model_of_each_signature_in_every_kernel(name: str) -> None:
    fields = used_by(name) | ({"causal"} if name in CAUSAL else set())
    assert_close(name, ["auto"] if name in BLOCKS else able(frozenset(fields)))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_model(name: str) -> None:
    assert_close(name, ["auto"])
