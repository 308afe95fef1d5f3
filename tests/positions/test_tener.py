"""TENER: the authors' numbers, the survey's formula, and the direction that it keeps."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from structpe.attention import KERNELS, attend
from structpe.positions import Dims, Site
from structpe.positions.batch import encode
from structpe.positions.sinusoidal import Sinusoidal
from structpe.positions.transformer_xl import TENER, TENERSurvey
from structpe.structure import path
from structpe.terms import Lookup, Terms
from tests.golden import golden
from tests.positions.cases import made
from tests.positions.literal import Score, assert_score, heads, terms_of


@pytest.mark.parametrize("kernel", ["dense", "sdpa", "tables"])
@pytest.mark.parametrize("name", ["tener_unscaled", "tener_scaled"])
def test_the_authors_numbers(name: str, kernel: str) -> None:
    given = golden(name)
    size, count = given.cfg["L"], given.cfg["n_head"]
    model = TENER(Dims(given.cfg["d_model"], count, 1), scaled=given.cfg["scale"]).double()
    with torch.no_grad():  # what they call r_r_bias meets the keys
        model.content.copy_(given["w.r_r_bias"][None])
        model.position.copy_(given["w.r_w_bias"][None])
    after, before = model.prepare(encode([path(["w"] * size)], model.encodings))
    theirs = given["in.pos_embed"].double()  # of the offsets -size to size - 1, in float32
    torch.testing.assert_close(after.table, theirs[1:], rtol=0, atol=1e-6)
    torch.testing.assert_close(before.table, theirs[1:].flip(0), rtol=0, atol=1e-6)
    exact = Lookup(theirs[1:], after.rows, after.index), Lookup(theirs[1:].flip(0), after.rows, after.index)
    q, k, v = (heads(given["in.x"], weight, None, count) for weight in given["w.qkv_linear.weight"].chunk(3))
    seen = Terms(mask=(given["in.mask"].bool()[:, None, None],))
    out = attend(q, k, v, model.terms(exact, Site(0)) + seen, kernel).transpose(1, 2).flatten(2)
    torch.testing.assert_close(out, given["out.attn"], rtol=0, atol=1e-9)


def timing(r: int, d: int) -> Tensor:
    frequencies = [10000 ** (-c / (d // 2 - 1)) for c in range(d // 2)]
    waves = [math.sin(r * w) for w in frequencies] + [math.cos(r * w) for w in frequencies] + [0.0] * (d % 2)
    return torch.tensor(waves, dtype=torch.float64)


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("dims", [Dims(8, 2, 3), Dims(10, 2, 3)])
def test_the_five_terms_of_the_code(dims: Dims, scaled: bool) -> None:
    model = made("tener", dims, scaled=scaled)
    assert isinstance(model, TENER)

    def formula(q: Tensor, k: Tensor) -> Score:
        def score(h: int, i: int, j: int) -> Tensor:
            u, v = model.content[1, h], model.position[1, h]
            ahead, back = timing(j - i, dims.head), timing(i - j, dims.head)
            s = q[h, i] @ k[h, j] + u @ k[h, j] + q[h, i] @ ahead + v @ ahead + k[h, j] @ back
            return s / math.sqrt(dims.head) if scaled else s

        return score

    assert_score(model, formula, layer=1)


def interleaved(r: int, d: int) -> Tensor:
    waves = [(math.cos if c % 2 else math.sin)(r * 10000 ** (-(c - c % 2) / d)) for c in range(d)]
    return torch.tensor(waves, dtype=torch.float64)


def test_the_four_terms_of_the_survey() -> None:
    model = made("tener-survey")
    assert isinstance(model, TENERSurvey)

    def formula(q: Tensor, k: Tensor) -> Score:
        def score(h: int, i: int, j: int) -> Tensor:
            u, v, r = model.content[2, h], model.position[2, h], interleaved(i - j, 4)
            return q[h, i] @ k[h, j] + q[h, i] @ r + u @ k[h, j] + v @ r

        return score

    assert_score(model, formula, layer=2)


def test_it_keeps_the_direction_that_the_product_of_sinusoids_loses() -> None:
    """P_t.P_(t+r) = P_t.P_(t-r) for all t and r; TENER's vectors of r and -r differ, and so do its scores."""
    size, middle = 21, 10
    table = Sinusoidal(Dims(8, 2, 1)).double()
    positions = encode([path(["w"] * size)], table.encodings)
    p = table.inputs(torch.zeros(1, size, 8).double(), table.prepare(positions))[0]
    products = p @ p[middle]
    torch.testing.assert_close(products, products.flip(0), rtol=0, atol=1e-9)
    for name in ("tener", "tener-survey"):
        model = made(name)
        (bias,) = terms_of(model, size).bias
        scores = bias.dense()[0, middle]
        apart = (scores - scores.flip(0)).abs().amax(dim=1)
        assert (apart[torch.arange(size) != middle] > 1e-3).all()
        assert apart[middle] == 0


@pytest.mark.parametrize("name", ["tener", "tener-survey"])
def test_the_products_of_its_vectors_are_of_the_distance(name: str) -> None:
    """Property 1 of Yan et al.: R_t.R_s depends on t - s only."""
    prepared = made(name).prepare(encode([path(["w"] * 12)], made(name).encodings))
    vectors = (prepared[0] if isinstance(prepared, tuple) else prepared).table
    products = vectors @ vectors.T
    for shift in range(len(products)):
        diagonal = products.diagonal(shift)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), rtol=0, atol=1e-9)


def test_kernels_that_cannot_say_so() -> None:
    used = terms_of(made("tener"), 4).used()
    assert {name for name in KERNELS if used <= KERNELS[name].supports} >= {"dense", "sdpa", "tables"}
