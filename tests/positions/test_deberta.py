"""DeBERTa: the authors' numbers of the first version, the formulas of all, and the absolute part."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from structpe.attention import attend
from structpe.errors import PositionError, UnsupportedTerm
from structpe.positions import MODELS, Dims, Site, Sources, build, describe
from structpe.positions.batch import encode
from structpe.positions.buckets import log_bucket
from structpe.positions.deberta import DeBERTa, DeBERTaEMD, DeBERTaV2
from structpe.structure import path
from structpe.terms import Terms
from tests.golden import golden
from tests.positions.cases import made, noise
from tests.positions.literal import Score, assert_score, heads, terms_of, written_out
from tests.together import together


@together("kernel", ["dense", "sdpa", "tables"])
@together("dtype", [torch.float32, torch.float64])
@together("name", ["deberta_v1", "deberta_c2p_only"])
def test_the_authors_numbers(name: str, dtype: torch.dtype, kernel: str) -> None:
    """Theirs are float32."""
    given = golden(name)
    cfg = given.cfg
    interactions = tuple(cfg["pos_att_type"].split("|"))
    model = DeBERTa(Dims(cfg["hidden"], cfg["heads"], 1), max_distance=cfg["span"], interactions=interactions).to(dtype)
    with torch.no_grad():
        model.table.copy_(given["in.rel_embeddings"])
    model.keys[0].load_state_dict(given.weights("pos_key_proj."))
    if "p2c" in interactions:
        model.queries[0].load_state_dict(given.weights("pos_query_proj."))
    x, real = given["in.x"].to(dtype), given["in.mask"].bool()
    q, k, v = (
        heads(x, given[f"w.{n}_proj.weight"].to(dtype), given[f"w.{n}_proj.bias"].to(dtype), cfg["heads"])
        for n in ("query", "key", "value")
    )
    terms = terms_of(model, x.shape[1]) + Terms(mask=(real[:, None, None],))
    out = attend(q, k, v, terms, kernel).transpose(1, 2).flatten(2)
    torch.testing.assert_close(out[real], given["out.context"].to(dtype)[real], rtol=0, atol=1e-5)


def of_head(linear: torch.nn.Module, x: Tensor, h: int) -> Tensor:
    return (linear.weight @ x + linear.bias)[4 * h : 4 * h + 4]


@pytest.mark.parametrize("interactions", [("c2p", "p2c"), ("c2p",), ("p2c",)])
def test_the_formula(interactions: tuple[str, ...]) -> None:
    model = made("deberta", max_distance=3, interactions=interactions)
    assert isinstance(model, DeBERTa)

    def formula(q: Tensor, k: Tensor) -> Score:
        def score(h: int, i: int, j: int) -> Tensor:
            a = model.table[max(0, min(i - j + 3, 5))]
            s = q[h, i] @ k[h, j]
            if "c2p" in interactions:
                s = s + q[h, i] @ of_head(model.keys[1], a, h)
            if "p2c" in interactions:
                s = s + of_head(model.queries[1], a, h) @ k[h, j]
            return s / math.sqrt(4 * (1 + len(interactions)))

        return score

    assert_score(model, formula, layer=1)


def test_interactions_are_plain_data() -> None:
    model = build({"name": "deberta", "interactions": ["p2c"], "max_distance": 4}, Dims(8, 2, 1))
    assert describe(model)["interactions"] == ["p2c"]
    assert sum(p.numel() for p in model.parameters()) == model.claimed_params() == 8 * 8 + 8 * 8 + 8
    with pytest.raises(PositionError, match=r"option 'interactions.*' .* takes one of 'c2p', 'p2c'; given is 'p2p'"):
        build({"name": "deberta", "interactions": ["p2p"]}, Dims(8, 2, 1))


@pytest.mark.parametrize("model", [DeBERTa, DeBERTaV2])
@pytest.mark.parametrize("interactions", [(), ("p2c", "p2c")])
def test_other_interactions_are_refused(model: type, interactions: tuple[str, ...]) -> None:
    with pytest.raises(PositionError, match=rf"'{model.name}' needs as interactions 'c2p', 'p2c' or both; given are"):
        model(Dims(8, 2, 1), interactions=interactions)


# --- logarithmic buckets, and the matrices of the units ---


def in_numpy(r: int, buckets: int, farthest: int) -> int:
    half = buckets // 2
    r = max(1 - farthest, min(r, farthest - 1))  # the authors look buckets up in a table that ends there
    if abs(r) <= half:
        return r
    coarse = np.ceil(np.log(np.float64(abs(r)) / half) / np.log((farthest - 1) / half) * (half - 1)) + half
    return int(coarse) * (1 if r > 0 else -1)


@pytest.mark.parametrize(("buckets", "farthest"), [(256, 512), (128, 512), (32, 128), (8, 20), (10, 40), (7, 20)])
def test_logarithmic_buckets(buckets: int, farthest: int) -> None:
    offsets = torch.arange(-2 * farthest, 2 * farthest + 1)
    mine = log_bucket(offsets, buckets, farthest)
    assert mine.dtype == torch.int64
    assert torch.equal(mine, torch.tensor([in_numpy(int(r), buckets, farthest) for r in offsets]))
    assert torch.equal(mine, -mine.flip(0))
    assert (mine.diff() >= 0).all()
    half = buckets // 2
    assert torch.equal(mine[offsets.abs() <= half], offsets[offsets.abs() <= half])
    assert int(mine[offsets == farthest - 1]) == 2 * half - 1


@pytest.mark.parametrize(("buckets", "farthest"), [(256, 512), (8, 20), (7, 20), (2, 5)])
def test_offsets_beyond_the_farthest_have_its_bucket(buckets: int, farthest: int) -> None:
    """Far back too, where one bucket more would be row 0, which no offset within the farthest has."""
    last = 2 * (buckets // 2) - 1
    for far in (farthest - 1, farthest, farthest + 1, 2 * farthest, 40 * farthest, 1 << 19):
        assert log_bucket(torch.tensor([-far, far]), buckets, farthest).tolist() == [-last, last]
    model = DeBERTaV2(Dims(8, 2, 1), num_buckets=buckets, max_distance=farthest)
    rows = model.rows.rule(torch.arange(-3 * farthest, 3 * farthest))
    assert rows.unique().tolist() == list(range(buckets - last, buckets + last + 1))


@pytest.mark.parametrize(("buckets", "farthest"), [(256, 512), (32, 128), (4, 16)])
def test_the_authors_buckets(buckets: int, farthest: int) -> None:
    given = golden("deberta_log_bucket")
    assert torch.equal(log_bucket(given["in.rel"], buckets, farthest), given[f"out.b{buckets}_m{farthest}"])


def literal_v2(model: DeBERTaV2, x: Tensor, layer: int) -> Tensor:
    """The whole attention of a layer for units x (1, n, 8)."""
    normed = table = model.table
    which, buckets, farthest = (model.options()[name] for name in ("interactions", "num_buckets", "max_distance"))
    if model.options()["normalised"]:
        centred = table - table.mean(-1, keepdim=True)
        normed = centred / (centred.pow(2).mean(-1, keepdim=True) + 1e-7).sqrt() * model.norm.weight + model.norm.bias
    query, key, value, out = (each[layer] for each in (model.query, model.key, model.value, model.out))

    def score(h: int, i: int, j: int) -> Tensor:
        before = i - j if farthest is None else in_numpy(i - j, buckets, farthest)
        row = max(0, min(before + buckets, 2 * buckets - 1))
        q, k = of_head(query, x[0, i], h), of_head(key, x[0, j], h)
        s = q @ k
        if "c2p" in which:
            s = s + q @ of_head(key, normed[row], h)
        if "p2c" in which:
            s = s + of_head(query, normed[row], h) @ k
        return s / math.sqrt(4 * (1 + len(which)))

    v = heads(x, value.weight, value.bias, 2)
    return written_out(score, v).transpose(1, 2).flatten(2) @ out.weight.T + out.bias


@pytest.mark.parametrize("layer", [0, 2])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_distance": None},
        {"interactions": ("c2p",)},
        {"interactions": ("p2c",), "normalised": False},
        {"num_buckets": 2},
    ],
)
def test_the_formula_through_the_matrices_of_the_units(layer: int, options: dict[str, object]) -> None:
    model, x = made("deberta-v2", **{"num_buckets": 6, "max_distance": 10, **options}), noise(1, 16, 8)
    assert model.claimed_params() == sum(p.numel() for p in model.parameters())
    assert isinstance(model, DeBERTaV2)
    prepared = model.prepare(encode([path(["w"] * 16)], model.encodings))
    mine, _ = model.attend(x, prepared, Site(layer), Terms())
    torch.testing.assert_close(mine, literal_v2(model, x, layer), rtol=0, atol=1e-9)


def test_the_authors_numbers_of_the_second_version() -> None:
    """Their table comes as it goes into attention; the LayerNorm on it is not part of their module."""
    given = golden("deberta_v2")
    cfg = given.cfg
    bucketed = cfg["position_buckets"] > 0
    model = DeBERTaV2(
        Dims(cfg["hidden"], cfg["heads"], 1),
        num_buckets=cfg["position_buckets"] if bucketed else cfg["max_relative_positions"],
        max_distance=cfg["max_relative_positions"] if bucketed else None,
        interactions=tuple(cfg["pos_att_type"].split("|")),
        normalised=False,
    ).double()
    for name, mine in (("query", model.query), ("key", model.key), ("value", model.value)):
        mine[0].load_state_dict(given.weights(f"{name}_proj."))
    x, real = given["in.x"].double(), given["in.mask"].bool()
    size = x.shape[1]
    with torch.no_grad():
        model.table.copy_(given["in.rel_embeddings"])
        model.out[0].weight.copy_(torch.eye(cfg["hidden"]))
        model.out[0].bias.zero_()
    prepared = model.prepare(encode([path(["w"] * size)], model.encodings))
    mine, _ = model.attend(x, prepared, Site(0), Terms(mask=(real[:, None, None],)))
    torch.testing.assert_close(mine[real], given["out.context"].double()[real], rtol=0, atol=1e-5)


def test_what_its_own_attention_does_not_support() -> None:
    model, x = made("deberta-v2"), noise(1, 4, 8)
    prepared = model.prepare(encode([path(["w"] * 4)], model.encodings))
    with pytest.raises(UnsupportedTerm, match="'deberta-v2' has its own attention, which does not support bias"):
        model.attend(x, prepared, Site(0), Terms(bias=(torch.zeros(1, 1, 4, 4),)))


def test_a_unit_that_sees_nothing_gets_nothing() -> None:
    model, x = made("deberta-v2"), noise(1, 4, 8)
    prepared = model.prepare(encode([path(["w"] * 4)], model.encodings))
    blind = torch.ones(1, 1, 4, 4, dtype=torch.bool)
    blind[..., 2, :] = False
    out, _ = model.attend(x, prepared, Site(0), Terms(mask=(blind,)))
    torch.testing.assert_close(out[0, 2], model.out[0].bias)


@pytest.mark.parametrize(("buckets", "farthest"), [(1, 512), (256, 129)])
def test_other_buckets_are_refused(buckets: int, farthest: int) -> None:
    with pytest.raises(
        PositionError, match=f"'deberta-v2' needs 2 buckets .* {buckets} buckets and max_distance {farthest}"
    ):
        DeBERTaV2(Dims(8, 2, 1), num_buckets=buckets, max_distance=farthest)


# --- the absolute part ---


def test_places_enter_only_the_queries_of_the_last_layer() -> None:
    model, x = made("deberta-emd"), noise(1, 5, 8)
    assert isinstance(model, DeBERTaEMD)
    prepared = model.prepare(encode([path(["w"] * 5)], model.encodings))
    for layer in range(3):
        sources = model.sources(Sources(x, x, x), prepared, Site(layer))
        assert sources.key is x
        assert sources.value is x
        torch.testing.assert_close(sources.query - x, model.table[None, :5] * (layer == 2), rtol=0, atol=1e-12)


def test_it_adds_up_with_the_relative_part() -> None:
    dims = Dims(8, 2, 2)
    both = build(["deberta", "deberta-emd"], dims)
    assert both.claimed_params() == sum(p.numel() for p in both.parameters())


def test_too_many_places_are_refused() -> None:
    model = MODELS["deberta-emd"](Dims(8, 2, 1), max_length=5)
    with pytest.raises(
        PositionError, match="'deberta-emd' has 5 positions, this batch needs 6; build it with a larger"
    ):
        model.prepare(encode([path(["w"] * 6)], model.encodings))
