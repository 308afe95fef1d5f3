"""Sums of rows of a table are what indexing and summing give, gradients too."""

from __future__ import annotations

import pytest
import torch

from structpe.positions.row_sums import WeightedSums, sum_rows
from tests.together import together


@together("rows, groups, each", [(5, 7, 3), (40_000, 11, 6), (1, 4, 2), (5, 0, 3), (5, 3, 0), (9, 1, 1)])
@together("dtype", [torch.float32, torch.float64])
def test_sums_are_those_of_the_rows(rows: int, groups: int, each: int, dtype: torch.dtype) -> None:
    table = torch.randn(rows, 4, dtype=dtype, requires_grad=True)
    index = torch.randint(rows, (groups, each))
    weigh = torch.randn(groups, 4, dtype=dtype)
    mine, plain = sum_rows(table, index), table[index].sum(1)
    torch.testing.assert_close(mine, plain)
    of_mine, of_plain = (torch.autograd.grad((x * weigh).sum(), table)[0] for x in (mine, plain))
    torch.testing.assert_close(of_mine, of_plain)


def test_a_second_derivative_is_refused() -> None:
    table = torch.randn(3, 2, requires_grad=True)
    (first,) = torch.autograd.grad(sum_rows(table, torch.tensor([[0, 1]])).square().sum(), table, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


@pytest.mark.parametrize(("sums", "terms", "listed"), [(5, 7, 30), (3, 1, 4), (4, 4, 0), (9, 6, 2)])
def test_weighted_sums_are_products_with_a_matrix(sums: int, terms: int, listed: int) -> None:
    to, of, weights = torch.randint(sums, (listed,)), torch.randint(terms, (listed,)), torch.rand(listed).double()
    matrix = torch.zeros(sums, terms, dtype=torch.float64).index_put((to, of), weights, accumulate=True)
    x = torch.randn(terms, 3, dtype=torch.float64, requires_grad=True)
    made = WeightedSums.listed(to, of, weights, sums, terms)
    torch.testing.assert_close(made(x), matrix @ x)
    assert torch.autograd.gradcheck(made, x)
    assert torch.autograd.gradgradcheck(made, x)
    torch.testing.assert_close(torch.func.jacrev(made)(x), torch.func.jacrev(lambda x: matrix @ x)(x))
    half = made(x.float())  # of another type than the weights
    torch.testing.assert_close(half.double(), matrix @ x.float().double(), rtol=1e-5, atol=1e-5)
