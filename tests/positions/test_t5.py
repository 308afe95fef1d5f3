"""T5: buckets and bias of the authors' code."""

from __future__ import annotations

import math

import pytest
import torch

from structpe.attention import attend
from structpe.errors import PositionError
from structpe.positions import Dims, PositionModel, Site
from structpe.positions.batch import encode
from structpe.positions.buckets import T5, T5Causal, T5Unshared, bucket
from structpe.structure import path
from structpe.terms import Terms
from tests.golden import golden


@pytest.mark.parametrize("bidirectional", [0, 1])
@pytest.mark.parametrize(("buckets", "farthest"), [(32, 128), (32, 64), (16, 20), (10, 12)])
def test_the_authors_buckets(bidirectional: int, buckets: int, farthest: int) -> None:
    given = golden("t5_bucket")
    mine = bucket(given["in.relative_position"], buckets, farthest, bool(bidirectional))
    for peer in ("bucket", "bucket_mesh"):
        assert torch.equal(mine, given[f"out.{peer}.bi{bidirectional}.n{buckets}.d{farthest}"].long())


PEERS = [("t5_attention_enc", T5), ("t5_attention_enc", T5Unshared), ("t5_attention_dec", T5Causal)]


@pytest.mark.parametrize("kernel", ["dense", "sdpa", "tables"])
@pytest.mark.parametrize(("name", "model_class"), PEERS)
def test_the_peers_attention(name: str, model_class: type[PositionModel], kernel: str) -> None:
    given = golden(name)
    cfg = given.cfg
    dims = Dims(cfg["d_model"], cfg["heads"], 1)
    model = model_class(dims, num_buckets=cfg["buckets"], max_distance=cfg["max_distance"]).double()
    with torch.no_grad():
        model.table.weight.copy_(given["w.relative_attention_bias.weight"][None])
    terms = model.terms(model.prepare(encode([path(["w"] * 7)], model.encodings)), Site(0))
    torch.testing.assert_close(terms.bias[0].dense().movedim(3, 1), given["out.bias"].double(), rtol=0, atol=1e-9)
    q, k, v = (
        (given["in.x"] @ given[f"w.{n}.weight"].T).unflatten(-1, (cfg["heads"], -1)).transpose(1, 2) for n in "qkv"
    )
    unscaled = Terms(scale=cfg["d_kv"] ** 0.5)
    out = attend(q, k, v, terms + unscaled, kernel).transpose(1, 2).flatten(2) @ given["w.o.weight"].T
    torch.testing.assert_close(out, given["out.attn"], rtol=0, atol=1e-9)


def by_definition(r: int, buckets: int, farthest: int, both: bool) -> int:
    """The formula of the docstrings."""
    each, far = (buckets // 2, abs(r)) if both else (buckets, max(-r, 0))
    exact = each // 2
    if far >= exact:
        far = min(exact + math.floor(math.log(far / exact) / math.log(farthest / exact) * (each - exact)), each - 1)
    return far + each * (both and r > 0)


@pytest.mark.parametrize(("model_class", "both"), [(T5, True), (T5Unshared, True), (T5Causal, False)])
def test_each_offset_has_the_bias_of_its_bucket(model_class: type[PositionModel], both: bool) -> None:
    """12 and 40: the edges of these buckets are no whole numbers, so that rounding cannot decide."""
    model = model_class(Dims(8, 2, 3), num_buckets=12, max_distance=40).double()
    torch.nn.init.normal_(model.table.weight)
    prepared = model.prepare(encode([path(["w"] * 60)], model.encodings))
    for layer in range(3):
        bias = model.terms(prepared, Site(layer)).bias[0].dense()[0]
        table = model.table.weight[layer if model_class is T5Unshared else 0]
        for i in range(60):
            for j in range(60):
                assert torch.equal(bias[i, j], table[by_definition(j - i, 12, 40, both)])


def test_a_decoder_does_not_distinguish_keys_ahead() -> None:
    model = T5Causal(Dims(8, 2, 1))
    rows = model.prepare(encode([path(["w"] * 50)], model.encodings)).dense()[0]
    assert not rows.triu().any()
    assert (rows.tril(-1) + torch.ones(50, 50).triu() > 0).all()


@pytest.mark.parametrize(("buckets", "farthest"), [(2, 128), (7, 128), (32, 8)])
def test_other_buckets_are_refused(buckets: int, farthest: int) -> None:
    for name, model_class in (("t5", T5), ("t5-unshared", T5Unshared)):
        with pytest.raises(
            PositionError, match=f"'{name}' needs .* given are {buckets} buckets and max_distance {farthest}"
        ):
            model_class(Dims(8, 2, 1), num_buckets=buckets, max_distance=farthest)


def test_other_buckets_are_refused_in_one_direction() -> None:
    with pytest.raises(PositionError, match=r"needs 2 buckets or more, .* given are 1 buckets and max_distance 128"):
        T5Causal(Dims(8, 2, 1), num_buckets=1)


@pytest.mark.parametrize(
    ("buckets", "farthest", "model_class"), [(10, 12, T5), (4, 2, T5), (4, 2, T5Unshared), (3, 2, T5Causal)]
)
def test_as_few_buckets_as_the_authors_code_takes(
    buckets: int, farthest: int, model_class: type[PositionModel]
) -> None:
    model = model_class(Dims(8, 2, 1), num_buckets=buckets, max_distance=farthest)
    positions = encode([path(["a"] * 40)], model.encodings)
    rows = model.prepare(positions).table
    # The bucket for |r| = 0 and r > 0 is there in the authors' code too, and nothing falls into it.
    empty = set() if model_class is T5Causal else {buckets // 2}
    assert set(rows.tolist()) == set(range(buckets)) - empty
