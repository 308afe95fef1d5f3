"""Terms: a commutative monoid; lookups: their table may be mapped, their pairs picked and exchanged."""

from __future__ import annotations

from dataclasses import fields

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from structpe.attention import attend
from structpe.errors import PositionError
from structpe.terms import Lookup, Pairs, SparsePairs, Terms, Toeplitz
from tests.attention.drawing import ALONE, FIELDS, drawn, settled

SOME = st.sets(st.sampled_from(FIELDS))
SEEDS = st.integers(0, 10**6)


def contents(terms: Terms) -> dict[str, object]:
    """The fields, those that hold several things as sets: their order means nothing."""
    return {
        f.name: frozenset(map(id, value)) if isinstance(value := getattr(terms, f.name), tuple) else value
        for f in fields(terms)
    }


@given(SOME, SEEDS)
def test_nothing_added_changes_nothing(some: set[str], seed: int) -> None:
    terms = drawn(some, seed)
    assert contents(terms + Terms()) == contents(terms) == contents(Terms() + terms)


@given(SOME, SOME, SOME, SEEDS)
def test_sums_may_be_bracketed_otherwise(a: set[str], b: set[str], c: set[str], seed: int) -> None:
    each = (a, b - ALONE, c - ALONE)
    x, y, z = (drawn(some, seed + i, beside=a) for i, some in enumerate(each))
    left, right = contents((x + y) + z), contents(x + (y + z))
    assert left.pop("scale") == pytest.approx(right.pop("scale"))
    assert left == right


@given(SOME, SOME, SEEDS)
def test_sums_may_be_turned_round(a: set[str], b: set[str], seed: int) -> None:
    b -= ALONE
    both = settled(a | b)
    x, y = drawn(a & both, seed, beside=both), drawn(b & both, seed + 1, beside=both)
    assert contents(x + y) == contents(y + x)
    q, k, v = torch.randn(3, 2, 3, 5, 4, dtype=torch.float64).unbind(0)
    torch.testing.assert_close(attend(q, k, v, x + y, "dense"), attend(q, k, v, y + x, "dense"), rtol=0, atol=1e-9)


@given(SOME, SEEDS)
def test_what_is_used(some: set[str], seed: int) -> None:
    assert drawn(some, seed).used() == frozenset(some)


@pytest.mark.parametrize(
    ("field", "what"),
    [
        ("act", "how scores are activated"),
        ("feature_map", "what replaces the exponential of a score"),
        ("projection", "which mixtures of keys are attended to"),
    ],
)
def test_some_fields_only_one_may_have(field: str, what: str) -> None:
    x = drawn({field}, 0)
    with pytest.raises(PositionError, match=f"two position models both change {what}; only one of a sum may"):
        _ = x + drawn({field}, 1)


def test_causal_once_is_causal() -> None:
    assert (Terms(causal=True) + Terms()).causal
    assert (Terms() + Terms(causal=True)).causal
    assert not (Terms() + Terms()).causal


@pytest.mark.parametrize(("a", "b"), [(2.0, 3.0), (2.0, -0.5), (-1.0, -2.0), (0.0, 4.0), (1.0, 1.0)])
def test_scales_multiply(a: float, b: float) -> None:
    assert (Terms(scale=a) + Terms(scale=b)).scale == a * b


def lookup(batch: int = 2) -> Lookup:
    return Lookup(torch.randn(6, 3), torch.randint(6, (batch, 4)), torch.randint(4, (batch, 5, 5)))


def test_a_lookup_means_its_entries_one_by_one() -> None:
    x = lookup()
    for b in range(2):
        for i in range(5):
            for j in range(5):
                assert torch.equal(x.dense()[b, i, j], x.table[x.rows[b, x.index[b, i, j]]])


def test_mapping_the_table_maps_each_pair() -> None:
    x = lookup()
    torch.testing.assert_close(x.map(lambda t: t.exp()).dense(), x.dense().exp())


def test_exchanged_pairs() -> None:
    x = lookup()
    assert torch.equal(x.transpose().dense(), x.dense().transpose(1, 2))


def test_one_step_sees_its_queries_over_the_keys_so_far() -> None:
    x = lookup()
    assert torch.equal(x.queries(slice(2, 4)).dense(), x.dense()[:, 2:4, :4])


def test_a_step_cannot_be_exchanged() -> None:
    with pytest.raises(
        PositionError, match=r"2 queries and 4 keys cannot change places; .* cannot decode step by step"
    ):
        lookup().queries(slice(2, 4)).transpose()


def listed() -> SparsePairs:
    """Of 2 structures of 5 units, in no order."""
    chosen = torch.rand(2, 5, 5) < 0.5
    batch, query, key = chosen.nonzero()[torch.randperm(int(chosen.sum()))].T
    return SparsePairs(torch.randn(6, 3), torch.randint(6, (len(key),)), Pairs(batch, query, key))


def test_a_listed_quantity_is_that_of_its_pairs_and_zero_elsewhere() -> None:
    x = listed()
    expected = torch.zeros(2, 5, 5, 3)
    for e, (b, i, j) in enumerate(zip(x.pairs.batch, x.pairs.query, x.pairs.key, strict=True)):
        expected[b, i, j] = x.table[x.index[e]]
    assert torch.equal(x.dense(2, 5, 5), expected)
    assert torch.equal(x.pairs.dense(2, 5, 5)[:, 0], expected.any(-1))


def test_mapping_the_table_maps_each_listed_pair() -> None:
    x = listed()
    assert torch.equal(x.map(lambda t: 2 * t).dense(2, 5, 5), 2 * x.dense(2, 5, 5))


@pytest.mark.parametrize("rows", [slice(2, 4), slice(None, 3), slice(0, 5)])
def test_one_step_sees_the_listed_pairs_of_its_queries_over_the_keys_so_far(rows: slice) -> None:
    x, first, last = listed(), rows.start or 0, rows.stop
    step = x.queries(rows)
    assert torch.equal(step.dense(2, last - first, last), x.dense(2, 5, 5)[:, rows, :last])
    assert torch.equal(step.pairs.dense(2, last - first, last), x.pairs.dense(2, 5, 5)[:, :, rows, :last])


@pytest.mark.parametrize("keys", [5, 7])
def test_causal_attention_with_a_bias_of_offsets_sees_no_later_key(keys: int) -> None:
    """The fused kernel reads such a bias as a view of one vector, which also has the offsets that are forbidden."""
    queries = 5
    index = Toeplitz(torch.arange(queries + keys - 1)[None], queries, keys)
    bias = Lookup(torch.randn(queries + keys - 1, 2), torch.arange(queries + keys - 1)[None], index)
    q, (k, v) = torch.randn(1, 2, queries, 8), torch.randn(2, 1, 2, keys, 8)
    terms = Terms(bias=(bias,), causal=True)
    with torch.no_grad():
        torch.testing.assert_close(attend(q, k, v, terms, "sdpa"), attend(q, k, v, terms, "dense"))


@pytest.mark.parametrize("kernel", ["sdpa", "tables", "small"])
def test_what_layers_share_has_a_gradient_after_a_pass_without_one(kernel: str) -> None:
    table = torch.randn(4, 2, requires_grad=True)
    shared = Lookup(table, torch.arange(4)[None], torch.randint(4, (1, 3, 3))).share()
    q, k, v = torch.randn(3, 1, 2, 3, 8)
    with torch.no_grad():
        attend(q, k, v, Terms(bias=(shared,)), kernel)
    attend(q, k, v, Terms(bias=(shared,)), kernel).square().sum().backward()
    assert table.grad is not None
    assert table.grad.abs().sum() > 0
