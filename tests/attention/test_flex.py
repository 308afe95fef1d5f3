"""FlexAttention: its modifications of scores and masks are dense, in a forward pass without compilation."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.attention import flex_attention as of_torch

from structpe.adapters import pytorch
from structpe.attention import (
    KERNELS,
    Call,
    Layout,
    Probe,
    attend,
    attend_ragged,
    disable,
    enable,
    flex,
    probe,
    probing,
)
from structpe.attention import flex as flex_module
from structpe.attention.attend import cheapest
from structpe.attention.probing import compared
from structpe.errors import StructPEError
from structpe.terms import Factor, Lookup, Pairs, SparsePairs, Terms, Toeplitz
from tests.attention.drawing import Sizes, drawn, settled, tables_of
from tests.attention.oracle import attends
from tests.examples import examples
from tests.representatives import only

FIELDS = sorted(KERNELS["flex"].supports)
SIZES = st.builds(
    Sizes, b=st.integers(1, 2), h=st.integers(1, 3), n=st.integers(0, 5), m=st.integers(0, 5), d=st.integers(1, 4)
)


TRACED = pytest.mark.filterwarnings(
    "ignore:flex_attention called without torch.compile:UserWarning",
    "ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning",
)


@pytest.fixture(autouse=True)
def untraced(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """FlexAttention traces even what it does not compile, which takes a second for each form of terms."""
    monkeypatch.setattr(of_torch, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True)
    yield
    disable("flex")


def numbers(sizes: Sizes, seed: int = 0, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shapes = [(sizes.b, sizes.h, count, sizes.d) for count in (sizes.n, sizes.m, sizes.m)]
    return [torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes]


def assert_dense(terms: Terms, sizes: Sizes, seed: int = 0) -> Tensor:
    q, k, v = numbers(sizes, seed)
    found = flex.eager(q, k, v, terms)
    torch.testing.assert_close(found, attend(q, k, v, terms, "dense"), rtol=1e-9, atol=1e-9)
    return found


@pytest.mark.parametrize("size", [128, 2])
@given(some=st.sets(st.sampled_from(FIELDS)), seed=st.integers(0, 10**6), sizes=SIZES)
@examples(25)
def test_any_terms_are_those_of_dense(size: int, some: set[str], seed: int, sizes: Sizes) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(flex_module, "_SIZE", size)  # of lists; with 2 there are several blocks
        patched.setattr(flex, "BLOCK", size)
        assert_dense(drawn(settled(some), seed, sizes=sizes), sizes, seed)


@pytest.mark.parametrize("field", FIELDS)
def test_each_field_alone(field: str) -> None:
    for seed in range(3):
        assert_dense(drawn({field}, seed), Sizes(), seed)


def test_factors_are_added_after_the_gate() -> None:
    for seed, some in enumerate([{"factors", "gate"}, {"factors", "act"}, {"factors", "scale"}]):
        assert_dense(drawn(some, seed), Sizes(), seed)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32, torch.int64])
def test_an_index_of_any_type_stays_narrow(dtype: torch.dtype) -> None:
    n, rows = 6, 200
    table, every = torch.randn(rows, 3, dtype=torch.float64), torch.arange(rows)[None]
    most = min(rows, torch.iinfo(dtype).max)
    matrix = Lookup(table, every, torch.randint(most, (2, n, n)).to(dtype))
    diagonals = Lookup(table, every, Toeplitz(torch.randint(most, (1, 2 * n - 1)).to(dtype), n, n))
    assert_dense(Terms(bias=(matrix, diagonals)), Sizes(n=n, m=n))
    assert flex_module._narrow(matrix.index).dtype == (torch.int32 if dtype == torch.int64 else dtype)


@pytest.mark.slow
@TRACED
def test_traced_it_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU, where it is traced and compiled."""
    monkeypatch.setattr(of_torch, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", False)
    some = {"bias", "gate", "key", "query", "mask", "causal", "pairs", "factors", "act", "scale"}
    q, k, v = numbers(Sizes(), dtype=torch.float32)
    found, terms = [], drawn(some, 3)
    with torch.no_grad():
        found = [compute(q, k, v, terms) for compute in (flex.eager, KERNELS["dense"].compute)]
    torch.testing.assert_close(found[0], found[1].float())


SOME = (
    {"bias", "factors", "causal", "scale", "maps"},
    {"projection", "key", "gate"},
    {"gate", "act", "pairs"},
    {"key", "query", "mask"},
    {"factors", "act"},
)


@TRACED
@pytest.mark.parametrize(
    "some",
    only(SOME, SOME[0]),
    ids=lambda some: "-".join(sorted(some)),
)
def test_traced_gradients_are_those_of_dense(some: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch refuses gradients on a CPU, since it compiles none; its formulas for them are there all the same."""
    monkeypatch.setattr(of_torch, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", False)
    monkeypatch.setattr(of_torch, "_validate_device", lambda *given: None)
    found, sizes = [], Sizes(n=3, m=4)
    for compute in (flex.eager, KERNELS["dense"].compute):
        terms = drawn(some, 2, sizes=sizes, grad=True)
        q, k, v = (x.requires_grad_() for x in numbers(sizes))
        leaves = [q, k, v, *tables_of(terms)]
        out = compute(q, k, v, terms)
        grads = torch.autograd.grad(out.square().sum(), leaves, allow_unused=True)
        found.append([out] + [torch.zeros_like(x) if g is None else g for x, g in zip(leaves, grads, strict=True)])
    for mine, dense in zip(*found, strict=True):
        assert mine.isfinite().all()
        torch.testing.assert_close(mine, dense, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("form", ["tensor", "lookup", "listed"])
def test_minus_infinity_is_a_mask_and_a_query_without_keys_gets_zero(form: str) -> None:
    sizes = Sizes()
    forbidden = torch.rand(sizes.b, sizes.n, sizes.m) < 0.4
    forbidden[:, 1], forbidden[:, 2, :2] = True, True
    mask = torch.ones(sizes.b, 1, sizes.n, sizes.m, dtype=torch.bool)
    mask[:, :, 2, 2:] = False
    table = torch.tensor([[0.0], [-math.inf]], dtype=torch.float64)
    every = Pairs(*torch.ones_like(forbidden).nonzero().T)
    bias = {
        "tensor": torch.zeros(sizes.b, 1, sizes.n, sizes.m).masked_fill(forbidden[:, None], -math.inf),
        "lookup": Lookup(table, torch.arange(2)[None], forbidden.to(torch.uint8)),
        "listed": SparsePairs(table, forbidden.flatten().long(), every),
    }[form]
    out = assert_dense(Terms(bias=(bias,), mask=(mask,)), sizes)
    assert not out[:, :, 1:3].any()


@given(some=st.sets(st.sampled_from(["mask", "causal", "pairs"]), min_size=1), seed=st.integers(0, 10**6), sizes=SIZES)
@examples(60)
def test_blocks_hold_every_pair_that_attends_and_whole_blocks_no_other(some: set[str], seed: int, sizes: Sizes) -> None:
    if not sizes.n * sizes.m:
        return
    size, terms = 2, drawn(some, seed, sizes=sizes)
    masks = flex_module.masks_of(terms, (sizes.b, sizes.h, sizes.n, sizes.m), size, torch.device("cpu"))
    assert masks is not None
    made = flex.block_mask(masks, sizes.n, sizes.m, size)
    partly = listed(made.kv_num_blocks, made.kv_indices, sizes)
    wholly = listed(made.full_kv_num_blocks, made.full_kv_indices, sizes)
    assert not (partly & wholly).any()
    for b, h in itertools.product(range(sizes.b), range(sizes.h)):
        for i, j in itertools.product(range(partly.shape[2] * size), range(partly.shape[3] * size)):
            within = i < sizes.n and j < sizes.m
            allowed = within and attends(terms, b, h, i, j, sizes.m - sizes.n)
            block = (b, h, i // size, j // size)
            assert not allowed or partly[block] or wholly[block]
            assert allowed or not wholly[block]
            if within:
                assert bool(masks.mod(*(torch.tensor(place) for place in (b, h, i, j)))) == allowed


def listed(count: Tensor, which: Tensor, sizes: Sizes) -> Tensor:
    """(b, h, rows, columns) the blocks that a mask lists."""
    found = torch.zeros(which.shape, dtype=torch.bool)
    for at in itertools.product(*(range(size) for size in count.shape)):
        found[at][which[at][: int(count[at])].long()] = True
    return found.expand(sizes.b, sizes.h, -1, -1)


def test_padding_and_what_follows_are_skipped_by_block() -> None:
    """Structures of 3 and 8 units, padded to 8, causal, in blocks of 2."""
    present = torch.arange(8)[None] < torch.tensor([[3], [8]])
    terms = Terms(mask=(present[:, None, None],), causal=True)
    masks = flex_module.masks_of(terms, (2, 4, 8, 8), 2, torch.device("cpu"))
    assert masks is not None
    made = flex.block_mask(masks, 8, 8, 2)
    both = made.kv_num_blocks + made.full_kv_num_blocks
    assert both[:, 0].tolist() == [[1, 2, 2, 2], [1, 2, 3, 4]]
    assert made.full_kv_num_blocks[:, 0].tolist() == [[0, 1, 1, 1], [0, 1, 2, 3]]


def test_a_ragged_batch_is_that_of_dense(monkeypatch: pytest.MonkeyPatch) -> None:
    def forward(q: Tensor, k: Tensor, v: Tensor, terms: Terms, dropout: float) -> Tensor:
        return flex.eager(q, k, v, terms)

    on_cpu = replace(KERNELS["flex"], compute=forward, devices=frozenset())
    monkeypatch.setitem(KERNELS._classes, "flex", on_cpu)
    layout = Layout.of([3, 5, 1, 9, 9], ends=[3, 5])
    terms = [drawn({"bias", "key", "gate"}, i, sizes=Sizes(b=b, n=n, m=n)) for i, (b, n) in enumerate(layout.shapes)]
    q, k, v = torch.randn(layout.units, 3, 3, 4, dtype=torch.float64).unbind(1)
    found, expected = (attend_ragged(q, k, v, layout, terms, kernel) for kernel in ("flex", "dense"))
    torch.testing.assert_close(found, expected)


def test_a_tensor_is_read_at_one_place_only() -> None:
    """PyTorch computes no gradient of a tensor that a modification reads twice."""
    sizes = Sizes()
    terms = drawn({"bias", "gate", "key", "query", "factors"}, 0, grad=True)
    score_mod, _ = flex.modifications(*numbers(sizes)[:2], terms + terms, captured=True)
    found = [x for x in captured(score_mod) if x.requires_grad]
    assert len(found) > 10
    assert len({id(x) for x in found}) == len(found)


def captured(function: Any) -> Iterator[Tensor]:
    """The tensors that a function and those that it calls close over."""
    for cell in function.__closure__ or ():
        inside = cell.cell_contents
        for x in inside if isinstance(inside, list) else [inside]:
            if isinstance(x, Tensor):
                yield x
            elif callable(x) and getattr(x, "__closure__", None):
                yield from captured(x)


def test_with_several_tables_the_kernel_loads_none_ahead() -> None:
    """Each would have shared memory of its own, which an H200 lacks in half precision: it would not compile there."""
    given: list[Any] = []

    def watched(*qkv: Tensor, **named: Any) -> Any:
        given.append(named["kernel_options"])
        return of_torch.flex_attention(*qkv, **named)

    index = torch.tensor([[[0, 1, 1], [1, 0, 2], [2, 2, 0]]])
    for dtype in (torch.bfloat16, torch.float64):
        q, k, v = numbers(Sizes(b=1, h=2, n=3, m=3, d=2), dtype=dtype)
        bias = Lookup(torch.randn(3, 2, dtype=dtype), torch.arange(3)[None], index)
        key = Lookup(torch.randn(3, 2, 2, dtype=dtype), torch.arange(3)[None], index)
        factor = Factor(torch.randn(1, 2, 3, 1, dtype=dtype), torch.randn(1, 2, 3, 1, dtype=dtype))
        each = [Terms(), Terms(bias=(bias,)), Terms(bias=(bias,), factors=(factor,)), Terms(gate=(bias,))]
        each += [Terms(bias=(bias,), key=(key,)), Terms(bias=(bias, bias)), Terms(gate=(bias,), factors=(factor,))]
        for terms in each:
            found, expected = flex._computed(watched, q, k, v, terms), attend(q, k, v, terms, "dense")
            close = {"rtol": 0.05, "atol": 0.05} if dtype == torch.bfloat16 else {}
            torch.testing.assert_close(found, expected, **close)
        options = pytorch.flex(q, k, each[2])["kernel_options"]  # there factors are read in the score
        assert options == ({"num_stages": 1} if dtype == torch.bfloat16 else None)
    assert given == [None] * 4 + [{"num_stages": 1}] * 3 + [None] * 7


def test_listed_pairs_take_the_blocks_that_they_are_in() -> None:
    n, size = 1 << 12, 128
    around = torch.arange(n)
    pairs = Pairs(torch.zeros(n, dtype=torch.int64), around, (around + 1) % n)
    read, there = flex_module._listed(pairs, torch.arange(1, n + 1), (1, 1, n, n), size)
    assert there.sum() == 2 * n // size
    blocks = next(cell.cell_contents for cell in read.__closure__ or () if cell.cell_contents is not there)
    assert blocks.numel() == (2 * n // size + 1) * size * size < n * n / 10
    some = [read(*(torch.tensor(x) for x in (0, 0, i, j))).item() for i, j in ((0, 1), (9, 10), (n - 1, 0), (9, 11))]
    assert some == [1, 10, n, 0]


# --- where it runs, and who takes it ---


def test_on_another_device_it_is_refused_by_name() -> None:
    q, k, v = numbers(Sizes())
    text = (
        r"kernel 'flex' runs on cuda only, and this is cpu; these can: dense, products, sdpa, small, tables, tiled "
        r"\(or 'auto'\)"
    )
    with pytest.raises(StructPEError, match=text):
        attend(q, k, v, Terms(), "flex")


def test_without_cuda_it_cannot_be_enabled() -> None:
    with pytest.raises(
        StructPEError,
        match=r"kernel 'flex' cannot be enabled for torch.float32 and heads of 64: it runs on cuda only, and this is c",
    ):
        enable("flex", "cpu")
    assert probe("flex", "cpu", torch.float32, 64) == Probe("runs on cuda only, and this is cpu")


def test_without_a_cuda_device_the_probe_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert probe("flex", "cuda", torch.float32, 64).reason == "runs on cuda only, and this machine has no such device"


def test_a_dtype_that_is_none_of_numbers_fails_the_probe() -> None:
    reason = "computes in torch.float64, torch.float32, torch.bfloat16, torch.float16, and this is torch.int64"
    assert probe("flex", "cuda", torch.int64, 64).reason == reason


CALL = Call(frozenset({"bias", "gate"}), "cuda", torch.bfloat16, (8, 8, 1024, 1024, 64))


def test_auto_takes_it_only_where_it_was_enabled(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = KERNELS["flex"]
    assert kernel.unsuited(CALL) == (
        "is not enabled for this device, dtype and width of a head; see structpe.attention.enable"
    )
    assert cheapest(CALL).name != "flex"
    monkeypatch.setattr(probing, "probe", lambda *given: Probe(None, False))
    enable("flex", "cuda", torch.bfloat16, 64)
    assert kernel.suits(CALL)
    assert cheapest(CALL).name == "flex"
    assert cheapest(replace(CALL, used=frozenset())).name == "sdpa"
    assert not kernel.suits(replace(CALL, dtype=torch.float32))
    assert not kernel.suits(replace(CALL, shape=(8, 8, 1024, 1024, 65)))
    assert kernel.suits(replace(CALL, shape=(8, 8, 1024, 1024, 33)))  # as wide as 64, when it is computed
    assert kernel.unsuited(replace(CALL, device="cpu")) == "runs on cuda only, and this is cpu"
    assert kernel.unsuited(replace(CALL, dropout=0.1)) == "has no dropout of attention weights"
    assert kernel.unsuited(replace(CALL, traced=True)) == "is compiled on its own, not as part of a compiled model"
    large = replace(CALL, large=True)
    assert (
        kernel.unsuited(large) == "multiplies each query with all rows of vectors, and there are as many rows as pairs"
    )
    disable("flex")
    assert not kernel.suits(CALL)


def test_deterministic_algorithms_exclude_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "probe", lambda *given: Probe(None, False))
    enable("flex", "cuda", torch.bfloat16, 64)
    monkeypatch.setattr(torch, "are_deterministic_algorithms_enabled", lambda: True)
    assert KERNELS["flex"].suits(CALL)
    assert KERNELS["flex"].unsuited(replace(CALL, gradients=True)) == "sums gradients of tables in an order that varies"
    with pytest.raises(StructPEError, match="kernel 'flex' is not deterministic with gradients, and determin"):
        KERNELS["flex"].compute(*numbers(Sizes()), Terms(), 0.0)


def test_dropout_is_refused() -> None:
    with pytest.raises(StructPEError, match=r"kernel 'flex' has no dropout of attention weights, and 0.1 is asked"):
        KERNELS["flex"].compute(*numbers(Sizes()), Terms(), 0.1)


# --- the probe, of ways that run on a CPU ---


def probed(compute: Any, dtype: torch.dtype = torch.float32) -> Probe:
    return compared(compute, torch.device("cpu"), dtype, 16, ("bias", "gate", "key", "query"))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_a_right_way_passes_the_probe(dtype: torch.dtype) -> None:
    assert probed(KERNELS["tiled"].compute, dtype) == Probe(None, True)


def test_a_table_that_is_not_read_fails_the_probe() -> None:
    reason = probed(lambda q, k, v, terms: attend(q, k, v, replace(terms, bias=terms.bias[:1]), "dense")).reason
    assert reason is not None
    assert re.match("fails with 40 units: RuntimeError: .* appears to not have been used", reason)


def test_a_wrong_output_fails_the_probe() -> None:
    found = probed(lambda q, k, v, terms: attend(q, k, v, terms, "dense") * 1.01)
    assert found.reason is not None
    assert "differs from dense by" in found.reason
    assert found.reason.endswith("in the output, with 40 units")


def test_a_wrong_gradient_of_a_table_fails_the_probe() -> None:
    def halved(q: Tensor, k: Tensor, v: Tensor, terms: Terms) -> Tensor:
        biases = [x.map(lambda t: t / 2 + t.detach() / 2) for x in terms.bias if isinstance(x, Lookup)]
        return attend(q, k, v, replace(terms, bias=tuple(biases)), "dense")

    found = probed(halved)
    assert found.reason is not None
    assert found.reason.endswith("in the gradient of the table of a bias, with 40 units")


@pytest.mark.slow
@TRACED
def test_without_compilation_it_passes_the_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_torch, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", False)
    monkeypatch.setattr(of_torch, "_validate_device", lambda *given: None)
    assert probed(flex.eager).reason is None


def test_what_flex_attention_lacks_on_a_cpu_fails_the_probe() -> None:
    reason = probed(flex.eager).reason
    assert reason is not None
    assert reason.startswith("fails with 40 units: NotImplementedError: FlexAttention does not support backward on CPU")
