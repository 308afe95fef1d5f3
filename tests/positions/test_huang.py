"""Huang et al.: the four methods, pair by pair, and the last compared with its reimplementation."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from structpe.attention import attend
from structpe.encodings import Distance
from structpe.errors import PositionError
from structpe.positions import MODELS, Dims, PositionModel
from structpe.positions.batch import encode
from structpe.positions.relative import HuangM4
from structpe.structure import path
from tests.golden import golden
from tests.positions.cases import made
from tests.positions.literal import Score, assert_score, heads, terms_of

NAMES = ["huang-m1", "huang-m2", "huang-m3", "huang-m4"]


def formula(model: PositionModel, layer: int) -> object:
    table, length = model.table.weight[layer], model.max_length

    def of(q: Tensor, k: Tensor) -> Score:
        def score(h: int, i: int, j: int) -> Tensor:
            own = min(h, table.shape[1] - 1)
            plain = (q[h, i] * k[h, j]).sum()
            if model.name == "huang-m1":
                s = plain * table[abs(i - j), own]
            elif model.name == "huang-m2":
                s = plain * table[i - j + length - 1, own]
            elif model.name == "huang-m3":
                s = (q[h, i] * k[h, j] * table[i - j + length - 1, own]).sum()
            else:
                r = table[i - j + length - 1, own]
                s = (q[h, i] + r) @ (k[h, j] + r) - r @ r
            return s / math.sqrt(model.dims.head)

        return score

    return of


@pytest.mark.parametrize("sharing", ["head-wise", "none"])
@pytest.mark.parametrize("name", NAMES)
def test_the_formula(name: str, sharing: str) -> None:
    model = made(name, max_length=7, sharing=sharing)
    assert_score(model, formula(model, 1), layer=1)


@pytest.mark.parametrize("kernel", ["dense", "sdpa", "tables"])
def test_the_fourth_is_berts_relative_key_query(kernel: str) -> None:
    given = golden("bert_relative_key_query")
    size, count = given.cfg["max_position_embeddings"], given.cfg["heads"]
    model = HuangM4(Dims(given.cfg["d"], count, 1), max_length=size).double()
    with torch.no_grad():
        model.table.weight.copy_(given["w.distance_embedding.weight"][None, :, None])
    q, k, v = (
        heads(given["in.x"], given[f"w.{n}.weight"], given[f"w.{n}.bias"], count) for n in ("query", "key", "value")
    )
    out = attend(q, k, v, terms_of(model, given.cfg["L"]), kernel).transpose(1, 2).flatten(2)
    torch.testing.assert_close(out, given["out.context"], rtol=0, atol=1e-9)


@pytest.mark.parametrize("kernel", ["dense", "sdpa", "tables"])
def test_its_half_is_berts_relative_key(kernel: str) -> None:
    """Without the keys' term, the rows in this model's order are those of the reimplementation."""
    given = golden("bert_relative_key")
    size, count = given.cfg["max_position_embeddings"], given.cfg["heads"]
    model = HuangM4(Dims(given.cfg["d"], count, 1), max_length=size).double()
    with torch.no_grad():
        model.table.weight.copy_(given["w.distance_embedding.weight"][None, :, None])
    q, k, v = (
        heads(given["in.x"], given[f"w.{n}.weight"], given[f"w.{n}.bias"], count) for n in ("query", "key", "value")
    )
    terms = terms_of(model, given.cfg["L"])
    half = type(terms)(key=terms.key)
    out = attend(q, k, v, half, kernel).transpose(1, 2).flatten(2)
    torch.testing.assert_close(out, given["out.context"], rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", NAMES[:3])
def test_it_starts_where_attention_does_not_know_positions(name: str) -> None:
    model = MODELS[name](Dims(8, 2, 1))
    q, k, v = (torch.randn(1, 2, 6, 4, generator=torch.Generator().manual_seed(i)) for i in range(3))
    torch.testing.assert_close(attend(q, k, v, terms_of(model, 6), "dense"), attend(q, k, v, kernel="dense"))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("encoding", [None, Distance()])
def test_nothing_is_clipped(name: str, encoding: Distance | None) -> None:
    model = made(name, max_length=6, **({} if encoding is None else {"encoding": encoding}))
    assert terms_of(model, 6).used()
    with pytest.raises(
        PositionError, match=f"'{name}' has rows for offsets below 6 and does not clip; .* an offset of 6; build"
    ):
        terms_of(model, 7)


@pytest.mark.parametrize("name", NAMES)
def test_a_step_of_decoding_may_come_with_a_longer_path_than_it_uses(name: str) -> None:
    model = made(name, max_length=6)
    longer = encode([path(["w"] * 32)], model.encodings)
    assert model.prepare(longer.step(5, 6)).index.shape == (1, 1, 6)
    with pytest.raises(PositionError, match="an offset of 6"):
        model.prepare(longer.step(6, 7))


def test_all_but_the_first_distinguish_directions() -> None:
    for name in NAMES[:2]:
        (gate,) = terms_of(made(name), 6).gate
        dense = gate.dense()
        assert torch.equal(dense, dense.transpose(1, 2)) == (name == "huang-m1")


def test_a_length_below_one_is_refused() -> None:
    with pytest.raises(PositionError, match="'max_length' of position model 'huang-m2' is 0; give 1 or more"):
        MODELS["huang-m2"](Dims(8, 2, 1), max_length=0)
