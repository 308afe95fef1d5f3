"""Every kernel means what dense means, for every combination of terms; dense means the equation, pair by pair."""

from __future__ import annotations

import itertools
import math
import re
import sys
from collections.abc import Collection
from dataclasses import replace
from functools import lru_cache, partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from structpe.attention import KERNELS, Call, Kernel, attend, watching
from structpe.attention.attend import kernel as kernel_of
from structpe.attention.feature_maps import elu_plus_one
from structpe.errors import StructPEError, UnsupportedTerm
from structpe.positions import Site
from structpe.terms import Factor, Lookup, Pairs, SparsePairs, Terms
from tests.attention.drawing import (
    FIELDS,
    HERE,
    PADDING_ONLY,
    B,
    D,
    H,
    M,
    N,
    Sizes,
    drawn,
    everything,
    settled,
    tables_of,
)
from tests.attention.oracle import attends
from tests.examples import examples
from tests.positions.cases import encoded, labelled_path, noise
from tests.positions.cases import made as of_model
from tests.representatives import only
from tests.together import together

OTHERS = sorted(set(HERE) - {"dense"})


def inputs(seed: int = 0, n: int = N, m: int = M) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(B, H, size, D, generator=generator, dtype=torch.float64).requires_grad_() for size in (n, m, m)]


def outcome(
    kernel: str, padding_only: bool, some: Collection[str], seed: int, batch: int, n: int = N, m: int = M
) -> list[Tensor]:
    """The output, and the gradients of queries, keys, values and of every number in the terms."""
    q, k, v = inputs(seed, n, m)
    terms = drawn(some, seed, batch, Sizes(n=n, m=m), grad=True, padding_only=padding_only)
    out = attend(q, k, v, terms, kernel)
    weigh = torch.randn(out.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    (out * weigh).sum().backward()
    grads = [x.grad for x in (q, k, v, *tables_of(terms))]
    assert all(g is None or g.isfinite().all() for g in grads)
    return [out.detach(), *(g for g in grads if g is not None)]


dense_outcome = lru_cache(200)(partial(outcome, "dense"))


def assert_same(kernel: str, some: Collection[str], *case: int) -> None:
    padding_only, some = kernel in PADDING_ONLY, frozenset(some)
    mine = outcome(kernel, padding_only, some, *case)
    for a, b in zip(mine, dense_outcome(padding_only, some, *case), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kernel", OTHERS)
def test_every_pair_of_fields(kernel: str) -> None:
    """What dense says of a pair is computed once for all kernels."""
    for some in covering(kernel):
        seed = sum(2 ** FIELDS.index(field) for field in some)
        assert_same(kernel, some, seed, (1, B)[len(some) % 2])


def covering(kernel: str) -> list[set[str]]:
    """No field, each alone, and sets of up to five, in which any two that may go together are met."""
    able, needs = sorted(KERNELS[kernel].supports), KERNELS[kernel].needs
    pairs = [set(pair) for pair in itertools.combinations(able, 2) if settled(needs.union(pair)).issuperset(pair)]
    found: list[set[str]] = [set(), *({field} for field in able)]
    while pairs:
        some = set(pairs[0])
        for field in able:
            more = some | {field}
            if len(more) <= 5 and settled(more | needs) >= more and any({field, other} in pairs for other in some):
                some = more
        pairs = [pair for pair in pairs if not pair <= some]
        found.append(some)
    return [settled(some | needs) for some in found]


@pytest.mark.parametrize("kernel", OTHERS)
@given(some=st.sets(st.sampled_from(FIELDS)), seed=st.integers(0, 10**6), batch=st.sampled_from([1, B]))
@examples(15)
def test_any_combination_of_fields(kernel: str, some: set[str], seed: int, batch: int) -> None:
    assert_same(kernel, settled(some & KERNELS[kernel].supports | KERNELS[kernel].needs), seed, batch)


@together("kernel", OTHERS)
@together(("n", "m"), [(1, 6), (4, 7), (6, 1)])
def test_other_numbers_of_queries_and_keys(kernel: str, n: int, m: int) -> None:
    for some in everything(kernel):
        assert_same(kernel, some, n, B, n, m)


@pytest.mark.parametrize("kernel", HERE)
def test_a_query_that_may_attend_nowhere_gets_zeros_and_gives_no_gradient(kernel: str) -> None:
    able, needs = KERNELS[kernel].supports, KERNELS[kernel].needs
    some_fields = [{"mask"}, {"mask", "bias"}, {"mask", "key"}, *everything(kernel)]
    for some in (settled(some & able | needs) - {"projection"} for some in some_fields):
        for n, m in ((N, M), (M + 2, M)):
            q, k, v = inputs(0, n, m)
            terms = drawn(some, 3, sizes=Sizes(n=n, m=m), grad=True, padding_only=kernel in PADDING_ONLY)
            out = attend(q, k, v, terms, kernel)
            out.sum().backward()
            nowhere = ~torch.tensor(
                [[[any(attends(terms, b, h, i, j, m - n) for j in range(m)) for i in range(n)] for h in range(H)]
                 for b in range(B)]
            )  # fmt: skip
            assert nowhere.any()
            assert not out[nowhere].any()
            assert out[~nowhere].any(-1).all()
            for x in (q, k, v, *tables_of(terms)):
                assert x.grad is None or x.grad.isfinite().all()
            assert q.grad is not None
            assert not q.grad[nowhere].any()


@together("scale", [-1.5, 0.0, 2.0])
@together("kernel", [name for name in HERE if "scale" in KERNELS[name].supports])
def test_a_scale_of_any_sign_is_that_of_the_query(kernel: str, scale: float) -> None:
    q, k, v = inputs()
    needed = Terms(pairs=(every_pair(),)) if needs_pairs(kernel) else Terms()
    out = attend(q, k, v, Terms(scale=scale) + needed, kernel)
    torch.testing.assert_close(out, torch.softmax(scale * q @ k.transpose(-1, -2) / math.sqrt(D), dim=-1) @ v)


@together("form", ["tensor", "lookup", "listed"])
@together("kernel", [name for name in HERE if "bias" in KERNELS[name].supports])
def test_a_bias_of_minus_infinity_is_a_mask(kernel: str, form: str) -> None:
    """Also of whole rows, and where a mask leaves only pairs that the bias forbids."""
    forbidden = torch.rand(B, N, M) < 0.4
    forbidden[:, 1], forbidden[:, 2, :2] = True, True
    mask = torch.ones(B, 1, N, M, dtype=torch.bool)
    mask[:, :, 2, 2:] = False
    table = torch.tensor([[0.0], [-math.inf]], dtype=torch.float64, requires_grad=True)
    index = forbidden.long()
    biases = {
        "tensor": torch.zeros(B, 1, N, M, dtype=torch.float64).masked_fill(forbidden[:, None], -math.inf),
        "lookup": Lookup(table, torch.arange(2)[None], index),
        "listed": SparsePairs(table, index.flatten(), every_pair()),
    }
    needed = Terms(pairs=(every_pair(),)) if needs_pairs(kernel) else Terms()
    found = []
    for terms in (Terms(bias=(biases[form],), mask=(mask,)), Terms(mask=(mask & ~forbidden[:, None],))):
        q, k, v = inputs()
        out = attend(q, k, v, terms + needed, kernel)
        found.append((out, *torch.autograd.grad(out.square().sum(), (q, k, v), retain_graph=True)))
        assert not out[:, :, 1:3].any()
    torch.testing.assert_close(*found)
    if form != "tensor":
        assert torch.autograd.grad(found[0][0].sum(), table)[0].isfinite().all()


@together("dtype", [torch.float32, torch.bfloat16, torch.float16])
@together("kernel", HERE)
def test_it_gets_zeros_in_any_precision_with_and_without_gradients(kernel: str, dtype: torch.dtype) -> None:
    """The fused kernels are chosen by dtype and by whether gradients are needed, and differ in what they do here."""
    mask = torch.ones(B, 1, 1 if kernel in PADDING_ONLY else N, M, dtype=torch.bool)
    mask[0, :, :2] = False
    needed = replace(drawn(KERNELS[kernel].needs - {"pairs"}, 0), pairs=(every_pair(),) if needs_pairs(kernel) else ())
    nowhere, somewhere = ((0,), (1,)) if kernel in PADDING_ONLY else ((0, slice(None), 1), (0, slice(None), 2))
    bias, forbidding = torch.zeros(1, H, N, M, dtype=dtype), torch.zeros(mask.shape, dtype=dtype)
    factor = Factor(*torch.ones(2, 1, 1, 1, 3, dtype=dtype))
    said = [Terms(mask=(mask,)), Terms(bias=(forbidding.masked_fill(~mask, -math.inf),))]
    for terms in [*said, said[0] + Terms(bias=(bias,)), *(each + Terms(factors=(factor,)) for each in said)]:
        if not KERNELS[kernel].can((terms + needed).used()):
            continue
        for gradients in (False, True):
            q, k, v = (x.detach().to(dtype).requires_grad_(gradients) for x in inputs())
            out = attend(q, k, v, terms + cast(needed, dtype), kernel)
            assert not out[nowhere].any()
            assert out[somewhere].any()
            if gradients:
                out.sum().backward()
                assert all(x.grad is not None and x.grad.isfinite().all() for x in (q, k, v))


NUMBERS = ["bias", "factors", "gate", "key", "product", "projection", "query", "value"]


@pytest.mark.parametrize("kernel", HERE)
def test_what_encodings_say_in_float64_may_be_added_to_half_precision(kernel: str) -> None:
    q, k, v = (x.detach().bfloat16() for x in inputs())
    for field in KERNELS[kernel].supports & set(NUMBERS):
        terms = drawn(settled({field} | KERNELS[kernel].needs), 0)
        if not KERNELS[kernel].can(terms.used()):
            continue
        out = attend(q, k, v, cast(terms, torch.bfloat16), kernel)
        assert out.dtype == torch.bfloat16
        wide = attend(q.double(), k.double(), v.double(), terms)
        torch.testing.assert_close(out.double(), wide, rtol=0.05, atol=0.05)


def every_pair() -> Pairs:
    return Pairs(*torch.ones(B, N, M).nonzero().T)


def needs_pairs(kernel: str) -> bool:
    return "pairs" in KERNELS[kernel].needs


def cast(terms: Terms, dtype: torch.dtype) -> Terms:
    """A drawn feature map computes in float64."""
    feature_map = terms.feature_map
    return terms if feature_map is None else replace(terms, feature_map=lambda x: feature_map(x.double()).to(dtype))


def with_field(kernel: str, field: str) -> Terms:
    return drawn(settled({field} | KERNELS[kernel].needs), 0, padding_only=kernel in PADDING_ONLY)


UNABLE = [
    (kernel, field)
    for kernel in sorted(KERNELS)
    for field in FIELDS
    if not with_field(kernel, field).used() <= KERNELS[kernel].supports
]


@together(("kernel", "field"), UNABLE)
def test_a_kernel_names_the_kernels_that_can(kernel: str, field: str) -> None:
    terms = with_field(kernel, field)
    able = ", ".join(n for n in HERE if KERNELS[n].can(terms.used()))
    with pytest.raises(UnsupportedTerm) as caught:
        attend(*inputs(), terms, kernel)
    assert str(caught.value) == f"kernel {kernel!r} does not compute {field}; these can: {able} (or 'auto')"


@pytest.mark.parametrize("kernel", [name for name in sorted(KERNELS) if KERNELS[name].needs])
def test_a_kernel_for_some_terms_alone_says_for_which(kernel: str) -> None:
    with pytest.raises(UnsupportedTerm) as caught:
        attend(*inputs(), Terms(scale=2.0) if kernel not in PADDING_ONLY else None, kernel)
    (needed,) = KERNELS[kernel].needs
    assert f"kernel {kernel!r} computes attention with {needed} only, which these terms lack" in str(caught.value)
    assert "these can: dense, products, sdpa, small, tables, tiled (or 'auto')" in str(caught.value)


@together(
    ("some", "text"),
    [
        (
            {"feature_map", "bias", "scale"},
            "with a feature map attention has no score that bias, scale could change; use position models that act by "
            "causal, maps, mask, pairs, projection, value",
        ),
        ({"projection", "causal"}, "with a projection, keys are mixtures, which cannot be masked for each query"),
        ({"projection", "pairs"}, "leave out causal attention and listed pairs; a mask must be"),
    ],
)
@together("kernel", ["auto", *sorted(KERNELS)])
def test_what_cannot_be_said_is_refused_by_all(kernel: str, some: set[str], text: str) -> None:
    with pytest.raises(UnsupportedTerm, match=re.escape(text)):
        attend(*inputs(), drawn(some, 0), kernel)


def test_a_mask_of_pairs_is_refused_beside_a_projection() -> None:
    terms = drawn({"projection"}, 0) + Terms(mask=(torch.ones(1, 1, N, M, dtype=torch.bool),))
    with pytest.raises(UnsupportedTerm, match=re.escape("a mask must be (b or 1, h or 1, 1, m)")):
        attend(*inputs(), terms)


def test_an_unknown_kernel() -> None:
    with pytest.raises(
        StructPEError, match=rf"no attention kernel named 'flash'\. .*Known: {', '.join(sorted(KERNELS))}"
    ):
        attend(*inputs(), kernel="flash")


@given(some=st.sets(st.sampled_from(FIELDS)))
def test_auto_takes_the_cheapest_that_can(some: set[str]) -> None:
    terms = drawn(settled(some), 1, padding_only=True)
    with watching() as noted:
        found = attend(*inputs(), terms)
    (choice,) = noted
    able = {name for name, each in KERNELS.items() if each.suits(choice.call)}
    assert choice.kernel == min(able, key=lambda name: KERNELS[name].cost(choice.call))
    assert {name for name, each in choice.others.items() if isinstance(each, float)} == able
    assert torch.equal(found, attend(*inputs(), terms, choice.kernel))


def test_a_kernel_of_ones_own_is_taken_where_it_suits_and_is_the_cheapest() -> None:
    def few_heads(call: Call) -> str | None:
        return f"is for one head, and there are {call.shape[1]}" if call.shape[1] > 1 else None

    @kernel_of("nothing", supports="bias", cost=lambda call: 0.0, limits=few_heads)
    def nothing(q: Tensor, k: Tensor, v: Tensor, terms: Terms, dropout: float) -> Tensor:
        return torch.zeros_like(q)

    try:
        one, two = torch.ones(1, 1, 3, 4), torch.ones(1, 2, 3, 4)
        assert not attend(one, one, one).any()
        assert attend(one, one, one, Terms(causal=True)).all()
        with watching() as noted:
            assert attend(two, two, two).all()
        assert noted[0].others["nothing"] == "is for one head, and there are 2"
    finally:
        KERNELS.forget("nothing")


@pytest.mark.parametrize(
    ("some", "name"),
    [
        ((), "sdpa"),
        (("bias", "mask", "maps"), "sdpa"),
        (("value",), "tables"),
        (("gate", "act"), "tables"),
        (("product",), "dense"),
        (("causal", "bias"), "sdpa"),
        (("causal", "value"), "tables"),
        (("projection", "key"), "sdpa"),
        (("pairs",), "masked"),
        (("pairs", "causal", "product", "value"), "edges"),
        (("pairs", "feature_map"), "edges"),
        (("feature_map",), "linear"),
        (("feature_map", "maps", "causal"), "linear"),
        (("feature_map", "projection"), "linear"),
        (("feature_map", "value"), "dense"),
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
    assert asked[0] == name  # "masked" asks another kernel


def test_the_reference_computes_every_field() -> None:
    assert KERNELS["dense"].supports == frozenset(FIELDS)


@pytest.mark.parametrize("kernel", only(HERE, "dense", "edges", "tiled"))
def test_dropout_keeps_the_mean(kernel: str) -> None:
    q, k, v = (x.detach() for x in inputs())
    terms = drawn(settled({"bias"} | KERNELS[kernel].needs), 0)
    kept = attend(q, k, v, terms, kernel)
    dropped = torch.stack([attend(q, k, v, terms, kernel, dropout=0.3) for _ in range(250)])
    assert not torch.equal(dropped[0], dropped[1])
    torch.testing.assert_close(dropped.mean(0), kept, rtol=0, atol=0.2)


@together("kernel", HERE)
def test_what_dropout_draws_differs_by_structure_head_and_key(kernel: str) -> None:
    """And by query, but for the kernel that has no weights: it drops a key for all queries of a head."""
    n, h = 24, 3
    q = k = torch.zeros(2, h, n, n)
    v = torch.eye(n).expand(2, h, n, n)
    every = Pairs(*torch.ones(2, n, n).nonzero().T)
    terms = Terms(feature_map=torch.cos) if kernel == "linear" else Terms()
    terms += Terms(pairs=(every,)) if needs_pairs(kernel) else Terms()
    kept = attend(q, k, v, terms, kernel, dropout=0.5) * n  # all weights are 1/n
    assert set(kept.round(decimals=4).unique().tolist()) == {0.0, 2.0}
    for axis in range(4):
        alike = torch.equal(kept, kept.roll(1, axis))
        assert alike == (kernel == "linear" and axis == 2), f"axis {axis}"


@pytest.mark.parametrize("name", ["disan", "swin-windows"])
def test_auto_leaves_a_mask_of_pairs_to_dense_where_keys_are_summed_first(name: str) -> None:
    """Of a model with such a mask and a feature map, as of one whose masks are of keys only."""
    model = of_model(name)
    terms = model.terms(model.prepare(encoded(model, [labelled_path(6)])), Site(0))
    terms = Terms(mask=terms.mask, feature_map=elu_plus_one)
    q, k, v = (noise(1, 2, 6, 4, seed=i) for i in range(3))
    assert any(mask.shape[-2] > 1 for mask in terms.mask)
    with watching() as seen:
        found = attend(q, k, v, terms)
    assert seen[0].kernel == "dense"
    assert seen[0].others["linear"] == "sums keys first, and a mask depends on the query"
    torch.testing.assert_close(found, attend(q, k, v, terms, "dense"))
    with watching() as seen:
        attend(q, k, v, Terms(mask=(torch.ones(1, 1, 1, 6, dtype=torch.bool),), feature_map=elu_plus_one))
    assert seen[0].kernel == "linear"


def test_the_root_is_of_the_width_after_the_maps() -> None:
    q, k, v = (noise(1, 2, 5, 4, seed=i) for i in range(3))
    twice = Terms(maps=(lambda q, k: (torch.cat([q, q], -1), torch.cat([k, k], -1)),))
    scores = 2 * q @ k.mT / math.sqrt(8)
    for kernel in ("dense", "sdpa", "tables", "tiled", "small"):
        torch.testing.assert_close(attend(q, k, v, twice, kernel), scores.softmax(-1) @ v)


def test_a_mask_of_pairs_does_not_go_with_the_linear_kernel() -> None:
    terms = drawn({"feature_map", "mask"}, 0)
    text = (
        "kernel 'linear' sums keys first, so a mask cannot depend on the query; one is "
        "(2, 1, 5, 5); give (b or 1, h or 1, 1, m), Terms(causal=True) for a causal mask, or listed pairs; or use "
        "kernel 'dense', whose time and memory are quadratic"
    )
    with pytest.raises(UnsupportedTerm, match=re.escape(text)):
        attend(*inputs(), terms, "linear")
    attend(*inputs(), terms, "dense")


@pytest.mark.parametrize(("n", "m"), [(1, 300), (128, 128), (129, 129), (200, 327), (300, 140)])
def test_causal_sums_in_chunks_are_those_of_dense(n: int, m: int) -> None:
    assert_same("linear", {"feature_map", "causal", "mask", "maps"}, 0, B, n, m)


@pytest.mark.parametrize("pairs", [1, 2, 49, 50, 51])
def test_blocks_of_any_number_of_pairs_are_those_of_dense(pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the 50 pairs of a batch: one by one, a part, all but one, all, more than all."""
    monkeypatch.setattr(sys.modules["structpe.attention.edges"], "_BLOCK", pairs * H * D + H * D - 1)
    q, k, v = inputs()
    terms = Terms(pairs=(every_pair(),)) + drawn({"key", "query", "product", "value", "factors"}, 1, grad=True)
    found = []
    for kernel in ("edges", "dense"):
        out = attend(q, k, v, terms, kernel)
        found.append((out, *torch.autograd.grad(out.square().sum(), (q, k, v, *tables_of(terms)))))
    torch.testing.assert_close(*found, rtol=1e-9, atol=1e-9)


@together("chunk", [1, 2, 4, 5, 6, 7])
@together(("n", "m"), [(5, 5), (5, 7), (7, 5), (1, 5)])
def test_chunks_of_any_number_of_units_are_those_of_dense(
    chunk: int, n: int, m: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["structpe.attention.linear"], "_CHUNK", chunk)
    assert_same("linear", {"feature_map", "causal", "mask", "maps"}, 0, B, n, m)


def test_sums_over_many_keys_are_of_float32_also_in_half_precision() -> None:
    """What comes out is rounded once: the sums lose nothing more."""
    n, once = 4096, torch.finfo(torch.bfloat16).eps / 2
    q, k = torch.rand(2, 1, 1, n, 4).bfloat16().unbind(0)
    v = torch.rand(1, 1, n, 4).bfloat16()
    for causal in (False, True):
        terms = Terms(feature_map=torch.abs, causal=causal)
        found = attend(q, k, v, terms, "linear")
        wide = attend(q.double(), k.double(), v.double(), terms, "linear")
        assert found.dtype == torch.bfloat16
        torch.testing.assert_close(found.double(), wide, rtol=1.05 * once, atol=0)


@pytest.mark.parametrize("some", [set(), {"bias", "key", "product", "value"}, {"feature_map"}])
def test_no_pair_at_all_gives_zeros(some: set[str]) -> None:
    q, k, v = inputs()
    none = torch.zeros(0, dtype=torch.int64)
    terms = drawn(some, 0, grad=True) + Terms(pairs=(Pairs(none, none, none),))
    out = attend(q, k, v, terms, "edges")
    assert not out.any()
    out.sum().backward()
    assert not any(x.grad.any() for x in (q, k, v) if x.grad is not None)


def test_gradients_of_gradients_along_pairs_are_those_of_dense() -> None:
    q, k, v = inputs()
    terms = drawn({"pairs", "value", "key"}, 0)
    found = []
    for kernel in ("edges", "dense"):
        (grad,) = torch.autograd.grad(attend(q, k, v, terms, kernel).square().sum(), q, create_graph=True)
        found.append(torch.autograd.grad(grad.square().sum(), (q, k, v)))
    for mine, dense in zip(*found, strict=True):
        torch.testing.assert_close(mine, dense, rtol=1e-9, atol=1e-9)


def test_no_terms_are_plain_attention() -> None:
    q, k, v = inputs()
    plain = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(D), dim=-1) @ v
    for kernel in (name for name in HERE if not KERNELS[name].needs):
        torch.testing.assert_close(attend(q, k, v, None, kernel), plain)
        torch.testing.assert_close(attend(q, k, v, Terms(), kernel), plain)


@pytest.mark.parametrize("shapes", [((1, 2, 3, 4), (1, 2, 3, 5)), ((1, 2, 3, 4), (1, 1, 3, 4)), ((2, 3, 4), (2, 3, 4))])
def test_shapes_that_do_not_fit_are_shown(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    q, k = (torch.zeros(shape) for shape in shapes)
    attend_unchecked = attend.__wrapped__ if "__wrapped__" in vars(attend) else attend  # behind the tests' shape checks
    with pytest.raises(StructPEError, match=r"attend takes q \(b, h, n, d\) and k, v \(b, h, m, d\); the shapes are"):
        attend_unchecked(q, k, k)


def test_units_before_heads_are_seen() -> None:
    """Where the terms fit then; a map, which knows no shapes, says what it was given."""
    q = torch.zeros(1, 7, 2, 4)
    attend_unchecked = attend.__wrapped__ if "__wrapped__" in vars(attend) else attend  # behind the tests' shape checks
    with pytest.raises(StructPEError, match=r"must be \(1 or 1, 7 or 1, 2 or 1, 2 or 1\)\. With units before heads"):
        attend_unchecked(q, q, q, Terms(bias=(torch.zeros(1, 2, 7, 7),)))
    with pytest.raises(StructPEError, match=r"must be \(1 or 1, 7 or 1, 2 or 1, 2 or 1\)$"):
        attend_unchecked(q, q, q, Terms(bias=(torch.zeros(1, 2, 5, 5),)))
    turn = torch.zeros(7, 4)
    with pytest.raises(StructPEError, match=r"a map, such as a rotation, does not take queries of shape \(1, 7,"):
        attend_unchecked(q, q, q, Terms(maps=(lambda q, k: (q * turn, k * turn),)))
