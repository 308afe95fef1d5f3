"""Attention in many small graphs at once says what attention in each of them says."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from structpe.attention import HeadPlaces, attend, attend_buckets, buckets_suit
from structpe.terms import Factor, Lookup, Terms

HEADS, WIDTH = 3, 4
SHAPES = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 7)), min_size=1, max_size=4)


def drawn(shapes: list[tuple[int, int]], seed: int) -> tuple[list[Tensor], Tensor | None]:
    """Which places of each bucket hold a node, at least one of each graph, and where the nodes are."""
    generator = torch.Generator().manual_seed(seed)
    present = []
    for b, n in shapes:
        sizes = torch.randint(1, n + 1, (b,), generator=generator)
        present.append(torch.arange(n)[None] < sizes[:, None])
    flat = torch.cat([p.flatten() for p in present])
    return present, None if flat.all() else flat.nonzero().squeeze(1)


def padding_of(present: list[Tensor]) -> list[Tensor | None]:
    low = torch.finfo(torch.float64).min / 2
    return [None if p.all() else (~p[:, None, None]).double() * low for p in present]


def biases(shapes: list[tuple[int, int]], seed: int) -> list[Terms]:
    """A table that all share, looked up, and numbers of each pair beside it in every second bucket."""
    generator = torch.Generator().manual_seed(seed)
    table = torch.randn(5, HEADS, dtype=torch.float64, generator=generator, requires_grad=True)
    said = []
    for i, (b, n) in enumerate(shapes):
        index = torch.randint(0, 5, (b, n, n), generator=generator)
        rows = torch.arange(5).expand(b if i % 3 else 1, -1)
        found = Terms(bias=(Lookup(table, rows, index),), scale=(0.5, -0.5, 0.0)[i % 3])
        if i % 2:
            pairs = torch.randn(1, HEADS, n, n, dtype=torch.float64, generator=generator)
            pairs[torch.rand(pairs.shape, generator=generator) < 0.4] = -math.inf  # some nodes attend nowhere
            found = found + Terms(bias=(pairs.requires_grad_(),))
        said.append(found)
    return said


def one_by_one(projected: Tensor, shapes: list[tuple[int, int]], present: list[Tensor], said: list[Terms]) -> Tensor:
    """Each graph alone, without a place that is empty, by the reference."""
    found, start = [], 0
    for (b, _), there, terms in zip(shapes, present, said, strict=True):
        for i in range(b):
            size = int(there[i].sum())
            part = projected[start : start + size].view(size, 3, HEADS, WIDTH).permute(1, 2, 0, 3)[:, None]
            changed = Terms(bias=tuple(cut(bias, i, size) for bias in terms.bias), scale=terms.scale)
            found.append(attend(*part, changed, "dense")[0].transpose(0, 1).flatten(1))
            start += size
    return torch.cat(found)


def cut(bias: object, i: int, size: int) -> object:
    if isinstance(bias, Tensor):
        return bias[:, :, :size, :size]
    assert isinstance(bias, Lookup)
    return Lookup(bias.table, bias.rows[:1], bias.index[i : i + 1, :size, :size])


@given(SHAPES, st.integers(0, 99), st.booleans())
def test_it_is_attention_in_each_graph_alone_in_values_and_gradients(
    shapes: list[tuple[int, int]], seed: int, with_bias: bool
) -> None:
    present, where = drawn(shapes, seed)
    count = sum(int(p.sum()) for p in present)
    generator = torch.Generator().manual_seed(seed)
    projected = torch.randn(count, 3 * HEADS * WIDTH, dtype=torch.float64, generator=generator, requires_grad=True)
    said = biases(shapes, seed) if with_bias else [Terms()] * len(shapes)
    asked = [projected, *{id(x): x for terms in said for b in terms.bias for x in [getattr(b, "table", b)]}.values()]
    towards = torch.randn(count, HEADS * WIDTH, dtype=torch.float64, generator=generator)

    given_places = HeadPlaces.of(HEADS, shapes, where)
    found = attend_buckets(projected, given_places, said, padding_of(present))
    expected = one_by_one(projected, shapes, present, said)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
    ours = torch.autograd.grad(found, asked, towards)
    theirs = torch.autograd.grad(expected, asked, towards)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-10)
    assert all(x.isfinite().all() for x in (found, *ours))


def test_what_padding_would_read_is_never_seen() -> None:
    shapes = [(2, 3)]
    present = [torch.tensor([[True, False, False], [True, True, True]])]
    where = torch.tensor([0, 3, 4, 5])
    projected = torch.randn(4, 3 * HEADS * WIDTH, dtype=torch.float64)
    projected[0] = 1e150  # padding holds the parts of node 0
    found = attend_buckets(projected, HeadPlaces.of(HEADS, shapes, where), [Terms()], padding_of(present))
    expected = one_by_one(projected, shapes, present, [Terms()])
    torch.testing.assert_close(found[1:], expected[1:])
    torch.testing.assert_close(found[0], expected[0])


def test_dropped_weights_are_dropped_of_values_and_gradients_alike() -> None:
    """With values that are unit vectors what comes out are the weights; the gradient of a value is the same weight."""
    n, heads = 16, 1
    torch.manual_seed(0)
    q, k = torch.randn(2, n, n, dtype=torch.float64)
    projected = torch.cat([q, k, torch.eye(n, dtype=torch.float64)], dim=1).requires_grad_()
    kept = attend_buckets(projected, HeadPlaces.of(heads, [(1, n)], None), [Terms()], [None], dropout=0.25)
    whole = (q @ k.T / math.sqrt(n)).softmax(-1)
    dropped = kept == 0
    torch.testing.assert_close(kept[~dropped], (whole / 0.75)[~dropped])
    assert 0.1 < dropped.double().mean() < 0.4

    towards = torch.randn(n, n, dtype=torch.float64)
    of_q, of_k, of_v = torch.autograd.grad(kept, projected, towards)[0].split(n, dim=1)
    q, k = q.requires_grad_(), k.requires_grad_()
    by_hand = torch.where(dropped, 0.0, (q @ k.T / math.sqrt(n)).softmax(-1) / 0.75)
    torch.testing.assert_close(of_v, by_hand.T @ towards)
    torch.testing.assert_close((of_q, of_k), torch.autograd.grad(by_hand, (q, k), towards))


@pytest.mark.parametrize(
    ("said", "suits"),
    [
        (Terms(), True),
        (Terms(scale=2.0), True),
        (Terms(bias=(torch.zeros(1, 1, 3, 3),)), True),
        (Terms(factors=(Factor(torch.zeros(1, 1, 3, 2), torch.zeros(1, 1, 3, 2)),)), False),
        (Terms(causal=True), False),
        (Terms(maps=(lambda q, k: (q, k),)), False),
    ],
    ids=["nothing", "scale", "bias", "factors", "causal", "maps"],
)
def test_it_is_asked_for_what_it_computes_only(said: Terms, suits: bool) -> None:
    x = torch.zeros(3, 12)
    assert buckets_suit(x, [said]) is suits
    assert not buckets_suit(x, [said, Terms(causal=True)])
    assert not buckets_suit(x.to(torch.bfloat16), [said])
    assert not buckets_suit(x, [])


def test_a_second_derivative_is_refused_not_wrong() -> None:
    projected = torch.randn(3, 3 * HEADS * WIDTH, dtype=torch.float64, requires_grad=True)
    out = attend_buckets(projected, HeadPlaces.of(HEADS, [(1, 3)], None), [Terms()], [None])
    (first,) = torch.autograd.grad(out.square().sum(), projected, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()
