"""DAPE: the authors' scores, the bias of any model, and rows that do not depend on what follows."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from structpe.errors import PositionError
from structpe.positions import Dims, PositionModel, Site, build
from structpe.positions.batch import encode
from structpe.positions.dape import DAPE, DAPEV2
from structpe.structure import path
from structpe.terms import Terms
from tests.golden import golden
from tests.positions.cases import TREES, Around, encoded, made, noise, present
from tests.positions.waves import wave

BEHIND = torch.ones(9, 9, dtype=torch.bool).tril()


def corrected(model: Any, x: Tensor) -> Tensor:
    """Scores (b, h, 9, 9) with biases and corrections."""
    prepared = model.prepare(encode([path(["w"] * 9)], model.encodings))
    (table,), _ = model.biases(model.given(prepared, Site(0)), (2, 9, 9))
    bias = table.dense().movedim(3, 1).expand_as(x)
    return x + bias + model.correction(torch.cat([x, bias], dim=1), BEHIND[None, None], prepared, model.weights(0))


def filled(model: PositionModel, *numbers: Tensor) -> PositionModel:
    for shift, parameter in enumerate(numbers):
        parameter.data = wave(*parameter.shape, shift=float(shift))
    return model.double()


def test_it_is_its_authors_code() -> None:
    model = DAPE(Dims(12, 3, 1), hidden=5)
    first, _, second = model.networks[0]
    numbers = (model.inner.height.weight, model.inner.speed.weight, *first.parameters(), *second.parameters())
    mine = corrected(filled(model, *numbers), wave(2, 3, 9, 9))
    torch.testing.assert_close(mine * BEHIND, golden("dape")["out.scores"] * BEHIND, rtol=0, atol=1e-12)


def test_the_second_is_its_authors_code_but_for_the_last_row() -> None:
    model = DAPEV2(Dims(12, 3, 1), hidden=5)
    first, second = model.first[0], model.second[0]
    numbers = (model.inner.height.weight, model.inner.speed.weight, *first.parameters(), *second.parameters())
    mine = corrected(filled(model, *numbers), wave(2, 3, 9, 9))
    theirs = golden("dape")["out.scores_v2"]
    rows = BEHIND.clone()
    rows[-1, -1] = False  # in the last row, their map ends one key later
    torch.testing.assert_close(mine * rows, theirs * rows, rtol=0, atol=1e-12)
    assert not torch.allclose(mine[..., -1, -1], theirs[..., -1, -1])


def test_filters_of_one_key_are_the_first_model() -> None:
    torch.manual_seed(0)
    one, two = DAPE(Dims(8, 2, 1)).double(), DAPEV2(Dims(8, 2, 1), window=1).double()
    state = {k: v for k, v in one.state_dict().items() if not k.startswith("networks")}
    two.load_state_dict(state, strict=False)
    for mine, theirs in ((two.first[0], one.networks[0][0]), (two.second[0], one.networks[0][2])):
        mine.weight.data, mine.bias.data = theirs.weight.data[..., None, None], theirs.bias.data
    x = noise(3, 10, 8)
    found = [Around(model)(encoded(model, TREES), x, present(TREES)) for model in (one, two)]
    torch.testing.assert_close(*found, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["dape", "dape-v2"])
@pytest.mark.parametrize(
    "bias", ["fire", "alibi", {"name": "t5", "encoding": "undirected-distance"}, "sandwich"], ids=str
)
def test_the_bias_of_any_model_on_any_structure(name: str, bias: Any) -> None:
    model = made(name, Dims(8, 2, 2), bias=bias)
    inner = build(bias, Dims(8, 2, 2))
    assert model.sizes["inner"] == inner.claimed_params()
    assert model.causal == inner.causal
    assert Around(model)(encoded(model, TREES), noise(3, 10, 8), present(TREES)).isfinite().all()


@pytest.mark.parametrize("name", ["dape", "dape-v2"])
@torch.no_grad()
def test_causal_alibi_is_counted_from_the_query_on(name: str) -> None:
    """As ``alibi`` under a causal mask, whose numbers are those of the authors' code, step by step too."""
    one, two = (made(name, Dims(8, 2, 2), bias=bias) for bias in ("alibi-causal", "alibi"))
    two.load_state_dict(one.state_dict(), strict=False)
    x, texts = noise(2, 7, 8), [path(["w"] * 7), path(["w"] * 5)]
    causal = torch.ones(7, 7, dtype=torch.bool).tril()[None, None]
    mine = Around(one)(encoded(one, texts), x, present(texts))
    theirs = Around(two)(encoded(two, texts), x, present(texts) & causal)
    real = present(texts)[:, 0, 0, :, None]
    torch.testing.assert_close(mine * real, theirs * real, rtol=0, atol=1e-12)
    positions = encoded(one, [texts[0]] * 2)
    torch.testing.assert_close(Around(one).steps(positions, x), Around(one)(positions, x), rtol=0, atol=1e-12)


@torch.no_grad()
def test_dape_alibi_is_its_formula() -> None:
    """Scores and -m_h (i - j) of all heads through the network, pair by pair."""
    model, x = made("dape", Dims(6, 2, 1), bias="alibi-causal", hidden=5), noise(1, 5, 6)
    q, k, v = (each.transpose(0, 1) for each in model.projections[0](x[0]).view(5, 3, 2, 3).unbind(1))
    score, out = q @ k.mT / 3**0.5, torch.zeros(2, 5, 3, dtype=torch.float64)
    for i in range(5):
        rows = []
        for j in range(i + 1):
            both = torch.cat([score[:, i, j], torch.tensor([-(2.0**-4), -(2.0**-8)]) * (i - j)])
            rows.append(both[:2] + both[2:] + model.networks[0](both))
        out[:, i] = (torch.stack(rows, dim=1).softmax(-1)[:, None] @ v[:, : i + 1])[:, 0]
    mine, _ = model.attend(x, model.prepare(encoded(model, [path(["w"] * 5)])), Site(0), Terms())
    torch.testing.assert_close(mine[0], model.outs[0](out.transpose(0, 1).flatten(1)), rtol=0, atol=1e-12)


def test_without_a_network_it_is_attention_with_the_bias() -> None:
    model = made("dape", Dims(8, 2, 1), bias="alibi")
    for parameter in model.networks.parameters():
        parameter.data.zero_()
    x, positions = noise(1, 9, 8), encode([path(["w"] * 9)], model.encodings)
    prepared = model.prepare(positions)
    mine, _ = model.attend(x, prepared, Site(0), Terms())
    q, k, v = model.project(x, Site(0))
    bias = model.inner.terms(prepared, Site(0)).bias[0].dense().movedim(3, 1)
    plain = (q @ k.mT / 2 + bias).softmax(-1) @ v
    torch.testing.assert_close(mine, model.outs[0](plain.transpose(1, 2).flatten(2)), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: DAPE(Dims(8, 2, 1), "rotary"), None),
        (
            lambda: DAPE(Dims(8, 2, 1), "sinusoidal"),
            "'dape' corrects the bias of another; 'sinusoidal' gives none alone",
        ),
        (lambda: DAPE(Dims(8, 2, 1), "cope"), "'dape' corrects the bias of another; 'cope' gives none alone"),
        (lambda: DAPEV2(Dims(8, 2, 1), window=2), "'dape-v2' has filters of an odd width; given is window=2"),
    ],
)
def test_what_gives_no_bias_is_refused(make: Any, text: str | None) -> None:
    if text is not None:
        with pytest.raises(PositionError, match=text):
            make()
        return
    model = make()
    prepared = model.prepare(encode([path("abc")], model.encodings))
    with pytest.raises(PositionError, match="'dape' corrects the bias of another; 'rotary' gives maps too"):
        model.attend(noise(1, 3, 8).float(), prepared, Site(0), Terms())
