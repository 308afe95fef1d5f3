"""Attention written out for inspection and for other libraries."""

from __future__ import annotations

import math
import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from structpe.attention import additive, attend, weights
from structpe.errors import StructPEError, UnsupportedTerm
from structpe.terms import Lookup, Pairs, Terms
from tests.attention.drawing import FIELDS, B, D, H, M, N, drawn, settled

MASKED = ["bias", "factors", "mask", "pairs", "causal"]


def numbers(seed: int = 0) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(B, H, n, D, generator=generator, dtype=torch.float64) for n in (N, M, M)]


@given(some=st.sets(st.sampled_from([name for name in FIELDS if name != "value"])), seed=st.integers(0, 99))
def test_values_summed_by_weights_are_attention(some: set[str], seed: int) -> None:
    (q, k, v), terms = numbers(seed), drawn(settled(some), seed)
    if terms.projection is not None:
        for mask in terms.mask:
            v = v * mask.transpose(-1, -2)
        mixtures = terms.projection.values.to(v.dtype) @ v
    else:
        mixtures = v
    found = weights(q, k, terms)
    assert torch.allclose(found @ mixtures, attend(q, k, v, terms, "dense"), atol=1e-10) or "value" in terms.used()
    if "feature_map" not in terms.used():
        assert torch.allclose(found.sum(-1), (found.sum(-1) > 0.5).double())


def test_weights_of_a_hand_made_example() -> None:
    # Scores 0 and log 3: a quarter and three quarters; the first query is masked altogether.
    q, k = torch.zeros(1, 1, 2, 1), torch.zeros(1, 1, 2, 1)
    bias = torch.tensor([0.0, math.log(3)]).view(1, 1, 1, 2)
    mask = torch.tensor([[False, False], [True, True]])[None, None]
    found = weights(q, k, Terms(bias=(bias,), mask=(mask,)))
    assert torch.allclose(found, torch.tensor([[[[0.0, 0.0], [0.25, 0.75]]]]))
    assert torch.allclose(weights(q, k), torch.full((1, 1, 2, 2), 0.5))


@given(some=st.sets(st.sampled_from(MASKED)), seed=st.integers(0, 99))
def test_added_to_scores_it_is_the_same_attention(some: set[str], seed: int) -> None:
    (q, k, v), terms = numbers(seed), drawn(settled(some) & set(MASKED), seed)
    mask = additive(terms, q, M)
    seen = (mask > -math.inf).any(-1) & (weights(q, k, terms).sum(-1) > 0.5)
    expected = attend(q, k, v, terms, "dense")
    found = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    assert torch.allclose(found[seen], expected[seen], atol=1e-10)
    assert found.isfinite().all()


def test_a_query_that_attends_to_nothing_has_zeros_instead_of_minus_infinity() -> None:
    mask = torch.tensor([[True, False], [False, False]])[None, None]
    found = additive(Terms(mask=(mask,)), torch.zeros(1, 1, 2, 4), 2)
    assert found.tolist() == [[[[0.0, -math.inf], [0.0, 0.0]]]]


def test_listed_pairs_and_listed_biases() -> None:
    pairs = Pairs(torch.tensor([0, 0]), torch.tensor([0, 1]), torch.tensor([1, 0]))
    found = additive(Terms(pairs=(pairs,), bias=(torch.ones(1, 1, 1, 2),)), torch.zeros(1, 1, 2, 4), 2)
    assert found.tolist() == [[[[-math.inf, 1.0], [1.0, -math.inf]]]]


def test_gradients_reach_the_table() -> None:
    table = torch.zeros(3, H, requires_grad=True)
    index = torch.randint(3, (1, N, N), generator=torch.Generator().manual_seed(0))
    look = Lookup(table, torch.arange(3)[None], index)
    additive(Terms(bias=(look,)), torch.zeros(B, H, N, D), N).sum().backward()
    assert table.grad is not None
    assert torch.equal(table.grad, B * torch.bincount(index.flatten(), minlength=3)[:, None].expand(3, H).float())


@pytest.mark.parametrize("name", sorted(set(FIELDS) - set(MASKED)))
def test_what_is_no_addition_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedTerm, match=f"acts by .*{name}.* cannot be written as an additive mask"):
        additive(drawn({name}, 0), numbers()[0], M)


def test_shapes_are_checked() -> None:
    q = torch.zeros(1, 2, 3, 4)
    with pytest.raises(StructPEError, match=re.escape("the shapes are (1, 2, 3, 4) and (1, 2, 3, 5)")):
        weights(q, torch.zeros(1, 2, 3, 5))
    with pytest.raises(StructPEError, match="bias has shape"):
        weights(q, q, Terms(bias=(torch.zeros(1, 2, 2, 3),)))
    with pytest.raises(StructPEError, match="bias has shape"):
        additive(Terms(bias=(torch.zeros(1, 2, 2, 3),)), q, 3)
