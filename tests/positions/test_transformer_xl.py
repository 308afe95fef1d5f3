"""Transformer-XL: the authors' numbers, its formula, and its cache of the previous segment."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from structpe.attention import attend
from structpe.encodings import Distance
from structpe.errors import PositionError
from structpe.nn.language_model import LanguageModel
from structpe.nn.layer import StackConfig
from structpe.positions import Dims, Site
from structpe.positions.batch import encode
from structpe.positions.transformer_xl import TransformerXL, TransformerXLLearnable
from structpe.structure import Structure, path
from structpe.terms import Lookup, Terms
from tests.golden import Golden, golden
from tests.positions.cases import causal, made, noise
from tests.positions.literal import Score, assert_score, heads


def block(given: Golden, terms: Terms, kernel: str) -> Tensor:
    """The authors' layer around attention: residual, then LayerNorm. They count time before batch."""
    w, mems = given["in.w"].transpose(0, 1), given["in.mems"].transpose(0, 1)
    weights = given["w.qkv_net.weight"].chunk(3)
    count, all_units = given.cfg["n_head"], torch.cat([mems, w], dim=1)
    q, k, v = (heads(x, weight, None, count) for x, weight in zip((w, all_units, all_units), weights, strict=True))
    out = attend(q, k, v, terms + Terms(causal=True), kernel).transpose(1, 2).flatten(2) @ given["w.o_net.weight"].T
    norm = given["w.layer_norm.weight"], given["w.layer_norm.bias"]
    return torch.nn.functional.layer_norm(w + out, (w.shape[-1],), *norm).transpose(0, 1)


def theirs(given: Golden) -> tuple[TransformerXL, Lookup]:
    """The model with their parameters, and its output for their text and cached segment."""
    cfg = given.cfg
    model = TransformerXL(Dims(cfg["d_model"], cfg["n_head"], 1)).double()
    with torch.no_grad():
        model.content.copy_(given["in.r_w_bias"])
        model.position.copy_(given["in.r_r_bias"])
        model.project[0].weight.copy_(given["w.r_net.weight"])
    size = cfg["mlen"] + cfg["qlen"]
    return model, model.prepare(encode([path(["w"] * size)], model.encodings).step(cfg["mlen"], size))


@pytest.mark.parametrize("kernel", ["dense", "sdpa", "tables"])
def test_the_authors_numbers_with_memory(kernel: str) -> None:
    given = golden("transformer_xl")
    model, prepared = theirs(given)
    size = len(given["in.r"])
    # Their rows are of the distances size - 1 to 0; the values here are offsets from 1 - size to size - 1.
    torch.testing.assert_close(prepared.table[:size], given["in.r"], rtol=0, atol=1e-9)
    # Their code rounds scores to float32 when it masks them.
    mine = block(given, model.terms(prepared, Site(0)), kernel)
    torch.testing.assert_close(mine, given["out.block"], rtol=0, atol=1e-7)


def test_the_authors_scores_to_the_last_digit_that_they_have() -> None:
    given = golden("transformer_xl")
    model, prepared = theirs(given)
    terms = model.terms(prepared, Site(0))
    (key,), (query,), (bias,) = ([x.dense() for x in each] for each in (terms.key, terms.query, terms.bias))
    w, mems = given["in.w"].transpose(0, 1), given["in.mems"].transpose(0, 1)
    of_query, of_key, _ = given["w.qkv_net.weight"].chunk(3)
    q, k = heads(w, of_query, None, 2), heads(torch.cat([mems, w], dim=1), of_key, None, 2)
    score = torch.einsum("bhid,bijhd->bhij", q, k.transpose(1, 2)[:, None] + key)
    score = (score + torch.einsum("bijhd,bhjd->bhij", query, k)) / 2 + bias.movedim(3, 1)
    seen = ~given["in.mask_blocked"].bool()
    rounded = score.float().double().permute(2, 3, 0, 1)
    torch.testing.assert_close(rounded[seen], given["out.score"][seen], rtol=0, atol=1e-9)


@pytest.mark.parametrize("kernel", ["dense", "sdpa", "tables"])
def test_the_authors_learnable_vectors(kernel: str) -> None:
    given = golden("transformer_xl_learnable")
    cfg = given.cfg
    rows = given["in.r_emb"]
    model = TransformerXLLearnable(Dims(cfg["d_model"], cfg["n_head"], 1), max_length=len(rows)).double()
    with torch.no_grad():  # their last row is that of distance 0
        model.keys.copy_(rows.flip(0)[None])
        model.bias.copy_(given["in.r_bias"].flip(0)[None])
        model.content.copy_(given["in.r_w_bias"][None])
    size = cfg["mlen"] + cfg["qlen"]
    prepared = model.prepare(encode([path(["w"] * size)], model.encodings).step(cfg["mlen"], size))
    torch.testing.assert_close(
        block(given, model.terms(prepared, Site(0)), kernel), given["out.block"], rtol=0, atol=1e-9
    )


def sinusoid(r: int, d: int) -> Tensor:
    """With the authors' frequencies, which are float32."""
    frequencies = [float(np.float32(10000 ** (-2 * c / d))) for c in range(d // 2)]
    return torch.tensor(
        [math.sin(r * w) for w in frequencies] + [math.cos(r * w) for w in frequencies], dtype=torch.float64
    )


@pytest.mark.parametrize("reach", [None, 3])
@pytest.mark.parametrize("layer", [0, 2])
def test_the_formula_also_for_keys_ahead(layer: int, reach: int | None) -> None:
    model = made("transformer-xl", max_distance=reach)
    assert isinstance(model, TransformerXL)

    def formula(q: Tensor, k: Tensor) -> Score:
        def score(h: int, i: int, j: int) -> Tensor:
            back = i - j if reach is None else max(-reach, min(reach, i - j))
            position = (model.project[layer].weight @ sinusoid(back, 8))[4 * h : 4 * h + 4]
            u, v = model.content[h], model.position[h]
            return ((q[h, i] + u) @ k[h, j] + (q[h, i] + v) @ position) / 2

        return score

    assert_score(model, formula, layer=layer)


def test_the_formula_of_learned_vectors() -> None:
    model = made("transformer-xl-learnable", max_length=4)
    assert isinstance(model, TransformerXLLearnable)

    def formula(q: Tensor, k: Tensor) -> Score:
        def score(h: int, i: int, j: int) -> Tensor:
            row = max(0, min(i - j, 3))
            e, b, u = model.keys[1, row, h], model.bias[1, row, h], model.content[1, h]
            return ((q[h, i] + u) @ k[h, j] + q[h, i] @ e + b) / 2

        return score

    assert_score(model, formula, layer=1)


@pytest.mark.parametrize("model_class", [TransformerXL, TransformerXLLearnable])
def test_a_segment_with_its_memory_is_the_second_half_of_one_text(model_class: type[TransformerXL]) -> None:
    dims = Dims(16, 2, 1)
    torch.manual_seed(0)
    net = LanguageModel(StackConfig.transformer(dims, 32), 11, model_class(dims)).double().eval()
    for parameter in net.decoder.position.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    text = torch.randint(11, (2, 10), generator=torch.Generator().manual_seed(0))
    positions = encode([path(["w"] * 10)], net.decoder.position.encodings)
    whole, _ = net(text, positions)
    first, memory = net(text[:, :6], positions.step(0, 6))
    second, _ = net(text[:, 6:], positions.step(6, 10), memory)
    torch.testing.assert_close(torch.cat([first, second], dim=1), whole, rtol=0, atol=1e-9)
    forgetful, _ = net(text[:, 6:], positions.step(0, 4))
    assert not torch.allclose(forgetful, second, atol=1e-3)


def test_of_a_pair_without_a_path_only_the_content_counts() -> None:
    model = made("transformer-xl", encoding=Distance())
    two = Structure(nodes=("a", "b"), edges=torch.zeros(0, 2, dtype=torch.int64).numpy(), relations=())
    terms = model.terms(model.prepare(encode([two], model.encodings)), Site(0))
    (key,), (bias,) = terms.key, terms.bias
    assert not key.dense()[0, 0, 1].any()
    assert not bias.dense()[0, 0, 1].any()
    assert key.dense()[0, 0, 0].any()


@pytest.mark.parametrize("kernel", ["dense", "sdpa", "tables"])
def test_dropout_of_positions_is_drawn_in_training_only(kernel: str) -> None:
    model = made("transformer-xl", dropout=0.5)
    positions = encode([path(["w"] * 5)], model.encodings)
    assert torch.equal(model.prepare(positions).table, model.prepare(positions).table)
    model.train()
    assert not torch.equal(model.prepare(positions).table, model.prepare(positions).table)
    x = noise(1, 2, 5, 4)
    out = attend(x, x, x, model.terms(model.prepare(positions), Site(0)) + Terms(mask=(causal(5),)), kernel)
    assert out.isfinite().all()


def test_sizes_below_one_are_refused() -> None:
    with pytest.raises(PositionError, match="'max_distance' of position model 'transformer-xl' is 0; give 1 or more"):
        TransformerXL(Dims(8, 2, 1), max_distance=0)
    with pytest.raises(
        PositionError, match="'max_length' of position model 'transformer-xl-learnable' is 0; give 1 or more"
    ):
        TransformerXLLearnable(Dims(8, 2, 1), max_length=0)
