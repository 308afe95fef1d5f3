"""Rotary positions: the authors' numbers in both layouts, and their laws."""

from __future__ import annotations

import pytest
import torch

from structpe.data.encode import encode
from structpe.encodings.laplacian import Laplacian
from structpe.errors import PositionError
from structpe.positions import Dims, Site
from structpe.positions.rotary.rotary import Rotary
from structpe.positions.rotary.rotary_half import RotaryHalf
from structpe.structure import path
from tests.golden import golden

DIMS = Dims(16, 2, 1)
LAYOUTS = {"interleaved": Rotary, "half": RotaryHalf}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_peers_numbers(layout: str) -> None:
    given = golden("rope")
    model = LAYOUTS[layout](DIMS)
    prepared = model.prepare(encode([path(["w"] * given.cfg["L"])], model.encodings))
    (turn,) = model.terms(prepared, Site(0)).maps
    for mine, theirs in zip(turn(given["in.q"], given["in.k"]), "qk", strict=True):
        torch.testing.assert_close(mine, given[f"out.{theirs}_{layout}"], rtol=0, atol=1e-5)


def test_the_layouts_differ_by_a_permutation_of_channels() -> None:
    positions = encode([path(["w"] * 9)], Rotary(DIMS).encodings)
    q, k = torch.randn(2, 1, 2, 9, 8, dtype=torch.float64)
    pairs = torch.tensor([0, 2, 4, 6, 1, 3, 5, 7])
    (one,), (other,) = (m.terms(m.prepare(positions), Site(0)).maps for m in (Rotary(DIMS), RotaryHalf(DIMS)))
    for a, b in zip(one(q, k), other(q[..., pairs], k[..., pairs]), strict=True):
        torch.testing.assert_close(a[..., pairs], b, rtol=0, atol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_lengths_stay(layout: str) -> None:
    model = LAYOUTS[layout](DIMS)
    (turn,) = model.terms(model.prepare(encode([path(["w"] * 9)], model.encodings)), Site(0)).maps
    q, k = torch.randn(2, 1, 2, 9, 8, dtype=torch.float64)
    torch.testing.assert_close(turn(q, k)[0].norm(dim=-1), q.norm(dim=-1))


def test_an_odd_head_is_refused() -> None:
    with pytest.raises(PositionError, match=r"the width of a head must be even; it is 6 / 2 = 3"):
        Rotary(Dims(6, 2, 1))


def test_a_vector_per_unit_is_refused() -> None:
    model = Rotary(DIMS, encoding=Laplacian(k=3))
    positions = encode([path(["w"] * 4)], model.encodings)
    with pytest.raises(PositionError, match=r"needs one number per unit \(.*\); 'laplacian' gives \(3,\)"):
        model.prepare(positions)
