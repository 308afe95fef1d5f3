"""Every kernel means what dense means, for every combination of terms; dense means the equation, pair by pair."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from structpe.attention import KERNELS, Kernel, attend
from structpe.errors import StructPEError, UnsupportedTerm
from structpe.terms import Lookup, Terms
from tests.attention.drawing import FIELDS, B, D, H, M, N, drawn, tables_of

OTHERS = sorted(set(KERNELS) - {"dense"})


def inputs(seed: int = 0, n: int = N, m: int = M) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(B, H, size, D, generator=generator, dtype=torch.float64).requires_grad_() for size in (n, m, m)]


def outcome(kernel: str, some: set[str], seed: int, batch: int, n: int = N, m: int = M) -> list[Tensor]:
    """The output, and the gradients of queries, keys, values and of every number in the terms."""
    q, k, v = inputs(seed, n, m)
    terms = drawn(some, seed, batch, n, m, grad=True)
    out = attend(q, k, v, terms, kernel)
    weigh = torch.randn(out.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    (out * weigh).sum().backward()
    grads = [x.grad for x in (q, k, v, *tables_of(terms))]
    assert all(g is None or g.isfinite().all() for g in grads)
    return [out.detach(), *(g for g in grads if g is not None)]


def assert_same(kernel: str, *case: object) -> None:
    mine, dense = outcome(kernel, *case), outcome("dense", *case)
    for a, b in zip(mine, dense, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kernel", OTHERS)
def test_every_pair_of_fields(kernel: str) -> None:
    able = sorted(KERNELS[kernel].supports)
    combinations = [set(some) for size in range(3) for some in itertools.combinations(able, size)]
    for seed, some in enumerate(combinations):
        for batch in (1, B):
            assert_same(kernel, some, seed, batch)


@pytest.mark.parametrize("kernel", OTHERS)
@given(some=st.sets(st.sampled_from(FIELDS)), seed=st.integers(0, 10**6), batch=st.sampled_from([1, B]))
@settings(max_examples=50)
def test_any_combination_of_fields(kernel: str, some: set[str], seed: int, batch: int) -> None:
    assert_same(kernel, some & KERNELS[kernel].supports, seed, batch)


@pytest.mark.parametrize("kernel", OTHERS)
@pytest.mark.parametrize(("n", "m"), [(1, 6), (4, 7), (6, 1)])
def test_other_numbers_of_queries_and_keys(kernel: str, n: int, m: int) -> None:
    for seed in range(5):
        assert_same(kernel, set(KERNELS[kernel].supports), seed, B, n, m)


@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_a_query_that_may_attend_nowhere_gets_zeros_and_gives_no_gradient(kernel: str) -> None:
    for some in ({"mask"}, {"mask", "bias"}, {"mask", "key"}, set(KERNELS[kernel].supports)):
        q, k, v = inputs()
        terms = drawn(some, 3, grad=True)
        out = attend(q, k, v, terms, kernel)
        assert not out[:, :, 1].any()
        out.sum().backward()
        for x in (q, k, v, *tables_of(terms)):
            assert x.grad is None or x.grad.isfinite().all()
        assert q.grad is not None
        assert not q.grad[:, :, 1].any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_it_gets_zeros_in_any_precision_with_and_without_gradients(kernel: str, dtype: torch.dtype) -> None:
    """The fused kernels are chosen by dtype and by whether gradients are needed, and differ in what they do here."""
    mask = torch.ones(B, 1, N, M, dtype=torch.bool)
    mask[:, :, 1] = False
    for bias in ((), (torch.zeros(1, H, N, M, dtype=dtype),)):
        for gradients in (False, True):
            q, k, v = (x.detach().to(dtype).requires_grad_(gradients) for x in inputs())
            out = attend(q, k, v, Terms(mask=(mask,), bias=bias), kernel)
            assert not out[:, :, 1].any()
            assert out[:, :, 2].any()
            if gradients:
                out.sum().backward()
                assert all(x.grad is not None and x.grad.isfinite().all() for x in (q, k, v))


@pytest.mark.parametrize("seed", range(4))
def test_dense_is_the_equation_pair_by_pair(seed: int) -> None:
    q, k, v = (x.detach() for x in inputs(seed))
    t = drawn(FIELDS, seed)
    out = attend(q, k, v, t, "dense")
    for change in t.maps:
        q, k = change(q, k)
    for b, h, i in itertools.product(range(B), range(H), range(N)):
        scores, values = [], []
        for j in range(M):
            at = (b, h, i, j)
            s = q[b, h, i] @ k[b, h, j]
            s = s + sum(q[b, h, i] @ one(x, *at) for x in t.key) + sum(one(x, *at) @ k[b, h, j] for x in t.query)
            s = s + sum((q[b, h, i] * k[b, h, j] * one(x, *at)).sum() for x in t.product)
            s = torch.tanh(s * t.scale / math.sqrt(D))
            for gate in t.gate:
                s = s * one(gate, *at)
            s = s + sum(f.left[b, h, i] @ f.right[b, h, j] for f in t.factors) + sum(one(x, *at) for x in t.bias)
            if all(one(mask, *at) for mask in t.mask):
                scores.append(float(s))
                values.append(v[b, h, j] + sum(one(x, *at) for x in t.value))
        weights = [math.exp(s - max(scores)) for s in scores]
        expected = sum((w / sum(weights) * x for w, x in zip(weights, values, strict=True)), torch.zeros(D).double())
        torch.testing.assert_close(out[b, h, i], expected, rtol=0, atol=1e-9)


def one(x: Lookup | Tensor, b: int, h: int, i: int, j: int) -> Tensor:
    """The quantity of one pair, found the slow way."""
    if isinstance(x, Lookup):
        entry = x.table[x.rows[b, x.index[b, i, j]]]
        return entry[h if len(entry) > 1 else 0]
    b, h, i, j = (place if size > 1 else 0 for place, size in zip((b, h, i, j), x.shape, strict=True))
    return x[b, h, i, j]


@pytest.mark.parametrize("kernel", sorted(KERNELS))
@pytest.mark.parametrize("field", FIELDS)
def test_a_kernel_computes_a_term_or_says_who_can(kernel: str, field: str) -> None:
    terms = drawn({field}, 0)
    if field in KERNELS[kernel].supports:
        attend(*inputs(), terms, kernel)
        return
    able = ", ".join(n for n in sorted(KERNELS) if field in KERNELS[n].supports)
    with pytest.raises(UnsupportedTerm) as caught:
        attend(*inputs(), terms, kernel)
    assert str(caught.value) == f"kernel {kernel!r} does not compute {field}; these can: {able} (or 'auto')"


def test_an_unknown_kernel() -> None:
    with pytest.raises(StructPEError, match=r"no attention kernel named 'flash'\. .*Known: dense, sdpa, tables"):
        attend(*inputs(), kernel="flash")


@given(some=st.sets(st.sampled_from(FIELDS)))
def test_auto_takes_the_cheapest_that_can(some: set[str]) -> None:
    terms = drawn(some, 1)
    cheapest = min((k for k in KERNELS.values() if terms.used() <= k.supports), key=lambda k: k.cost)
    assert torch.equal(attend(*inputs(), terms), attend(*inputs(), terms, cheapest.name))


@pytest.mark.parametrize(
    ("some", "name"),
    [
        ((), "sdpa"),
        (("bias", "mask", "maps"), "sdpa"),
        (("value",), "tables"),
        (("gate", "act"), "tables"),
        (("product",), "dense"),
    ],
)
def test_what_auto_takes(some: tuple[str, ...], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def spy(kernel: Kernel) -> Kernel:
        def compute(q: Tensor, k: Tensor, v: Tensor, terms: Terms, dropout: float) -> Tensor:
            asked.append(kernel.name)
            return kernel.compute(q, k, v, terms, dropout)

        return replace(kernel, compute=compute)

    for name_, kernel in list(KERNELS.items()):
        monkeypatch.setitem(KERNELS._classes, name_, spy(kernel))
    attend(*inputs(), drawn(some, 0))
    assert asked == [name]


def test_the_reference_computes_every_field() -> None:
    assert KERNELS["dense"].supports == frozenset(FIELDS)


@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_dropout_keeps_the_mean(kernel: str) -> None:
    q, k, v = (x.detach() for x in inputs())
    kept = attend(q, k, v, drawn({"bias"}, 0), kernel)
    dropped = torch.stack([attend(q, k, v, drawn({"bias"}, 0), kernel, dropout=0.3) for _ in range(1500)])
    assert not torch.equal(dropped[0], dropped[1])
    torch.testing.assert_close(dropped.mean(0), kept, rtol=0, atol=0.15)


def test_no_terms_are_plain_attention() -> None:
    q, k, v = inputs()
    plain = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(D), dim=-1) @ v
    for kernel in KERNELS:
        torch.testing.assert_close(attend(q, k, v, None, kernel), plain)
        torch.testing.assert_close(attend(q, k, v, Terms(), kernel), plain)


@pytest.mark.parametrize("shapes", [((1, 2, 3, 4), (1, 2, 3, 5)), ((1, 2, 3, 4), (1, 1, 3, 4)), ((2, 3, 4), (2, 3, 4))])
def test_shapes_that_do_not_fit_are_shown(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    q, k = (torch.zeros(shape) for shape in shapes)
    attend_unchecked = attend.__wrapped__ if "__wrapped__" in vars(attend) else attend  # behind the tests' shape checks
    with pytest.raises(StructPEError, match=r"attend takes q \(b, h, n, d\) and k, v \(b, h, m, d\); the shapes are"):
        attend_unchecked(q, k, k)
