"""Vectors of features: a sum of embeddings, a linear map, or one vector for all."""

from __future__ import annotations

import torch

from structpe.data.features import Categories, Numbers
from structpe.nn.stack import FeatureEmbedding


def test_columns_of_categories_are_embeddings_added() -> None:
    embedding = FeatureEmbedding(Categories((3, 2)), 4)
    assert embedding.table is not None
    first, second = embedding.table.weight[:3], embedding.table.weight[3:]
    out = embedding(torch.tensor([[2, 0], [0, 1]]), 2)
    torch.testing.assert_close(out, torch.stack([first[2] + second[0], first[0] + second[1]]))
    assert embedding(torch.zeros(0, 2, dtype=torch.long), 0).shape == (0, 4)


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
