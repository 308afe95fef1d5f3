"""Vectors of features: a sum of embeddings, a linear map, or one vector for all."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from structpe.data.features import Categories, Numbers
from structpe.nn.stack import FeatureEmbedding


def test_columns_of_categories_are_embeddings_added() -> None:
    embedding = FeatureEmbedding(Categories((3, 2)), 4)
    assert embedding.table is not None
    first, second = embedding.table.weight[:3], embedding.table.weight[3:]
    out = embedding(torch.tensor([[2, 0], [0, 1]]), 2)
    torch.testing.assert_close(out, torch.stack([first[2] + second[0], first[0] + second[1]]))
    assert embedding(torch.zeros(0, 2, dtype=torch.long), 0).shape == (0, 4)


@pytest.mark.parametrize("sizes", [(5,), (4, 3, 2)])
def test_gradients_of_embeddings_are_sums_over_their_columns(sizes: tuple[int, ...]) -> None:
    embedding = FeatureEmbedding(Categories(sizes), 3).double()
    x = torch.stack([torch.randint(size, (20,)) for size in sizes], dim=1)
    each = [nn.functional.one_hot(column, size) for column, size in zip(x.T, sizes, strict=True)]
    counts = torch.cat(each, dim=1).double()
    weigh = torch.randn(20, 3, dtype=torch.float64, requires_grad=True)
    assert embedding.table is not None
    (given,) = torch.autograd.grad((embedding(x, 20) * weigh).sum(), embedding.table.weight, create_graph=True)
    torch.testing.assert_close(given, counts.T @ weigh)
    (again,) = torch.autograd.grad(given.square().sum(), weigh)
    torch.testing.assert_close(again, 2 * counts @ given)


def test_numbers_are_mapped_linearly_whatever_their_precision() -> None:
    embedding = FeatureEmbedding(Numbers(2), 4)
    assert embedding.linear is not None
    x = torch.tensor([[1.0, -2.0]], dtype=torch.float64)
    torch.testing.assert_close(embedding(x, 1), x.float() @ embedding.linear.weight.T + embedding.linear.bias)


def test_without_features_all_are_alike_and_the_vector_is_learned() -> None:
    embedding = FeatureEmbedding(None, 4)
    out = embedding(None, 3)
    assert out.shape == (3, 4)
    assert torch.equal(out[0], out[2])
    out.sum().backward()
    assert {name: p.grad.tolist() for name, p in embedding.named_parameters()} == {"table.weight": [[3.0] * 4]}
    assert embedding(None, 0).shape == (0, 4)
