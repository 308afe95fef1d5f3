"""Attention among few units of many graphs, written out: what the reference says, in values and in gradients."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from structpe.attention import attend
from structpe.attention._few import few
from structpe.terms import Factor, Terms

B, H, N, D = 70, 4, 20, 3


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


PADDING = torch.arange(N) < torch.arange(B)[:, None, None, None] % (N + 1)
"""Of graphs of all sizes; also of size 0, in which no unit attends to any."""
FORBIDDEN = torch.zeros(1, 1, N, N, dtype=torch.float64).masked_fill(torch.rand(N, N) < 0.5, -math.inf)
FORBIDDEN[:, :, 3] = -math.inf  # a query that may attend nowhere
CASES: dict[str, Callable[[Tensor], Terms]] = {
    "nothing": lambda bias: Terms(),
    "padding": lambda bias: Terms(mask=(PADDING,)),
    "bias": lambda bias: Terms(bias=(bias,)),
    "bias and padding": lambda bias: Terms(bias=(bias,), mask=(PADDING,)),
    "one bias of all": lambda bias: Terms(bias=(bias[:1, :1],), scale=0.5),
    "bias that forbids": lambda bias: Terms(bias=(bias, FORBIDDEN)),
    "bias that forbids, and padding": lambda bias: Terms(bias=(bias[:1], FORBIDDEN), mask=(PADDING,)),
    "bias and a scale below 0": lambda bias: Terms(bias=(bias,), scale=-0.5),
    "bias and a scale of 0": lambda bias: Terms(bias=(bias,), scale=0.0),
    "factors": lambda bias: Terms(factors=(Factor(bias[..., :2], bias[..., 2:4]),), bias=(bias,), scale=0.5),
    "causal bias": lambda bias: Terms(bias=(bias,), causal=True),
}


@pytest.mark.parametrize("case", CASES)
def test_it_is_what_the_reference_says(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v, bias = drawn(B, H, N, D), drawn(B, H, N, D), drawn(B, H, N, D), drawn(B, H, N, N)
    assert few(q, k)
    module = sys.modules["structpe.attention.sdpa"]
    monkeypatch.setattr(module.functional, "scaled_dot_product_attention", None)
    weights = torch.randn(B, H, N, D, dtype=torch.float64)
    found = []
    for kernel in ("sdpa", "dense"):
        out = attend(q, k, v, CASES[case](bias), kernel)
        given = (q, k, v, bias) if "bias" in case or case == "factors" else (q, k, v)
        found.append([out, *torch.autograd.grad((out * weights).sum(), given)])
    for mine, reference in zip(*found, strict=True):
        assert mine.isfinite().all()
        torch.testing.assert_close(mine, reference, rtol=0, atol=1e-9)


def test_dropped_weights_are_made_up_for_on_average() -> None:
    q, k = drawn(B, H, N, D), drawn(B, H, N, D)
    ones = torch.ones(B, H, N, D, dtype=torch.float64)
    out = attend(q, k, ones, None, "sdpa", dropout=0.5)
    assert out.std() > 0.1
    assert out.mean().item() == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize(("b", "n", "m"), [(2, 20, 20), (70, 1, 20), (70, 20, 50), (70, 50, 50)])
def test_for_few_graphs_or_many_units_the_fused_kernel_stays(b: int, n: int, m: int) -> None:
    assert not few(drawn(b, H, n, D), drawn(b, H, m, D))
