"""Every kernel is the equation pair by pair, in values and gradients, whatever the sizes and the terms."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from structpe.attention import KERNELS, attend
from tests.attention.drawing import FIELDS, HERE, PADDING_ONLY, Sizes, drawn, settled, tables_of
from tests.attention.oracle import meaning
from tests.examples import examples

SIZES = st.builds(
    Sizes, b=st.integers(1, 3), h=st.integers(1, 3), n=st.integers(0, 4), m=st.integers(0, 4), d=st.integers(1, 4)
)


@pytest.mark.parametrize("kernel", HERE)
@given(some=st.sets(st.sampled_from(FIELDS)), seed=st.integers(0, 10**6), sizes=SIZES)
@examples(20)
def test_a_kernel_is_the_equation_pair_by_pair(kernel: str, some: set[str], seed: int, sizes: Sizes) -> None:
    some = settled(some & KERNELS[kernel].supports | KERNELS[kernel].needs)
    found = []
    for compute in (lambda q, k, v, terms: attend(q, k, v, terms, kernel), meaning):
        terms = drawn(some, seed, sizes=sizes, grad=True, padding_only=kernel in PADDING_ONLY)
        generator = torch.Generator().manual_seed(seed)
        q, k, v = (numbers(generator, sizes, units).requires_grad_() for units in (sizes.n, sizes.m, sizes.m))
        out = compute(q, k, v, terms)
        nothing = 0 * sum(x.sum() for x in (q, k, v))  # so that there are gradients where no query or key is
        ((out * numbers(generator, sizes, sizes.n)).sum() + nothing).backward()
        grads = [torch.zeros_like(x) if x.grad is None else x.grad for x in (q, k, v, *tables_of(terms))]
        found.append([out.detach(), *grads])
    for mine, meant in zip(*found, strict=True):
        assert mine.isfinite().all()
        torch.testing.assert_close(mine, meant, rtol=1e-9, atol=1e-9)


def numbers(generator: torch.Generator, sizes: Sizes, units: int) -> Tensor:
    return torch.randn(sizes.b, sizes.h, units, sizes.d, generator=generator, dtype=torch.float64)
