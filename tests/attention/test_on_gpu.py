"""What attention does otherwise on a GPU, tried on a CPU: sums of gradients by products, and which kernel is taken."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from structpe.attention import gather
from structpe.attention.attend import KERNELS, Call, cheapest
from structpe.attention.sdpa import sdpa
from structpe.terms import Terms

SHAPE = (8, 8, 512, 512, 64)


@given(st.sampled_from([(1, 1), (1, 3), (3, 1), (3, 3)]), st.integers(1, 6), st.integers(1, 9), st.integers(0, 99))
def test_gathered_scalars_and_their_gradients_are_those_of_the_scatter(
    structures: tuple[int, int], n: int, rows: int, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    of_rows, of_index = structures
    table = torch.randn(of_rows, 2, rows, dtype=torch.float64, generator=generator, requires_grad=True)
    index = torch.randint(rows, (of_index, n, n + 1), generator=generator)
    found, expected = gather._picked(table, index), gather._gathered(table, index)
    assert torch.equal(found, expected)
    upstream = torch.randn(found.shape, dtype=torch.float64, generator=generator)
    grads = [torch.autograd.grad(each, table, upstream)[0] for each in (found, expected)]
    torch.testing.assert_close(*grads)


def test_sums_in_parts_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    table = torch.randn(1, 2, 7, dtype=torch.float64, requires_grad=True)
    index = torch.randint(7, (3, 11, 13))
    whole = torch.autograd.grad(gather._picked(table, index).square().sum(), table)
    monkeypatch.setattr(gather, "_PART", 100)  # four pairs of each structure at a time
    torch.testing.assert_close(torch.autograd.grad(gather._picked(table, index).square().sum(), table), whole)


def test_half_precision_is_summed_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    """In bfloat16 a sum of ones ends at 256."""
    monkeypatch.setattr(gather, "_PART", 2)  # one pair at a time
    table = torch.zeros(1, 1, 2, dtype=torch.bfloat16, requires_grad=True)
    (grad,) = torch.autograd.grad(gather._picked(table, torch.zeros(1, 32, 32, dtype=torch.long)).sum(), table)
    assert grad.tolist() == [[[1024.0, 0.0]]]


@pytest.mark.parametrize(("width", "taken"), [(19, 24), (20, 24), (24, 24), (1, 8)])
def test_heads_of_a_gpu_are_multiples_of_8(width: int, taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch's kernels that keep no scores refuse others, and it computes all n m weights then."""
    seen: list[tuple[int, ...]] = []
    fused = functional.scaled_dot_product_attention

    def watched(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
        seen.extend(tuple(x.shape) for x in (q, k, v))
        return fused(q, k, v, **options)

    monkeypatch.setattr(functional, "scaled_dot_product_attention", watched)
    q, k, v = (torch.empty(2, 3, n, width, device="meta") for n in (5, 6, 6))
    assert sdpa(q, k, v, Terms()).shape == q.shape
    assert seen == [(2, 3, n, taken) for n in (5, 6, 6)]


@pytest.mark.parametrize("shape", [(128, 8, 30, 30, 32), SHAPE, (1, 8, 8192, 8192, 64)])
def test_auto_takes_what_an_h100_computes_fastest(shape: tuple[int, int, int, int, int]) -> None:
    call = Call(frozenset({"bias", "mask"}), "cuda", torch.float32, shape, gradients=True)
    assert cheapest(call).name == "sdpa"
    assert cheapest(replace(call, used=frozenset())).name == "sdpa"
    assert cheapest(replace(call, used=frozenset({"key"}))).name == "sdpa"
    assert cheapest(replace(call, used=frozenset({"key", "value"}))).name == "tables"
    assert cheapest(replace(call, used=frozenset({"bias", "gate"}))).name != "dense"


def test_costs_of_a_cpu_are_its_own() -> None:
    call = Call(frozenset({"bias"}), "cpu", torch.float32, SHAPE, gradients=True)
    assert call.time(1.0, 2.0, 3.0, (4.0, 5.0), gpu=(1e9, 1e9, 1e9)) == 1 + 4 + (2 + 3 * 64 + 5) * call.cells
    there = replace(call, device="cuda")
    assert there.time(1.0, 2.0, 3.0, (4.0, 5.0), gpu=(7.0, 8.0, 9.0)) == 7 + (8 + 9) * call.cells
    assert there.time(1.0, 2.0, 3.0, (4.0, 5.0)) == call.time(1.0, 2.0, 3.0, (4.0, 5.0))


@pytest.mark.parametrize("used", [{"bias"}, {"key", "value"}])
def test_auto_saves_memory_where_a_gpu_would_lack_it(used: set[str]) -> None:
    call = Call(frozenset(used), "cuda", torch.float32, (1, 8, 40_000, 40_000, 64), gradients=True)
    assert cheapest(call).name == "tiled"
    assert KERNELS["sdpa" if "value" not in used else "tables"].unsuited(call) == (
        "writes a number for each of 12,800,000,000 scores, and on a GPU auto allows 2,147,483,648 at most"
    )
    assert cheapest(replace(call, dtype=torch.bfloat16)).name in ("sdpa", "tables")  # tiles are of float32
    assert cheapest(replace(call, used=frozenset())).name == "sdpa"  # FlashAttention keeps no score
