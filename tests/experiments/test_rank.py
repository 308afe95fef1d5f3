"""Theorem 1 of Chen et al. 2021: positions at the input leave attention of rank d_h, those in each head do not."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from structpe.attention import attend
from structpe.positions import Dims, Site
from structpe.positions.batch import encode
from structpe.structure import path
from structpe.terms import Terms
from tests.experiments.script import script
from tests.positions.cases import made, noise

RANKS = script("rank/ranks.py")
DIMS = Dims(24, 3, 1)
SMALL = RANKS.Setting(dims=DIMS, places=40)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("position", ["learned", "sinusoidal", "spr-abs", ["learned", "segment-input"]])
def test_at_the_input_the_rank_is_at_most_the_width_of_a_head(position: Any, seed: int) -> None:
    found = RANKS.ranks(position, RANKS.Setting(dims=DIMS, places=40, seed=seed))
    assert found.position <= DIMS.head
    assert found.whole == DIMS.head


@pytest.mark.parametrize("width", [1, 5, 8, 20])
@pytest.mark.parametrize("name", ["diet-abs", "abs-scalar"])
def test_in_each_head_the_rank_is_added_to_that(name: str, width: int) -> None:
    found = RANKS.ranks({"name": name, "rank": width}, SMALL)
    assert found == RANKS.Ranks(width, DIMS.head + width)


@pytest.mark.parametrize("name", ["diet-abs", "diet-rel", "rel-scalar", "t5"])
def test_the_rank_may_be_full(name: str) -> None:
    """n - 1, because the mean of a row is taken away, which the softmax does not see."""
    position = {"name": name, "rank": 40} if name == "diet-abs" else name
    assert RANKS.ranks(position, SMALL) == RANKS.Ranks(39, 39)


def test_without_positions_there_is_content_alone() -> None:
    assert RANKS.ranks([], SMALL) == RANKS.Ranks(0, DIMS.head)


def test_scores_are_what_the_softmax_sees() -> None:
    """The logarithm of attention to unit vectors, against the product of queries and keys itself."""
    model: Any = made("diet-abs", Dims(8, 1, 1), max_length=8, rank=3)
    terms = model.terms(model.prepare(encode([path(["a"] * 8)], model.encodings)), Site(0))
    q, k = noise(2, 1, 1, 8, 8).unbind(0)
    expected = (q @ k.mT / 8**0.5 + terms.factors[0].left @ terms.factors[0].right.mT)[0]
    found = RANKS.centred(q, k, terms)
    torch.testing.assert_close(found, expected - expected.mean(-1, keepdim=True), rtol=0, atol=1e-12)


def test_the_construction_of_the_proof() -> None:
    """X = [1; 0], W_Q = W_K = [1, 0] and P = [0, 1] in the last d_p places: rank d_h + d_p, exactly."""
    n, d, d_h, d_p = 20, 12, 4, 9
    x, w = torch.eye(n, d, dtype=torch.float64), torch.eye(d, d_h, dtype=torch.float64)
    model: Any = made("abs-scalar", Dims(d, 3, 1), max_length=n, rank=d_p)
    with torch.no_grad():
        model.table.weight.copy_(torch.eye(n, dtype=torch.float64)[:, n - d_p :, None].transpose(1, 2))
    factor = model.terms(model.prepare(encode([path(["a"] * n)], model.encodings)), Site(0)).factors[0]
    content = (x @ w) @ (x @ w).T
    assert torch.linalg.matrix_rank(content) == d_h
    assert torch.linalg.matrix_rank(content + factor.left[0, 0] @ factor.right[0, 0].T) == d_h + d_p
    # What is folded into a longer head is this sum, unscaled, and nothing else.
    q, v = (x @ w)[None, None], noise(1, 1, n, d_h)
    scaled = torch.softmax(content / d_h**0.5 + factor.left[0, :1] @ factor.right[0, :1].mT, dim=-1) @ v
    one = type(factor)(factor.left[:, :1], factor.right[:, :1])
    torch.testing.assert_close(attend(q, q, v, Terms(factors=(one,))), scaled, rtol=0, atol=1e-9)
