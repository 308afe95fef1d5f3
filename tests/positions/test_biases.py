"""Scalars for pairs of places and for distances, of Dufter et al. 2020."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from structpe.encodings import Depth, Distance
from structpe.errors import PositionError
from structpe.positions import Dims, Site
from structpe.positions.absolute import DufterAbsolute
from structpe.positions.batch import encode
from structpe.positions.relative import DufterRelative
from structpe.structure import Structure, path
from tests.positions.cases import TREES, encoded, labelled_path, made

SHARINGS = ["none", "head-wise", "layer-wise", "both"]


@pytest.mark.parametrize("sharing", SHARINGS)
def test_each_pair_of_places_has_a_number(sharing: str) -> None:
    model = made("dufter-abs", Dims(8, 2, 3), max_length=6, sharing=sharing)
    positions = encoded(model, [labelled_path(5)])
    layers, cells, heads = model.table.weight.shape
    assert (layers, cells, heads) == (
        1 if sharing in ("layer-wise", "both") else 3,
        36,
        1 if sharing in ("head-wise", "both") else 2,
    )
    for layer in range(3):
        (bias,) = model.terms(model.prepare(positions), Site(layer)).bias
        for h in range(heads):
            for t in range(5):
                for s in range(5):
                    assert bias[0, h, t, s] == model.table.weight[min(layer, layers - 1), 6 * t + s, h]


def test_places_of_a_tree_are_its_depths() -> None:
    model = made("dufter-abs", Dims(8, 2, 3), encoding=Depth(), max_length=6)
    positions = encoded(model, TREES)
    (bias,) = model.terms(model.prepare(positions), Site(1)).bias
    for row, structure in enumerate(TREES):
        depth = positions[Depth()][row].tolist()
        for i in range(structure.unit_count):
            for j in range(structure.unit_count):
                assert torch.equal(bias[row, :, i, j], model.table.weight[1, 6 * depth[i] + depth[j]])


@pytest.mark.parametrize("sharing", SHARINGS)
def test_the_numbers_of_distances_have_a_learned_spectrum(sharing: str) -> None:
    """The real part of the circulant matrix whose eigenvalues are the spectrum, its upper left quarter."""
    n = 6
    model = made("dufter-rel", Dims(8, 2, 3), max_length=n, sharing=sharing)
    waves = np.fft.fft(np.eye(2 * n), norm="ortho")
    for layer in range(3):
        (bias,) = model.terms(model.prepare(encoded(model, [labelled_path(n)])), Site(layer)).bias
        spectrum = model.table.at(layer).detach().numpy()
        for h in range(spectrum.shape[1]):
            circulant = (waves.conj().T @ np.diag(spectrum[:, h]) @ waves).real[:n, :n]
            np.testing.assert_allclose(bias.dense()[0, :, :, h].detach().numpy(), circulant, rtol=0, atol=1e-12)


def test_a_flat_spectrum_is_a_number_for_distance_0_only() -> None:
    model = made("dufter-rel", Dims(4, 1, 1), max_length=8)
    with torch.no_grad():
        model.table.weight.fill_(3.0)
    (bias,) = model.terms(model.prepare(encoded(model, [labelled_path(8)])), Site(0)).bias
    torch.testing.assert_close(bias.dense()[0, :, :, 0], 3 * torch.eye(8, dtype=torch.float64), rtol=0, atol=1e-12)


def test_they_start_small() -> None:
    torch.manual_seed(0)
    assert DufterAbsolute(Dims(8, 2, 3), max_length=64).table.weight.std().item() == pytest.approx(1 / 8, rel=0.05)
    relative = DufterRelative(Dims(8, 2, 3), max_length=500).table.weight
    assert relative.std().item() == pytest.approx(1 / math.sqrt(1000), rel=0.05)


def test_they_end() -> None:
    for model, what in (
        (DufterAbsolute(Dims(8, 2, 1), max_length=4), "positions"),
        (DufterRelative(Dims(8, 2, 1), max_length=4), "distances"),
    ):
        model.prepare(encode([path(["w"] * 4)], model.encodings))
        with pytest.raises(PositionError, match=f"has 4 {what}, .* needs 5; build it with a larger 'max_length'"):
            model.prepare(encode([path(["w"] * 5)], model.encodings))
    apart = Structure(("a", "b"), [])
    model = DufterRelative(Dims(8, 2, 1), encoding=Distance())
    with pytest.raises(PositionError, match="'dufter-rel' got a pair of units without a path"):
        model.prepare(encode([apart], model.encodings))
