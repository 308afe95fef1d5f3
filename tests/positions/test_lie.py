"""Rotations by exponentials of learned matrices: the authors' numbers, the matrices themselves, and what commutes."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy.linalg import expm, expm_frechet
from torch import Tensor
from torch.nn import functional

from structpe.encodings.coordinates import Coordinates
from structpe.errors import PositionError
from structpe.positions import Dims, PositionModel, Site
from structpe.positions.batch import encode
from structpe.positions.by_rows import LIVE, ONE_BLOCK
from structpe.positions.rotary_lie import (
    CayleyString,
    CirculantString,
    ComRoPE,
    ComRoPEAP,
    HARoPE,
    LieRE,
    PairCoordinates,
    exponential,
    skew,
)
from structpe.structure import Structure
from structpe.transforms import grid
from tests.golden import golden
from tests.positions.cases import made, noise
from tests.positions.waves import wave
from tests.together import together

IMAGE = grid((3, 3))


def turned(model: PositionModel, x: Tensor, layer: int = 0, images: int = 1, image: Structure = IMAGE) -> Tensor:
    prepared = model.prepare(encode([image] * images, model.encodings))
    (turn,) = model.terms(prepared, Site(layer)).maps
    return turn(x, x)[1]


def triangle(matrices: Tensor) -> Tensor:
    """(..., g(g-1)/2) what is above the diagonals."""
    rows, columns = torch.triu_indices(*matrices.shape[-2:], offset=1).unbind()
    return matrices[..., rows, columns]


def test_liere_is_its_authors_code() -> None:
    """Theirs has a class token in front, which is not turned, and coordinates from 0 to 1."""
    raw = 3 + wave(2, 2, 6, 4, 4)  # axes, layers, heads and their blocks
    model = LieRE(Dims(24, 3, 2), block=4, extent=2.0).double()
    model.entries.data = triangle(raw).permute(1, 2, 0, 3).reshape(2, 3, 2, 2, 6)
    theirs = golden("liere")["out.turned"]
    x = wave(2, 3, 10, 8)
    for layer in range(2):
        mine = turned(model, x[:, :, 1:], layer, images=2)
        torch.testing.assert_close(mine, theirs[layer][:, :, 1:], rtol=0, atol=1e-12)
        assert torch.equal(theirs[layer][:, :, 0], x[:, :, 0])


def test_comrope_is_its_authors_code() -> None:
    model = ComRoPE(Dims(24, 3, 1), block=4, extent=3.0).double()
    raw = wave(3, 1, 2, 4, 4)
    model.entries.data = triangle(raw - raw.mT).permute(0, 2, 1, 3)[None]
    model.multiples.data = wave(1, 2, 2, shift=1.0).transpose(1, 2)
    q, k = wave(1, 3, 9, 8), wave(1, 3, 9, 8, shift=2.0)
    mine = turned(model, q) @ turned(model, k).mT
    torch.testing.assert_close(mine, golden("comrope")["out.scores"], rtol=0, atol=1e-12)


def of_blocks(model: LieRE | ComRoPE, layer: int, h: int, x: Tensor) -> Tensor:
    generators = model.generators(layer)[h]
    return torch.block_diag(*((x[:, None, None] * block).sum(0).matrix_exp() for block in generators))


def of_circulants(model: CirculantString, layer: int, h: int, x: Tensor) -> Tensor:
    whole = torch.zeros(model.dims.head, model.dims.head, dtype=torch.float64)
    for axis, column in enumerate(model.columns[layer, h]):
        circulant = torch.stack([column.roll(shift) for shift in range(len(column))], dim=1)
        whole = whole + x[axis] * (circulant - circulant.T)
    return whole.matrix_exp()


def of_basis(model: CayleyString, layer: int, h: int, x: Tensor) -> Tensor:
    """P T P^T; what the model computes lacks the P in front, which scores do not see."""
    angles = model.frequencies[layer, h] @ x
    turn = torch.block_diag(
        *(torch.stack([torch.stack([a.cos(), -a.sin()]), torch.stack([a.sin(), a.cos()])]) for a in angles)
    )
    p = model.change(layer)[h]
    torch.testing.assert_close(p @ p.T, torch.eye(len(p), dtype=torch.float64), rtol=0, atol=1e-12)
    return p @ turn @ p.T


@pytest.mark.parametrize(
    ("name", "rotation"),
    [("liere", of_blocks), ("comrope", of_blocks), ("circulant-string", of_circulants), ("cayley-string", of_basis)],
)
@torch.no_grad()
def test_scores_are_those_of_the_matrices(name: str, rotation: Callable[..., Tensor]) -> None:
    model = made(name, Dims(12, 2, 2))
    places = torch.tensor(IMAGE.features["coordinates"]).double() / model.extent
    q, k = noise(1, 2, 9, 6), noise(1, 2, 9, 6, seed=1)
    for layer in range(2):
        mine = turned(model, q, layer) @ turned(model, k, layer).mT
        for h in range(2):
            each = [rotation(model, layer, h, x) for x in places]
            theirs = torch.stack(
                [
                    torch.stack([q[0, h, i] @ a.T @ b @ k[0, h, j] for j, b in enumerate(each)])
                    for i, a in enumerate(each)
                ]
            )
            torch.testing.assert_close(mine[0, h], theirs, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("name", "options", "relative"),
    [
        ("liere", {}, False),
        ("liere", {"block": 2}, True),
        ("comrope", {}, True),
        ("comrope-ap", {}, True),
        ("circulant-string", {}, True),
        ("cayley-string", {}, True),
    ],
)
def test_on_two_axes_offsets_are_enough_where_matrices_commute(name: str, options: dict, relative: bool) -> None:
    model = made(name, Dims(12, 2, 1), **options)
    x = noise(1, 2, 1, 6).expand(-1, -1, 9, -1)
    scores = (turned(model, x) @ turned(model, x).mT)[0, 0]
    here, there = scores[0, 4], scores[1, 5]  # one place down and one to the right
    assert torch.allclose(here, there, rtol=0, atol=1e-9) == relative


@torch.no_grad()
def test_blocks_of_comrope_ap_take_turns_over_the_axes() -> None:
    model, x = made("comrope-ap", Dims(24, 2, 2), block=4), noise(1, 2, 9, 12)
    places = torch.tensor(IMAGE.features["coordinates"]).double() / 14
    for layer, h in itertools.product(range(2), range(2)):
        mine = turned(model, x, layer)[0, h]
        for block, entries in enumerate(model.entries[layer, h]):
            raw = np.zeros((4, 4))
            raw[np.triu_indices(4, 1)] = entries.numpy()
            for u in range(9):
                rotation = torch.from_numpy(expm((raw - raw.T) * places[u, block % 2].item()))
                part = slice(4 * block, 4 * block + 4)
                torch.testing.assert_close(mine[u, part], rotation @ x[0, h, u, part], rtol=0, atol=1e-12)


@torch.no_grad()
def test_harope_maps_queries_before_it_turns_them_and_keys_inversely() -> None:
    model, (q, k) = made("harope", Dims(12, 2, 2), base=40.0), noise(2, 1, 2, 9, 6)
    places = IMAGE.features["coordinates"].tolist()
    for layer, h in itertools.product(range(2), range(2)):
        raw = np.zeros((2, 6, 6))
        raw[:, *np.triu_indices(6, 1)] = model.rotations[layer, h].numpy()
        u, v = (torch.from_numpy(expm(each - each.T)) for each in raw)
        m = u @ torch.diag(functional.softplus(model.lengths[layer, h]) + 1e-6) @ v.T
        turns = []
        for y, x in places:
            angles = torch.tensor([y * 1.0, x * 1.0, x * 40.0**-0.5], dtype=torch.float64)
            pairs = [torch.stack([torch.stack([a.cos(), -a.sin()]), torch.stack([a.sin(), a.cos()])]) for a in angles]
            turns.append(torch.block_diag(*pairs))
        (turn,) = model.terms(model.prepare(encode([IMAGE], model.encodings)), Site(layer)).maps
        mine = turn(q, k)
        for i in range(9):
            torch.testing.assert_close(mine[0][0, h, i], turns[i] @ m @ q[0, h, i], rtol=0, atol=1e-12)
            torch.testing.assert_close(mine[1][0, h, i], turns[i] @ m.inverse().T @ k[0, h, i], rtol=0, atol=1e-12)


def test_channels_after_the_last_block_and_units_without_a_place_stay() -> None:
    model, x = made("liere", Dims(10, 1, 1), block=4), noise(1, 1, 9, 10)
    out = turned(model, x)
    assert torch.equal(out[..., 8:], x[..., 8:])
    assert not torch.allclose(out[..., 1:, :8], x[..., 1:, :8])
    token = Structure(("t",), [], features={"coordinates": torch.tensor([[-1, -1]]).numpy()})
    torch.testing.assert_close(turned(model, x[:, :, :1], image=token), x[:, :, :1], rtol=0, atol=1e-12)


def test_images_of_two_sizes_in_one_batch() -> None:
    model, x = made("liere"), noise(2, 2, 9, 4)
    images = [grid((3, 3)), grid((1, 9))]
    (turn,) = model.terms(model.prepare(encode(images, model.encodings)), Site(0)).maps
    both = turn(x, x)[0]
    for i, image in enumerate(images):
        torch.testing.assert_close(both[i : i + 1], turned(model, x[i : i + 1], image=image), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: LieRE(Dims(8, 2, 1), block=1), "'liere' turns blocks of 1 channels in heads of width 4; give a block"),
        (lambda: ComRoPE(Dims(8, 2, 1), block=5), "'comrope' turns blocks of 5 channels in heads of width 4"),
        (lambda: LieRE(Dims(8, 2, 1), extent=0.0), "'liere' divides coordinates by an extent above 0, not 0.0"),
        (lambda: CirculantString(Dims(4, 2, 1)), "'circulant-string' turns nothing in heads of width 2; give a width"),
        (lambda: ComRoPEAP(Dims(8, 2, 1), block=4), "'comrope-ap' has 1 blocks of 4 channels in a head, and 2 axes"),
        (lambda: HARoPE(Dims(4, 2, 1)), "'harope' has 1 pairs of channels in a head, and 2 axes; give wider heads"),
        (lambda: CayleyString(Dims(6, 2, 1)), "the width of a head must be even"),
    ],
)
def test_what_cannot_be_turned_is_refused(make: Callable[[], PositionModel], text: str) -> None:
    with pytest.raises(PositionError, match=text):
        make()
    model = LieRE(Dims(8, 2, 1), Coordinates(3))
    with pytest.raises(PositionError, match="'liere' needs 2 coordinates per unit; 'coordinates' gives 3 numbers"):
        model.prepare(encode([grid((1, 2, 2))], model.encodings))


@together("width", [1, 2, 4, 8])
@together("scale", [0.0, 1e-9, 0.3, 5.0, 300.0])
def test_exponentials_and_their_gradients(width: int, scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """By SciPy, whose derivative along a direction is Frechet's; rotations, other matrices, and equal eigenvalues."""
    x = noise(6, width, width) * scale
    x[:3] = x[:3] - x[:3].mT
    if width > 1:  # two angles that are the same
        x[0] = skew(torch.zeros(width * (width - 1) // 2, dtype=x.dtype), width)
        x[0].diagonal(1)[::2], x[0].diagonal(-1)[::2] = scale, -scale
    x[3:] = x[3:] / max(scale, 1)
    x.requires_grad_()
    weights = noise(6, width, width, seed=1)
    for at_once in (1 << 25, 0):
        monkeypatch.setitem(ONE_BLOCK, "cpu", at_once)
        monkeypatch.setitem(LIVE, "cpu", 1 << 13)
        made = exponential(x)
        (found,) = torch.autograd.grad(made, x, weights)
        close = 1e-12 * max(scale, 1)
        for one, mine, along, grad in zip(x, made, weights, found, strict=True):
            np.testing.assert_allclose(mine.detach(), expm(one.detach().numpy()), atol=close)
            back = expm_frechet(one.detach().numpy().T, along.numpy(), compute_expm=False)
            np.testing.assert_allclose(grad, back, atol=20 * close)
    assert exponential(x[:0]).shape == (0, width, width)


def test_each_place_is_turned_once() -> None:
    """Units of other structures at the same place, and in another order, get the same rotations."""
    model = made("liere", Dims(8, 2, 1))
    places = torch.tensor([[[0.0, 1.0], [2.0, 1.0]], [[2.0, 1.0], [0.5, 0.0]]], dtype=torch.float64)
    generators = model.generators(0)
    (map_,) = model.terms(PairCoordinates(places, places), Site(0)).maps
    q = noise(2, 2, 2, 4)
    turned, _ = map_(q, q)
    for b, h, n in np.ndindex(2, 2, 2):
        exponent = sum(places[b, n, c] * generators[h, 0, c] for c in range(2))
        torch.testing.assert_close(turned[b, h, n], torch.linalg.matrix_exp(exponent) @ q[b, h, n])
