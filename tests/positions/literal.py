"""Attention written out pair by pair, the reference for the formulas of position models."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from structpe.attention import attend
from structpe.positions import PositionModel, Site
from structpe.positions.batch import encode
from structpe.structure import path
from structpe.terms import Terms
from tests.positions.cases import noise

Score = Callable[[int, int, int], Tensor]
"""(head, query, key) -> the score of a pair, a tensor of no dimension."""


def heads(x: Tensor, weight: Tensor, bias: Tensor | None, count: int) -> Tensor:
    """(b, h, n, d_h) from (b, n, d): a projection, split into heads."""
    projected = x @ weight.T if bias is None else x @ weight.T + bias
    return projected.unflatten(-1, (count, -1)).transpose(1, 2)


def units(dims_head: int, n: int, count: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of one text."""
    return noise(1, count, n, dims_head), noise(1, count, n, dims_head, seed=1), noise(1, count, n, dims_head, seed=2)


def written_out(score: Score, v: Tensor) -> Tensor:
    """(1, h, n, d) softmax of the scores, then the mean of the values v (1, h, n, d) by these weights."""
    _, count, n, _ = v.shape
    rows = []
    for h in range(count):
        for i in range(n):
            exps = [torch.exp(score(h, i, j)) for j in range(n)]
            rows.append(sum(e * v[0, h, j] for j, e in enumerate(exps)) / sum(exps))
    return torch.stack(rows).unflatten(0, (count, n))[None]


def terms_of(model: PositionModel, n: int, layer: int = 0) -> Terms:
    """What a model says of a text of n units."""
    return model.terms(model.prepare(encode([path(["w"] * n)], model.encodings)), Site(layer))


def assert_score(model: PositionModel, score: Callable[[Tensor, Tensor], Score], n: int = 7, layer: int = 0) -> None:
    """Attention with the terms of a layer is attention with the scores of a formula, given q and k."""
    q, k, v = units(model.dims.head, n, model.dims.heads)
    mine = attend(q, k, v, terms_of(model, n, layer), "dense")
    torch.testing.assert_close(mine, written_out(score(q[0], k[0]), v), rtol=0, atol=1e-9)
