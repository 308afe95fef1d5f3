"""Stochastic position encoding: the authors' codes, what their products are on average, and linear attention."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from structpe.attention import attend
from structpe.encodings import Depth
from structpe.errors import PositionError
from structpe.positions import Dims, Positions, Site
from structpe.positions.batch import encode
from structpe.positions.stochastic import SPEConv, SPEConvGated, SPEGated, SPESine
from structpe.structure import path
from structpe.terms import Terms
from tests.golden import Golden, golden
from tests.positions.cases import TREES, Around, able, causal, encoded, labelled_path, made, noise, present
from tests.representatives import only

SPE = ["spe-conv", "spe-conv-gated", "spe-gated", "spe-sine"]


def on_path(model: Any, length: int) -> Positions:
    return encode([path(["w"] * length)], model.encodings)


def codes(change: Any, model: Any, length: int) -> tuple[Tensor, Tensor]:
    """(n, h, d_h, R) the codes of queries and of keys: what becomes of vectors with a 1 in one channel."""
    width = model.dims.head
    ones = torch.eye(width, dtype=torch.float64)[:, None, None].expand(-1, model.dims.heads, length, -1)
    q, k = change(ones, ones)
    return q.permute(2, 1, 0, 3), k.permute(2, 1, 0, 3)


# --- the authors' numbers ---


def as_coded(model: Any, given: Golden) -> Any:
    own = {"codes.frequencies": given["w.freqs"], "codes.phases": given["w.offsets"], "codes.gains": given["w.gains"]}
    if "gates" in model.state_dict():
        own["gates"] = given["w.filter.gate"][None]
    model.load_state_dict(own)
    return model


def test_the_authors_codes() -> None:
    given = golden("spe_sine")
    cfg = given.cfg
    dims = Dims(cfg["heads"] * cfg["features"], cfg["heads"], 1)
    model = as_coded(SPESine(dims, realisations=cfg["realizations"], sines=cfg["sines"]).double(), given)
    waves = model.waves(on_path(model, cfg["L"]), given["in.z"][0])
    for mine, theirs in zip(codes(waves.map, model, cfg["L"]), ("qbar", "kbar"), strict=True):
        torch.testing.assert_close(mine, given[f"out.{theirs}"][0], rtol=0, atol=1e-9)


def test_the_authors_gated_queries_and_keys() -> None:
    given = golden("spe_sine")
    cfg = given.cfg
    dims = Dims(cfg["heads"] * cfg["features"], cfg["heads"], 1)
    model = as_coded(SPEGated(dims, realisations=cfg["realizations"], sines=cfg["sines"]).double(), given)
    waves = model.gated(model.waves(on_path(model, cfg["L"]), given["in.z"][0]), 0, given["in.gate_noise"])
    q, k = waves.map(given["in.q"].transpose(1, 2), given["in.k"].transpose(1, 2))
    torch.testing.assert_close(q.transpose(1, 2), given["out.qhat"], rtol=0, atol=1e-9)
    torch.testing.assert_close(k.transpose(1, 2), given["out.khat"], rtol=0, atol=1e-9)


def test_the_authors_position_attention_is_what_evaluation_gives() -> None:
    """sqrt(R/d_h) / (2K) times it, exactly, with as many realisations as there are rows of noise."""
    given = golden("spe_sine")
    cfg, realisations = given.cfg, 12
    dims = Dims(cfg["heads"] * cfg["features"], cfg["heads"], 1)
    model = as_coded(SPESine(dims, realisations=realisations, sines=cfg["sines"]).double(), given).eval()
    q, k = codes(model.prepare(on_path(model, cfg["L"])).map, model, cfg["L"])
    products = torch.einsum("mhdr,nhdr->hdmn", q, k)
    expected = given["out.posattn"][0] * math.sqrt(realisations / cfg["features"]) / (2 * cfg["sines"])
    torch.testing.assert_close(products, expected, rtol=0, atol=1e-9)


# --- by hand ---


def expected_products(model: Any, length: int) -> Tensor:
    """(h, d_h, n, n) the average of Q_td.K_sd, from the formulas, but for sqrt(R / d_h)."""
    heads, width = model.dims.heads, model.dims.head
    result = torch.zeros(heads, width, length, length, dtype=torch.float64)
    for h in range(heads):
        for d in range(width):
            for t in range(length):
                for s in range(length):
                    result[h, d, t, s] = position_attention(model, h, d, t - s)
    return result


def position_attention(model: Any, h: int, d: int, r: int) -> float:
    if isinstance(model, (SPEConv, SPEConvGated)):
        c, a, b = h * model.dims.head + d, model.of_queries.tolist(), model.of_keys.tolist()
        mean = sum(a[c][u] * b[c][u + r] for u in range(len(a[c])) if 0 <= u + r < len(b[c]))
    else:
        frequencies, phases, gains = (p[h, d].tolist() for p in model.codes.parameters())
        waves = [
            math.log1p(math.exp(g)) ** 2 * math.cos(2 * math.pi * r / (1 + math.exp(-f)) / 2 + p)
            for f, p, g in zip(frequencies, phases, gains, strict=True)
        ]
        mean = sum(waves) / (2 * len(waves))
    if isinstance(model, (SPEGated, SPEConvGated)):
        gate = 1 / (1 + math.exp(-model.gates[0, h, d].item()))
        return (1 - gate) * mean + gate
    return mean


@pytest.mark.parametrize("name", only(SPE, "spe-conv", "spe-gated"))
def test_products_of_codes_on_average_over_draws(name: str) -> None:
    """100,000 realisations; each mean within 5 standard errors: of 150 one would miss in about 10,000 runs."""
    length, draws = 5, 100_000
    options = {"width": 3} if name.startswith("spe-conv") else {"sines": 2}
    model = made(name, Dims(6, 2, 1), realisations=draws, **options).train()
    torch.manual_seed(7)
    with torch.no_grad():
        (change,) = model.terms(model.prepare(on_path(model, length)), Site(0, training=True)).maps
        q, k = codes(change, model, length)
    wanted = expected_products(model, length)
    for t in range(length):
        for s in range(length):
            each = q[t] * k[s] * math.sqrt(draws * 3)  # (h, d_h, R), of which q.k is sqrt(R / d_h) times the mean
            error = each.std(-1) / math.sqrt(draws)
            assert ((each.mean(-1) - wanted[:, :, t, s]).abs() <= 5 * error).all()
            assert error.max() < 0.1 * wanted.abs().max(), "too few to tell anything"


@pytest.mark.parametrize("name", ["spe-gated", "spe-sine"])
def test_in_evaluation_products_are_their_average(name: str) -> None:
    """16 realisations are enough for the 12 or 15 rows of noise of a head. Channels do not mix either."""
    model = made(name, Dims(6, 2, 1), realisations=16, sines=2)
    (change,) = model.terms(model.prepare(on_path(model, 5)), Site(0)).maps
    q, k = codes(change, model, 5)
    products = torch.einsum("mhdr,nhdr->hdmn", q, k)
    torch.testing.assert_close(products, expected_products(model, 5) * math.sqrt(16 / 3), rtol=0, atol=1e-9)
    mixed = torch.einsum("mhdr,nher->hdemn", q, k)
    apart = 1 - torch.eye(3, dtype=torch.float64)[None, :, :, None, None]
    torch.testing.assert_close(mixed * apart, torch.zeros_like(mixed), rtol=0, atol=1e-9)


def test_filters_fall_on_the_noise_as_in_the_authors_code() -> None:
    """Noise for L + 4K places, cross-correlated, K places left out in front; a filters queries, b keys."""
    width, length = 3, 5
    model = made("spe-conv", Dims(4, 2, 1), realisations=6, width=width)
    z = noise(6, 4, length + 4 * width)
    filtered = model.filtered(on_path(model, length), z[:, :, width : 2 * width + length - 1])
    for mine, filters in zip(codes(filtered.map, model, length), (model.of_queries, model.of_keys), strict=True):
        for t in range(length):
            for h in range(2):
                for d in range(2):
                    window = z[:, 2 * h + d, width + t : 2 * width + t]
                    by_hand = (window * filters[2 * h + d]).sum(-1) / (6 * 2) ** 0.25
                    torch.testing.assert_close(mine[t, h, d], by_hand, rtol=0, atol=1e-12)


def test_a_gate_lets_the_same_noise_through_at_all_places() -> None:
    model = made("spe-conv-gated", Dims(4, 2, 3), realisations=6, width=3)
    codes_of, dry = model.filtered(on_path(model, 5), noise(6, 4, 7)), noise(2, 2, 6, seed=1)
    plain, mixed = (codes(each.map, model, 5) for each in (codes_of, model.gated(codes_of, 2, dry)))
    for before, after in zip(plain, mixed, strict=True):
        for h in range(2):
            for d in range(2):
                g = 1 / (1 + math.exp(-model.gates[2, h, d].item()))
                expected = math.sqrt(1 - g) * before[:, h, d] + math.sqrt(g) * dry[h, d] / (6 * 2) ** 0.25
                torch.testing.assert_close(after[:, h, d], expected, rtol=0, atol=1e-12)


# --- laws ---


@pytest.mark.parametrize("name", SPE)
def test_each_batch_in_training_has_its_own_draw_and_evaluation_none(name: str) -> None:
    model, x = made(name).train(), noise(3, 10, 8)
    positions = encoded(model, TREES)
    assert not torch.allclose(Around(model)(positions, x), Around(model)(positions, x))
    model.eval()
    state = torch.get_rng_state()
    assert torch.equal(Around(model)(positions, x), Around(model)(positions, x))
    assert torch.equal(torch.get_rng_state(), state)


def test_a_longer_text_has_the_noise_of_a_shorter_one() -> None:
    model = made("spe-conv", realisations=4, width=30)
    short, long = (codes(model.prepare(on_path(model, n)).map, model, n) for n in (3, 100))
    for a, b in zip(short, long, strict=True):
        torch.testing.assert_close(a, b[:3], rtol=0, atol=1e-12)


def test_rows_of_a_fixed_noise_are_orthogonal_in_blocks() -> None:
    model = SPESine(Dims(6, 2, 1), realisations=4, sines=1)  # 6 rows of width 4
    rows = model.fixed.flatten(1, 2)
    gram = rows @ rows.transpose(-1, -2)
    four = 4 * torch.eye(4, dtype=torch.float64)
    torch.testing.assert_close(gram[:, :4, :4], four.expand(2, -1, -1), rtol=0, atol=1e-12)
    torch.testing.assert_close(gram[:, 4:, 4:], four[:2, :2].expand(2, -1, -1), rtol=0, atol=1e-12)
    assert gram[:, :4, 4:].abs().max() > 0.1
    assert not torch.allclose(rows[0], rows[1])


def feature(x: Tensor) -> Tensor:
    return torch.nn.functional.elu(x) + 1


@pytest.mark.parametrize("name", SPE)
def test_linear_attention_has_relative_positions(name: str) -> None:
    """In every kernel that takes feature maps: o_i = sum_j f(q'_i).f(k'_j) v_j, divided by the same sum of ones."""
    model = made(name, Dims(8, 2, 1), realisations=6)
    q, k, v = (noise(1, 2, 7, 4, seed=i) for i in range(3))
    terms = model.terms(model.prepare(encoded(model, [labelled_path(7)])), Site(0))
    (change,) = terms.maps
    turned = [feature(x) for x in change(q, k)]
    for behind in (False, True):
        whole = terms + Terms(feature_map=feature, causal=behind)
        weights = turned[0] @ turned[1].transpose(-1, -2) * (causal(7) if behind else 1)
        by_hand = weights / weights.sum(-1, keepdim=True) @ v
        kernels = able(whole.used())
        assert {"dense", "linear"} <= set(kernels)
        for kernel in kernels:
            torch.testing.assert_close(attend(q, k, v, whole, kernel), by_hand, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", SPE)
def test_depths_of_trees_are_places_too(name: str) -> None:
    model = made(name, encoding=Depth())
    assert Around(model)(encoded(model, TREES), noise(3, 10, 8), present(TREES)).isfinite().all()


# --- what is refused ---


@pytest.mark.parametrize(("model", "size"), [(SPESine, "sines"), (SPEGated, "realisations"), (SPEConv, "width")])
def test_sizes_below_1_are_refused(model: type, size: str) -> None:
    with pytest.raises(PositionError, match=f"option '{size}' of .* is 0; give 1 or more"):
        model(Dims(8, 2, 1), **{size: 0})


def test_filters_need_whole_numbers() -> None:
    model = SPEConv(Dims(8, 2, 1))
    (encoding,) = model.encodings
    with pytest.raises(PositionError, match=r"'spe-conv' needs whole numbers from 0 .*'order' returns other numbers"):
        model.prepare(Positions({encoding: torch.tensor([[0.5, 1.0]])}))
