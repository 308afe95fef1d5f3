"""PaTH attention: products of matrices one by one, the reference of its authors, orders and chunks."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from structpe.errors import PositionError
from structpe.nn.layer import KVCache
from structpe.positions import Dims, Positions, Site
from structpe.positions import own_attention as own_attention_module
from structpe.positions.own_attention import PathAttention, chunked_products
from structpe.terms import Terms
from tests.golden import golden
from tests.positions.cases import TREES, Around, encoded, labelled_path, made, noise
from tests.positions.waves import wave
from tests.strategies import relabelled


def one_by_one(q: Tensor, k: Tensor, w: Tensor, beta: Tensor) -> Tensor:
    """(n, m) q_i^T H_i ... H_(j+1) k_j of one head."""
    n, m = len(q), len(k)
    found = torch.full((n, m), -math.inf, dtype=torch.float64)
    for row, i in enumerate(range(m - n, m)):
        for j in range(i + 1):
            turned = k[j]
            for t in range(j + 1, i + 1):
                turned = turned - beta[t] * w[t] * (w[t] @ turned)
            found[row, j] = q[row] @ turned
    return found


@pytest.mark.parametrize(("n", "m"), [(1, 1), (9, 9), (1, 9), (4, 10), (3, 12), (13, 13)])
def test_products_in_chunks_are_products_one_by_one(n: int, m: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_attention_module, "_CHUNK", 4)
    q, k, w = noise(2, 2, n, 3), noise(2, 2, m, 3, seed=1), noise(2, 2, m, 3, seed=2)
    w = w / w.norm(dim=-1, keepdim=True)
    beta = 2 * torch.sigmoid(noise(2, 2, m, 1, seed=3))
    mine = chunked_products(q, k, w, beta)
    for b in range(2):
        for h in range(2):
            theirs = one_by_one(q[b, h], k[b, h], w[b, h], beta[b, h])
            behind = theirs.isfinite()
            torch.testing.assert_close(mine[b, h][behind], theirs[behind], rtol=0, atol=1e-12)


def test_the_reference_of_flash_linear_attention() -> None:
    q, k, v, w = (wave(2, 3, 150, 4, shift=s) for s in (0.0, 1.0, 2.0, 4.0))
    w, beta = w / w.norm(dim=-1, keepdim=True), 1 + wave(2, 3, 150, 1, shift=5.0)
    score = chunked_products(q, k, w, beta) / 2
    score = score.masked_fill(~torch.ones(150, 150, dtype=torch.bool).tril(), -math.inf)
    theirs = golden("path_attention")["out.mixed"]
    torch.testing.assert_close((score.softmax(-1) @ v)[:, :, ::13], theirs, rtol=0, atol=1e-12)


def test_a_layer_by_hand() -> None:
    """Directions from three units, convolved in reading order however units are stored."""
    model, structure = made("path-attention", Dims(6, 2, 2), rank=3), TREES[0]
    x, layer = noise(1, 10, 6), 1
    prepared = model.prepare(encoded(model, [structure]))
    order = prepared[0].argsort().tolist()
    read = x[0, order]
    raw = model.up[layer](model.down[layer](read))
    w = torch.zeros_like(raw)
    for t in range(10):
        for back in range(min(3, t + 1)):
            w[t] += model.filters[layer][:, 2 - back] * raw[t - back]
    w = (w * torch.sigmoid(w)).view(10, 2, 3)
    w = w / (w.square().sum(-1, keepdim=True) + 1e-6).sqrt()
    beta = 2 * torch.sigmoid(model.strengths[layer](read))
    q, k, v = model.projections[layer](read).view(10, 3, 2, 3).unbind(1)
    mixed = [(one_by_one(q[:, h], k[:, h], w[:, h], beta[:, h]) / math.sqrt(3)).softmax(-1) @ v[:, h] for h in range(2)]
    wanted = model.outs[layer](torch.stack(mixed, dim=1).flatten(1))
    mine, _ = model.attend(x, prepared, Site(layer), Terms())
    torch.testing.assert_close(mine[0, order], wanted, rtol=0, atol=1e-12)


def test_units_are_read_in_their_order_however_they_are_stored() -> None:
    model, structure = made("path-attention"), TREES[0]
    new, units = relabelled(structure, np.array([3, 0, 6, 1, 5, 2, 4]))
    x = noise(1, 10, 8)
    before = Around(model)(encoded(model, [structure]), x)
    after = Around(model)(encoded(model, [new]), x[:, units])
    torch.testing.assert_close(after, before[:, units], rtol=0, atol=1e-9)


def test_long_texts_in_half_precision_stay_finite() -> None:
    model = PathAttention(Dims(8, 2, 1)).bfloat16()
    prepared = model.prepare(encoded(model, [labelled_path(300)]))
    out, _ = model.attend(noise(1, 300, 8).bfloat16(), prepared, Site(0), Terms())
    assert out.dtype == torch.bfloat16
    assert out.isfinite().all()


def test_a_decoder_reads_units_in_their_order() -> None:
    model = made("path-attention")
    encoding = model.encodings[0]
    model.attend(noise(1, 2, 8), model.prepare(Positions({encoding: torch.tensor([[0, 1]])})), Site(0), Terms())
    cache = KVCache()
    first = Site(0, cache=cache)
    model.attend(noise(1, 2, 8), model.prepare(Positions({encoding: torch.tensor([[0, 2]])})), first, Terms())
    later = model.prepare(Positions({encoding: torch.tensor([[0, 2, 1]])}, slice(2, 3)))
    with pytest.raises(PositionError, match="a unit comes before one that was written earlier; order them by 'order'"):
        model.attend(noise(1, 1, 8), later, first, Terms())
