"""Complex embeddings: the authors' numbers, the equations with Python's complex numbers, and what is not supported."""

from __future__ import annotations

import cmath
import math

import pytest
import torch
from torch import Tensor

from structpe.encodings import Order, Remaining, Words
from structpe.errors import PositionError, UnsupportedTerm
from structpe.nn.layer import StackConfig
from structpe.nn.stack import Stack
from structpe.positions import Dims, Site, build
from structpe.positions.batch import encode
from structpe.positions.own_attention import Complex, attended, turned, weights
from structpe.structure import path
from structpe.terms import Pairs, Terms
from tests.golden import golden
from tests.positions.cases import noise

WORDS = Words(("a", "b", "c"))


def model(dims: Dims = Dims(8, 2, 1)) -> Complex:
    torch.manual_seed(0)
    made = Complex(dims, words=WORDS).double()
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return made


def test_the_authors_embedding() -> None:
    given = golden("complex_order")
    ids, d = given["in.ids_time_batch"].T, given.cfg["d"]
    texts = [[f"{word}" for word in row] for row in ids.tolist()]
    words = Words(tuple(f"{word}" for word in range(given.cfg["vocab"])))
    mine = Complex(Dims(2 * d, 2, 1), words=words).double()
    with torch.no_grad():
        mine.frequency[1:] = given["w.frequency"]  # row 0 is for words that are not known
    amplitude = torch.cat([given["w.amplitude"][ids], torch.zeros(*ids.shape, d, dtype=torch.float64)], dim=-1)
    positions = encode([path(row) for row in texts], mine.encodings)
    real, imaginary = mine.inputs(amplitude, mine.prepare(positions)).chunk(2, dim=-1)
    torch.testing.assert_close(real, given["out.re"], rtol=0, atol=1e-9)
    torch.testing.assert_close(imaginary, given["out.im"], rtol=0, atol=1e-9)


def test_the_authors_attention() -> None:
    given = golden("complex_order")
    q, k, v = ((given[f"in.att.{x}_re"], given[f"in.att.{x}_im"]) for x in "qkv")
    every = torch.ones(1, 1, 1, 1, dtype=torch.bool)
    torch.testing.assert_close(weights(q, k, every), given["out.att.p"], rtol=0, atol=1e-9)
    for part, name in zip(attended(q, k, v, every), ("re", "im"), strict=True):
        torch.testing.assert_close(part, given[f"out.att.{name}"], rtol=0, atol=1e-9)


def test_frequencies_start_as_the_authors_do() -> None:
    given = golden("complex_order")
    mine = Complex(Dims(2 * given.cfg["d"], 2, 1), words=WORDS)
    expected = given["out.freq_init"][1:2].expand(4, -1)  # their row 0 is of padding, and zero
    torch.testing.assert_close(mine.frequency.detach(), expected, rtol=0, atol=1e-6)


def test_units_turn_with_their_place_from_the_end() -> None:
    mine, x = model(), noise(1, 3, 8)
    given = mine.inputs(x, mine.prepare(encode([path("bxa")], mine.encodings)))[0].detach()
    for unit, (row, t) in enumerate(((2, 2), (0, 1), (1, 0))):
        for channel in range(4):
            amplitude = complex(x[0, unit, channel], x[0, unit, 4 + channel])
            z = amplitude * cmath.exp(1j * t * float(mine.frequency[row, channel].detach()))
            assert complex(given[unit, channel], given[unit, 4 + channel]) == pytest.approx(z)


def test_attention_with_python_s_complex_numbers() -> None:
    mine, x, n = model(), noise(1, 3, 8), 3
    z = [[complex(x[0, i, c], x[0, i, 4 + c]) for c in range(4)] for i in range(n)]
    query, key, value, out = mine.project[0]
    q, k, v = ([_project(layer, row) for row in z] for layer in (query, key, value))
    given = mine.attend(x, None, Site(0), Terms())[0].detach()
    for i in range(n):
        mixed: list[complex] = []
        for head in (slice(0, 2), slice(2, 4)):
            scores = [abs(sum(a * b for a, b in zip(q[i][head], k[j][head], strict=True))) / 2**0.5 for j in range(n)]
            p = [math.exp(s) / sum(map(math.exp, scores)) for s in scores]
            mixed += [sum(p[j] * v[j][head][c] for j in range(n)) for c in range(2)]
        for channel, expected in enumerate(_project(out, mixed)):
            assert complex(given[0, i, channel], given[0, i, 4 + channel]) == pytest.approx(expected)


def _project(layer: torch.nn.Linear, z: list[complex]) -> list[complex]:
    """The same real weights, and the same bias, for both parts."""
    w, b = layer.weight.tolist(), layer.bias.tolist()
    return [sum(a * x for a, x in zip(row, z, strict=True)) + complex(c, c) for row, c in zip(w, b, strict=True)]


def test_phases_add_in_the_product() -> None:
    """Not conjugated: moving both units by one turns the product twice as far, instead of leaving it unchanged."""
    angle, a = noise(4), (noise(1, 4), noise(1, 4, seed=1))
    products = []
    for t in (0, 1):
        real, imaginary = turned(a, t * angle)
        products.append(torch.complex(real, imaginary) ** 2)
    torch.testing.assert_close(products[1], products[0] * torch.exp(2j * angle))


def test_a_word_may_turn_in_the_reading_order() -> None:
    forwards = build(
        {"name": "complex", "encoding": "order", "words": {"name": "words", "texts": ["a"]}}, Dims(8, 2, 1)
    )
    assert forwards.encodings == (Order(), Words(("a",)))
    assert model().encodings == (Remaining(), WORDS)


def test_masks_lists_and_causality_are_supported() -> None:
    mine, x = model(), noise(2, 4, 8)
    causal, _ = mine.attend(x, None, Site(0), Terms(causal=True))
    mask = torch.ones(4, 4, dtype=torch.bool).tril()[None, None]
    masked, _ = mine.attend(x, None, Site(0), Terms(mask=(mask,)))
    batch, _, query, key = mask.expand(2, 1, 4, 4).nonzero().unbind(1)
    listed, _ = mine.attend(x, None, Site(0), Terms(pairs=(Pairs(batch, query, key),)))
    torch.testing.assert_close(causal, masked, rtol=0, atol=0)
    torch.testing.assert_close(listed, masked, rtol=0, atol=0)
    first, _ = mine.attend(x[:, :1], None, Site(0), Terms())
    torch.testing.assert_close(masked[:, :1], first, rtol=0, atol=1e-12)


def test_what_changes_scores_is_refused() -> None:
    with pytest.raises(UnsupportedTerm, match=r"'complex' .* does not support bias, scale; .* causal, mask, pairs"):
        model().attend(noise(1, 3, 8), None, Site(0), Terms(bias=(torch.zeros(1, 1, 3, 3),), scale=2.0))


def test_a_unit_that_may_see_nothing_and_scores_of_zero_have_gradients() -> None:
    mine = model()
    x = torch.zeros(1, 3, 8, dtype=torch.float64, requires_grad=True)
    with torch.no_grad():
        for layer in mine.project[0]:
            layer.bias.zero_()
    nothing = torch.tensor([[True, True, False], [False] * 3, [True] * 3])[None, None]
    out, _ = mine.attend(x, None, Site(0), Terms(mask=(nothing,)))
    out.sum().backward()
    assert out.isfinite().all()
    assert x.grad is not None
    assert x.grad.isfinite().all()


def test_it_is_the_attention_of_an_encoder() -> None:
    dims = Dims(8, 2, 2)
    encoder = Stack(StackConfig.transformer(dims, 16), Complex(dims, words=WORDS)).double().eval()
    positions = encode([path("abc"), path("cb")], encoder.position.encodings)
    present = torch.tensor([[True, True, True], [True, True, False]])
    hidden: Tensor = encoder.padded(noise(2, 3, 8), positions, present)
    alone = encoder.padded(noise(2, 3, 8)[1:, :2], encode([path("cb")], encoder.position.encodings))
    torch.testing.assert_close(hidden[1, :2], alone[0], rtol=0, atol=1e-12)


def test_heads_must_divide_half_the_width() -> None:
    with pytest.raises(PositionError, match="for 2 heads; the width 6 is not a multiple of 4"):
        Complex(Dims(6, 2, 1), words=WORDS)
