"""Biases that fall with distance: ALiBi on keys only, KERPLE's two kernels; and no position information."""

from __future__ import annotations

import math

import pytest
import torch

from structpe.attention import attend
from structpe.encodings import Depth, Distance
from structpe.errors import PositionError
from structpe.positions import MODELS, Dims, PositionModel, Site
from structpe.positions.absolute import NoPE
from structpe.positions.batch import encode
from structpe.positions.decay import ALiBi, ALiBiCausal, KERPLELog, KERPLEPower
from structpe.structure import Structure, path
from structpe.terms import Terms
from tests.golden import golden
from tests.positions.cases import TREES, Around, able, causal, encoded, labelled_path, made, noise


def terms_of(model: PositionModel, size: int, layer: int = 0) -> Terms:
    return model.terms(model.prepare(encode([path(["w"] * size)], model.encodings)), Site(layer))


def bias_of(model: PositionModel, size: int, layer: int = 0) -> torch.Tensor:
    """(h, n, m)"""
    (bias,) = terms_of(model, size, layer).bias
    return bias.dense().movedim(3, 1)[0]


# --- ALiBi ---


def test_the_authors_mask() -> None:
    """Slope times place of the key, and -inf ahead of the query."""
    given = golden("alibi")["out.mask_orig_H6_L7"].double()
    terms = terms_of(ALiBiCausal(Dims(6, 6, 1)).double(), 7)
    mine = terms.bias[0][0].expand(6, 7, 7).masked_fill(~terms.mask[0][0], -torch.inf)
    assert torch.equal(mine[:, ~terms.mask[0][0, 0]], given[:, ~terms.mask[0][0, 0]])
    torch.testing.assert_close(mine, given, rtol=0, atol=1e-6)
    probabilities = golden("alibi")["out.softmax_orig_H6_L7"].double()
    torch.testing.assert_close(torch.softmax(mine, dim=-1), probabilities, rtol=0, atol=1e-6)
    torch.testing.assert_close(terms.bias[0][0], golden("alibi")["out.bloom_H6"].double(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("kernel", able(frozenset({"bias", "mask"})))
def test_the_two_forms_attend_alike_where_keys_ahead_are_masked(kernel: str) -> None:
    q, k, v = (noise(1, 6, 9, 4, seed=i) for i in range(3))
    both = [terms_of(model(Dims(24, 6, 1)).double(), 9) for model in (ALiBi, ALiBiCausal)]
    first, second = (attend(q, k, v, t + Terms(mask=(causal(9),)), kernel) for t in both)
    torch.testing.assert_close(first, second, rtol=0, atol=1e-9)
    unmasked = attend(q, k, v, both[0], kernel)
    assert not torch.allclose(unmasked, second, atol=1e-3)


def test_no_key_ahead_is_seen_on_a_tree_either() -> None:
    model = ALiBiCausal(Dims(8, 2, 1), encoding=Depth()).double()
    terms = model.terms(model.prepare(encoded(model, TREES[:1])), Site(0))
    depth = encoded(model, TREES[:1])[Depth()][0].tolist()
    for i, of_query in enumerate(depth):
        for j, of_key in enumerate(depth):
            assert bool(terms.mask[0][0, 0, i, j]) == (of_key <= of_query)
            assert terms.bias[0][0, 0, 0, j] == of_key / 16


FALLING = ["alibi", "kerple-log", "kerple-power"]


@pytest.mark.parametrize("name", FALLING)
def test_each_head_falls_with_distance_on_both_sides(name: str) -> None:
    torch.manual_seed(1)
    model = MODELS[name](Dims(12, 6, 1)).double()
    bias = bias_of(model, 30)
    assert torch.equal(bias, bias.transpose(1, 2))
    assert (bias[:, 0].diff(dim=-1) < 0).all()
    assert not bias.diagonal(dim1=1, dim2=2).any()


# --- KERPLE ---


@pytest.mark.parametrize("sharing", ["none", "layer-wise", "head-wise", "both"])
@pytest.mark.parametrize("name", ["kerple-log", "kerple-power"])
def test_kerple_by_hand(name: str, sharing: str) -> None:
    torch.manual_seed(0)
    model = MODELS[name](Dims(4, 2, 3), sharing=sharing).double()
    tables = [p.expand(3, 1, 2).tolist() for p in model.parameters()]
    for layer in range(3):
        bias = bias_of(model, 5, layer)
        for h in range(2):
            first, second = (max(table[layer][0][h], 0.01) for table in tables)
            for i in range(5):
                for j in range(5):
                    far = abs(i - j)
                    log = -first * math.log(1 + second * far)
                    assert bias[h % len(bias), i, j].item() == pytest.approx(
                        log if name == "kerple-log" else -first * far**second, abs=1e-12
                    )


@pytest.mark.parametrize("name", ["kerple-log", "kerple-power"])
def test_kerple_stays_within_its_bounds(name: str) -> None:
    model = MODELS[name](Dims(4, 2, 1)).double()
    first, second = model.parameters()
    most = 2 if name == "kerple-power" else 5
    with torch.no_grad():
        first.copy_(torch.tensor([-1.0, 3.0]))
        second.copy_(torch.tensor([0.0, 5.0]))
    bias = bias_of(model.eval(), 4)
    expected = [(0.01, 0.01), (3.0, float(most))]
    for h, (a, b) in enumerate(expected):
        value = -a * math.log(1 + b * 3) if name == "kerple-log" else -a * 3**b
        assert bias[h, 0, 3].item() == pytest.approx(value, abs=1e-12)
    assert first.flatten().tolist() == [-1.0, 3.0], "evaluation changes no parameter"
    bias_of(model.train(), 4)
    assert first.flatten().tolist() == pytest.approx([0.01, 3.0])
    assert second.flatten().tolist() == pytest.approx([0.01, float(most)])


def test_kerple_with_the_power_1_is_alibi() -> None:
    model, alibi = KERPLEPower(Dims(8, 4, 1)).double(), ALiBi(Dims(8, 4, 1)).double()
    with torch.no_grad():
        model.slope.weight.copy_(torch.tensor([2.0**-2, 2.0**-4, 2.0**-6, 0.01]))
        model.power.weight.fill_(1.0)
    torch.testing.assert_close(bias_of(model, 9)[:3], bias_of(alibi, 9)[:3], rtol=0, atol=1e-12)


def test_kerple_starts_as_its_authors_start_it() -> None:
    torch.manual_seed(0)
    model = KERPLELog(Dims(4000, 4000, 1))
    for table, most in ((model.height, 2), (model.speed, 1)):
        assert 0 <= table.weight.min() < 0.01
        assert most - 0.01 < table.weight.max() <= most
        assert table.weight.mean().item() == pytest.approx(most / 2, abs=0.05)


@pytest.mark.parametrize("name", ["kerple-log", "kerple-power"])
def test_pairs_without_a_path_need_a_limit(name: str) -> None:
    apart = Structure(("a", "b"), [])
    model = MODELS[name](Dims(4, 2, 1), encoding=Distance())
    with pytest.raises(PositionError, match=rf"{name!r} got a pair of units without a path.*with max_distance=\.\.\."):
        model.prepare(encode([apart], model.encodings))
    model = MODELS[name](Dims(4, 2, 1), encoding=Distance(max_distance=3))
    (bias,) = model.terms(model.prepare(encode([apart], model.encodings)), Site(0)).bias
    assert torch.equal(bias.dense()[0, 0, 1], bias_of(model, 4)[:, 0, 3])


# --- nothing ---


def test_nope_changes_nothing() -> None:
    model, x = made("nope"), noise(3, 10, 8)
    positions = encoded(model, TREES)
    assert not len(positions)
    assert torch.equal(model.inputs(x, model.prepare(positions)), x)
    assert not model.terms(model.prepare(positions), Site(0)).used()
    shuffled = torch.tensor([3, 1, 9, 0, 4, 2, 8, 7, 6, 5])
    out, moved = (Around(model)(encoded(model, TREES[:1]), units) for units in (x[:1], x[:1, shuffled]))
    torch.testing.assert_close(moved, out[:, shuffled], rtol=0, atol=1e-9)


def test_with_a_causal_mask_nope_depends_on_places() -> None:
    """The same text with its first two units exchanged gives the later ones other vectors, in two layers."""
    model, x = NoPE(Dims(8, 2, 2)).double(), noise(1, 6, 8)
    swapped = x[:, [1, 0, 2, 3, 4, 5]]
    positions = encoded(model, [labelled_path(6)])
    first, second = (Around(model)(positions, units, causal(6))[:, 2:] for units in (x, swapped))
    assert not torch.allclose(first, second, atol=1e-6)
    first, second = (Around(model)(positions, units)[:, 2:] for units in (x, swapped))
    torch.testing.assert_close(first, second, rtol=0, atol=1e-9)
