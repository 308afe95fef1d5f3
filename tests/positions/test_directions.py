"""DiSAN's masks and its attention with a weight per channel; weights that are fixed bell curves."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from structpe.encodings import Depth, Distance
from structpe.errors import PositionError, UnsupportedTerm
from structpe.positions import Dims, Site
from structpe.positions.batch import encode
from structpe.positions.own_attention import HardCodedGaussian
from structpe.positions.windows import DiSAN, DiSANBlock
from structpe.structure import Structure, path
from structpe.terms import Pairs, Terms
from tests.golden import golden
from tests.positions.cases import TREES, Around, causal, encoded, labelled_path, made, noise, present

LOOKS = {
    "forward": lambda t, s: s < t,
    "backward": lambda t, s: s > t,
    "diagonal": lambda t, s: s != t,
}


# --- DiSAN ---


@pytest.mark.parametrize("direction", LOOKS)
def test_the_masks_are_strict(direction: str) -> None:
    model = DiSAN(Dims(8, 2, 1), direction=direction)
    (mask,) = model.terms(model.prepare(encoded(model, [labelled_path(5)])), Site(0)).mask
    for t in range(5):
        for s in range(5):
            assert bool(mask[0, 0, t, s]) == LOOKS[direction](t, s)


@pytest.mark.parametrize(("heads", "forward"), [(1, 1), (2, 1), (3, 2), (4, 2)])
def test_heads_look_both_ways(heads: int, forward: int) -> None:
    model = DiSAN(Dims(heads, heads, 1))
    (mask,) = model.terms(model.prepare(encoded(model, TREES[:1])), Site(0)).mask
    places = encoded(model, TREES[:1])[model.encodings[0]][0]
    before = places[None, :] < places[:, None]
    assert torch.equal(mask[0, :forward], before.expand(forward, -1, -1))
    assert torch.equal(mask[0, forward:], before.T.expand(heads - forward, -1, -1))


def test_a_unit_that_sees_nothing_gets_nothing() -> None:
    model, x = DiSAN(Dims(8, 2, 1), direction="forward").double(), noise(1, 5, 8)
    out = Around(model)(encoded(model, [labelled_path(5)]), x)
    assert torch.equal(out[0, 0], x[0, 0])
    assert not torch.equal(out[0, 1], x[0, 1])


def disan_by_hand(model: DiSANBlock, x: Tensor, sees: list[list[bool]]) -> Tensor:
    """One layer, channel by channel."""
    w = {name: value.tolist() for name, value in model.attentions[0].state_dict().items()}
    n, d = x.shape

    def linear(name: str, v: list[float], bias: bool) -> list[float]:
        rows = w[f"{name}.weight"]
        return [sum(a * b for a, b in zip(r, v, strict=True)) + (w[f"{name}.bias"][c] if bias else 0)
                for c, r in enumerate(rows)]  # fmt: skip

    h = [[a if a > 0 else math.expm1(a) for a in linear("hidden", x[i].tolist(), True)] for i in range(n)]
    out = []
    for i in range(n):
        s = []
        for c in range(d):
            query = linear("query", h[i], False)[c]
            seen = [j for j in range(n) if sees[i][j]]
            raw = [math.exp(5 * math.tanh((linear("key", h[j], False)[c] + query + w["bias"][c]) / 5)) for j in seen]
            s.append(sum(e * h[j][c] for e, j in zip(raw, seen, strict=True)) / sum(raw) if seen else 0.0)
        gates = zip(linear("gate_hidden", h[i], True), linear("gate_sum", s, True), w["gate_bias"], strict=True)
        g = [1 / (1 + math.exp(-sum(three))) for three in gates]
        out.append([g[c] * h[i][c] + (1 - g[c]) * s[c] for c in range(d)])
    return torch.tensor(out, dtype=torch.float64)


@pytest.mark.parametrize("direction", LOOKS)
def test_attention_per_channel_by_hand(direction: str) -> None:
    model = made("disan-block", Dims(4, 2, 1), direction=direction)
    x, positions = noise(1, 6, 4), encoded(model, [labelled_path(6)])
    masked = torch.ones(1, 1, 1, 6, dtype=torch.bool)
    masked[..., 4] = False
    sees = [[LOOKS[direction](t, s) and s != 4 for s in range(6)] for t in range(6)]
    mine, _ = model.attend(x, model.prepare(positions), Site(0), Terms(mask=(masked,)))
    torch.testing.assert_close(mine[0], disan_by_hand(model, x[0], sees), rtol=0, atol=1e-9)


def test_it_has_no_heads() -> None:
    model = made("disan-block")
    positions = encoded(model, [labelled_path(3)])
    with pytest.raises(UnsupportedTerm, match="has no heads: a mask for each of 2 heads does not fit"):
        model.attend(noise(1, 3, 8), model.prepare(positions), Site(0), Terms(mask=(causal(3).expand(1, 2, 3, 3),)))


# --- bell curves ---


def test_the_authors_weights() -> None:
    given = golden("hardcoded_gaussian")
    cfg = given.cfg
    model = HardCodedGaussian(Dims(8, 4, 1), centres=tuple(cfg["offset"]), deviations=tuple(cfg["std"]))
    weights = model.prepare(encode([path(["w"] * cfg["L"])], model.encodings))
    torch.testing.assert_close(weights[0].float(), given["out.weights"], rtol=0, atol=1e-6)


@pytest.mark.parametrize("threshold", [0.0, 0.1])
def test_weights_are_used_as_they_are(threshold: float) -> None:
    model = made("hard-coded-gaussian", Dims(6, 3, 2), centres=(-1.0, 2.0), deviations=(0.7, 1.5), threshold=threshold)
    x, n = noise(1, 5, 6), 5
    out, _ = model.attend(x, model.prepare(encoded(model, [labelled_path(n)])), Site(1), Terms(mask=(causal(n),)))
    v, wanted = x[0] @ model.values[1].weight.T, torch.zeros(n, 6, dtype=torch.float64)
    for h, (c, z) in enumerate([(-1.0, 0.7), (2.0, 1.5), (-1.0, 0.7)]):
        for i in range(n):
            for j in range(i + 1):
                density = math.exp(-(((j - i - c) / z) ** 2) / 2) / (z * math.sqrt(2 * math.pi))
                if density >= threshold:
                    wanted[i, 2 * h : 2 * h + 2] += density * v[j, 2 * h : 2 * h + 2]
    torch.testing.assert_close(out[0], wanted @ model.outs[1].weight.T, rtol=0, atol=1e-9)


def test_pairs_without_a_path_have_no_weight_and_units_of_a_node_their_offset() -> None:
    apart = Structure(("a", "b", "c"), [[0, 1]]).with_units(("a", "b", "b'", "c"), (0, 1, 1, 2))
    model = HardCodedGaussian(Dims(1, 1, 1), encoding=Distance(), centres=(1.0,))
    weights = model.prepare(encode([apart], model.encodings))[0, 0]
    peak = 1 / math.sqrt(2 * math.pi)
    assert weights[0, 1].item() == pytest.approx(peak)  # a -> b
    assert weights[1, 2].item() == pytest.approx(peak)  # b -> b'
    assert weights[2, 1].item() == pytest.approx(peak * math.exp(-2))
    assert weights[3].tolist()[:3] == [0, 0, 0]


@pytest.mark.parametrize("options", [{"centres": ()}, {"deviations": ()}, {"deviations": (1.0, 0.0)}])
def test_invalid_curves_are_refused(options: dict[str, tuple[float, ...]]) -> None:
    with pytest.raises(PositionError, match="needs a centre and a deviation above 0 for each head; given are centres"):
        HardCodedGaussian(Dims(8, 2, 1), **options)


# --- both have their own attention ---

BLOCKS = ["disan-block", "hard-coded-gaussian"]


@pytest.mark.parametrize("name", BLOCKS)
def test_lists_of_pairs_and_causal_attention_are_masks(name: str) -> None:
    model, x = made(name), noise(1, 6, 8)
    prepared = model.prepare(encoded(model, [labelled_path(6)]))
    listed = causal(6)[0, 0].nonzero()
    pairs = Pairs(torch.zeros(len(listed), dtype=torch.long), listed[:, 0], listed[:, 1])
    out = [
        model.attend(x, prepared, Site(0), terms)[0]
        for terms in (Terms(mask=(causal(6),)), Terms(causal=True), Terms(pairs=(pairs,)))
    ]
    assert torch.equal(out[0], out[1])
    assert torch.equal(out[0], out[2])


@pytest.mark.parametrize("name", BLOCKS)
def test_other_terms_are_refused(name: str) -> None:
    model = made(name)
    prepared = model.prepare(encoded(model, [labelled_path(3)]))
    with pytest.raises(UnsupportedTerm, match=f"{name!r} has its own attention, which does not support bias"):
        model.attend(noise(1, 3, 8), prepared, Site(0), Terms(bias=(torch.zeros(1, 1, 3, 3),)))
    assert not model.causal


@pytest.mark.parametrize(("name", "encoding"), [("disan", Depth()), ("disan-block", Depth()),
                                                ("hard-coded-gaussian", Distance())])  # fmt: skip
def test_they_look_along_trees_too(name: str, encoding: object) -> None:
    model = made(name, encoding=encoding)
    assert Around(model)(encoded(model, TREES), noise(3, 10, 8), present(TREES)).isfinite().all()
