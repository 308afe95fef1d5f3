"""The kernel in Triton, run by Triton's interpreter on a CPU, beside the reference and the oracle.

    TRITON_INTERPRET=1 python -m pytest tests/attention/test_triton.py

The interpreter multiplies bfloat16 as if it were integers; ``experiments/speed/gpu.py`` compares that dtype on a GPU.
"""

from __future__ import annotations

import itertools
import os
import sys
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from structpe import attention
from structpe.attention import KERNELS, Call, attend, triton
from structpe.errors import StructPEError, UnsupportedTerm
from structpe.terms import Lookup, Terms, Toeplitz
from tests.attention.drawing import Sizes, drawn, tables_of
from tests.attention.oracle import meaning

KERNEL = KERNELS["triton"]
FIELDS = sorted(KERNEL.supports)


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small blocks, of which even few units have several."""
    if os.environ.get("TRITON_INTERPRET") != "1":  # which Triton reads when it is imported
        pytest.skip("needs the interpreter: pip install triton, and set TRITON_INTERPRET=1")
    monkeypatch.setattr(triton, "BLOCK", 16)
    monkeypatch.setattr(triton, "ROWS", 16)


def numbers(sizes: Sizes, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    generator = torch.Generator().manual_seed(7)
    shapes = [(sizes.b, sizes.h, count, sizes.d) for count in (sizes.n, sizes.m, sizes.m)]
    return [torch.randn(*shape, generator=generator).to(dtype).requires_grad_() for shape in shapes]


def lookup(sizes: Sizes, rows: int, alike: bool = False, heads: int | None = None) -> Lookup:
    """A bias of any pair; of all structures alike, or of each."""
    generator = torch.Generator().manual_seed(rows)
    count = 1 if alike else sizes.b
    index = torch.randint(rows, (count, sizes.n, sizes.m), generator=generator)
    table = torch.randn(rows, heads or sizes.h, generator=generator).requires_grad_()
    return Lookup(table, torch.arange(rows).expand(count, -1), index.to(torch.int16))


def assert_equal(terms: Terms, sizes: Sizes, dtype: torch.dtype = torch.float32, by: float = 1e-4) -> None:
    """Output, and gradients of everything, of the kernel and of the reference in float64."""
    outputs, grads = [], []
    for name, given in (("triton", numbers(sizes, dtype)), ("dense", numbers(sizes, dtype))):
        q, k, v = (x if name == "triton" else x.detach().double().requires_grad_() for x in given)
        out = KERNELS[name].compute(q, k, v, terms, 0.0)
        leaves = [q, k, v, *(x for x in tables_of(terms) if x.requires_grad)]
        upstream = torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).to(out)
        outputs.append(out)
        grads.append(torch.autograd.grad((out * upstream).sum(), leaves, allow_unused=True))
    torch.testing.assert_close(outputs[0].double(), outputs[1], atol=by, rtol=by)
    for found, expected in zip(*grads, strict=True):
        zero = torch.zeros(1, dtype=torch.float64)
        found, expected = (zero if x is None else x.double() for x in (found, expected))
        torch.testing.assert_close(*torch.broadcast_tensors(found, expected), atol=by, rtol=by)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("seed", range(8))
def test_any_terms_are_those_of_the_oracle(seed: int) -> None:
    some = [name for i, name in enumerate(FIELDS) if seed & 1 << i or i == seed % len(FIELDS)]
    sizes = Sizes(n=5, m=5 + seed % 3)
    q, k, v = (x.detach().double() for x in numbers(sizes))
    terms = drawn(some, seed, sizes=sizes)
    narrow = replace(
        terms, maps=tuple(lambda a, b, f=f: tuple(x.float() for x in f(a.double(), b.double())) for f in terms.maps)
    )
    found = KERNEL.compute(q.float(), k.float(), v.float(), narrow, 0.0)
    torch.testing.assert_close(found.double(), meaning(q, k, v, terms), atol=1e-4, rtol=1e-4)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("rows", "alike", "causal"), list(itertools.product((3, 40), (True, False), (True, False))))
def test_a_table_of_pairs_over_several_blocks(rows: int, alike: bool, causal: bool) -> None:
    """40 rows are summed by three programs."""
    sizes = Sizes(n=20, m=23, d=8)
    assert_equal(Terms(bias=(lookup(sizes, rows, alike),), causal=causal), sizes)


@pytest.mark.usefixtures("interpreted")
def test_offsets_of_a_sequence_are_read_from_their_diagonals() -> None:
    sizes = Sizes(n=18, m=23)
    diagonals = torch.randint(5, (1, 18 + 23 - 1)).to(torch.uint8)
    table = torch.randn(5, sizes.h, requires_grad=True)
    assert_equal(Terms(bias=(Lookup(table, torch.arange(5)[None], Toeplitz(diagonals, 18, 23)),)), sizes)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("shape", [(2, 3, 20, 19), (1, 3, 20, 19), (2, 1, 20, 19), (1, 1, 20, 19), (2, 3, 1, 19)])
def test_a_bias_that_is_a_tensor_and_those_who_share_it(shape: tuple[int, ...]) -> None:
    """Triangle attention has a bias (1, h, n, n) that all rows share."""
    sizes = Sizes(n=20, m=19)
    assert_equal(Terms(bias=(torch.randn(shape, requires_grad=True),)), sizes)


@pytest.mark.usefixtures("interpreted")
def test_several_biases_and_masks() -> None:
    sizes = Sizes(n=20, m=20)
    first = lookup(sizes, 4)
    same = Lookup(torch.randn(4, 1, requires_grad=True), first.rows, first.index)
    masks = torch.rand(2, 1, 1, 20) < 0.7, torch.rand(1, 3, 20, 20) < 0.7
    bias = first, same, lookup(sizes, 6), torch.randn(2, 3, 20, 20, requires_grad=True)
    assert_equal(Terms(bias=bias, mask=masks, scale=0.3), sizes)


@pytest.mark.usefixtures("interpreted")
def test_a_query_that_sees_no_key_has_output_and_gradients_zero() -> None:
    sizes = Sizes(n=20, m=17)  # causal: the first three queries see nothing
    q, k, v = numbers(sizes)
    bias = lookup(sizes, 4)
    out = KERNEL.compute(q, k, v, Terms(bias=(bias,), causal=True), 0.0)
    assert out[:, :, :3].eq(0).all()
    grads = torch.autograd.grad(out.square().sum(), (q, k, v, bias.table))
    assert grads[0][:, :, :3].eq(0).all()
    assert all(grad.isfinite().all() for grad in grads)


@pytest.mark.usefixtures("interpreted")
def test_a_row_of_minus_infinity_forbids() -> None:
    sizes = Sizes(n=18, m=18)
    given = lookup(sizes, 3)
    with torch.no_grad():
        given.table[1] = -torch.inf
    assert_equal(Terms(bias=(given,)), sizes)


@pytest.mark.usefixtures("interpreted")
def test_half_precision() -> None:
    sizes = Sizes(n=20, m=20, d=16)
    assert_equal(Terms(bias=(lookup(sizes, 5),)), sizes, torch.float16, by=2e-2)


@pytest.mark.usefixtures("interpreted")
def test_two_runs_give_the_same_bits() -> None:
    sizes = Sizes(n=20, m=20)
    terms = Terms(bias=(lookup(sizes, 5),))
    q, k, v = numbers(sizes)
    runs = [
        torch.autograd.grad(KERNEL.compute(q, k, v, terms, 0.0).sin().sum(), (q, k, v, *tables_of(terms)))
        for _ in range(2)
    ]
    assert all(torch.equal(a, b) for a, b in zip(*runs, strict=True))


@pytest.mark.usefixtures("interpreted")
def test_a_gradient_of_a_gradient_is_refused() -> None:
    q, k, v = numbers(Sizes())
    (grad,) = torch.autograd.grad(KERNEL.compute(q, k, v, Terms(), 0.0).square().sum(), q, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("n", "m"), [(0, 4), (4, 0)])
def test_without_a_pair(n: int, m: int) -> None:
    assert_equal(Terms(), Sizes(n=n, m=m))


def test_what_it_cannot_compute_is_refused() -> None:
    q, k, v = numbers(Sizes())
    with pytest.raises(StructPEError, match=r"has no dropout of attention weights, and 0.1 is asked for; set atten"):
        KERNEL.compute(q, k, v, Terms(), 0.1)
    with pytest.raises(StructPEError, match=r"computes in torch.float32, .*, and this is torch.float64; use kernel 't"):
        KERNEL.compute(q.double(), k.double(), v.double(), Terms(), 0.0)
    wide = torch.randn(1, 1, 2, 300)
    with pytest.raises(StructPEError, match="has no room for heads wider than 256; with factors these have 300"):
        KERNEL.compute(wide, wide, wide, Terms(), 0.0)
    with pytest.raises(StructPEError, match="kernel 'triton' runs on cuda only, and this is cpu"):
        attend(q, k, v, Terms(), "triton")
    with pytest.raises(UnsupportedTerm, match="kernel 'triton' does not compute gate"):
        attend(q, k, v, Terms(gate=(torch.ones(2, 3, 5, 5),)), "triton")


def test_without_triton_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "structpe.attention._triton_kernels", None)
    monkeypatch.delattr(attention, "_triton_kernels", raising=False)
    with pytest.raises(
        StructPEError, match=r"kernel 'triton' needs Triton, which cannot be imported .*; it comes with"
    ):
        KERNEL.compute(*numbers(Sizes()), Terms(), 0.0)


def test_auto_does_not_take_it_before_it_was_enabled() -> None:
    call = Call(frozenset({"bias"}), "cuda", torch.float32, (8, 8, 512, 512, 64))
    reason = KERNEL.unsuited(call)
    assert reason == "is not enabled for this device, dtype and width of a head; see structpe.attention.enable"
    assert KERNEL.limits(replace(call, dropout=0.1)) == "has no dropout of attention weights"
    assert KERNEL.limits(replace(call, traced=True)) == "is compiled on its own, not as part of a compiled model"
    assert KERNEL.limits(replace(call, shape=(1, 1, 9, 9, 257))) == "has no room for heads wider than 256"
