"""T5: buckets and bias of the authors' code."""

from __future__ import annotations

import pytest
import torch

from structpe.attention import KERNELS, attend
from structpe.data.encode import encode
from structpe.errors import PositionError
from structpe.positions import Dims, Site
from structpe.positions.t5 import T5, bucket
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


@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_the_peers_attention(kernel: str) -> None:
    given = golden("t5_attention_enc")
    cfg = given.cfg
    model = T5(Dims(cfg["d_model"], cfg["heads"], 1), buckets=cfg["buckets"], farthest=cfg["max_distance"]).double()
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


@pytest.mark.parametrize(("buckets", "farthest"), [(2, 128), (7, 128), (32, 8)])
def test_other_buckets_are_refused(buckets: int, farthest: int) -> None:
    with pytest.raises(PositionError, match=f"given are {buckets} buckets and farthest {farthest}"):
        T5(Dims(8, 2, 1), buckets=buckets, farthest=farthest)


@pytest.mark.parametrize(("buckets", "farthest", "bidirectional"), [(10, 12, True), (4, 2, True), (3, 2, False)])
def test_as_few_buckets_as_the_authors_code_takes(buckets: int, farthest: int, bidirectional: bool) -> None:
    model = T5(Dims(8, 2, 1), buckets=buckets, farthest=farthest, bidirectional=bidirectional)
    positions = encode([path(["a"] * 40)], model.encodings)
    rows = model.prepare(positions).table
    # The bucket for |r| = 0 and r > 0 is there in the authors' code too, and nothing falls into it.
    assert set(rows.tolist()) == set(range(buckets)) - ({buckets // 2} if bidirectional else set())
