"""Laplacian eigenvectors at the input: the signs."""

from __future__ import annotations

import pytest
import torch

from structpe.encodings.order import Order
from structpe.encodings.walks import RandomWalk
from structpe.errors import PositionError
from structpe.positions import Dims
from structpe.positions.batch import encode
from structpe.positions.spectral import Dwivedi
from structpe.structure import path

DIMS = Dims(8, 2, 1)


def test_training_flips_whole_eigenvectors_of_the_whole_batch() -> None:
    model = Dwivedi(DIMS)
    positions = encode([path(["w"] * 9), path(["w"] * 7)], model.encodings)
    still = model.eval().prepare(positions)
    assert torch.equal(still, model.prepare(positions))
    signs = set()
    for _ in range(40):
        flipped = model.train().prepare(positions)
        sign = torch.sign((flipped * still).sum((0, 1)))
        assert torch.equal(flipped, still * sign)
        signs.add(tuple(sign.tolist()))
    assert len(signs) > 20


def test_other_vectors_serve_too() -> None:
    model = Dwivedi(DIMS, encoding=RandomWalk(steps=5))
    assert model.claimed_params() == 5 * 8 + 8 == sum(p.numel() for p in model.parameters())


def test_a_single_number_is_refused() -> None:
    with pytest.raises(PositionError, match=r"needs a vector per unit \(.*\); 'order' gives one number"):
        Dwivedi(DIMS, encoding=Order())
