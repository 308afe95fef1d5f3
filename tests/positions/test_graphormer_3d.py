"""Graphormer-3D: the equations of the authors' code, pair by pair."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from structpe.encodings import Euclidean
from structpe.errors import EncodingError, PositionError
from structpe.positions import MODELS, Dims, Site
from structpe.positions.batch import encode
from structpe.structure import Structure, path
from tests.positions.cases import noise

WATER = Structure(
    ("O", "H", "H", "Xe"),
    [[0, 1], [0, 2]],
    directed=False,
    features={"coordinates": np.array([[0.0, 0, 0.1], [0.0, 0.75, -0.5], [0.0, -0.75, -0.5], [3.0, 0, 0]])},
)
GAS = Structure(("H", "H"), [[0, 1]], directed=False, features={"coordinates": np.array([[0.0, 0, 0], [0.7, 0, 0]])})


def test_distances_and_labels_of_each_pair() -> None:
    pairs = Euclidean(labels=("H", "O")).one(WATER).pairs()
    places, labels = WATER.features["coordinates"], [2, 1, 1, 0]
    for i in range(4):
        for j in range(4):
            expected = [math.dist(places[i], places[j]), labels[i], labels[j]]
            np.testing.assert_allclose(pairs[i, j], expected, atol=1e-12)


def test_without_coordinates_a_structure_is_a_line_of_its_reading_order() -> None:
    line = Euclidean().fit([path("ab")]).one(path("aba"))
    assert line.pairs()[0].tolist() == [[0, 1, 1], [1, 1, 2], [2, 1, 1]]
    with pytest.raises(EncodingError, match="no feature 'coordinates', and no reading order in its place"):
        Euclidean().one(Structure(("a",), np.zeros((0, 2), dtype=int)))


def test_units_are_where_their_node_is() -> None:
    split = path("abc").with_units("abbc", [0, 1, 1, 2])
    assert Euclidean().one(split).pairs()[:, :, 0].tolist() == [[0, 1, 1, 2], [1, 0, 0, 1], [1, 0, 0, 1], [2, 1, 1, 0]]


def test_the_equations_pair_by_pair() -> None:
    """Also in a batch with a smaller molecule, whose padding is in no sum."""
    model = MODELS["graphormer-3d"](Dims(8, 2, 2), encoding=Euclidean(labels=("H", "O")), kernels=5).double()
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, 0.2, 1)
    positions = encode([WATER, GAS], model.encodings).to(torch.device("cpu"), torch.float64)
    prepared = model.prepare(positions)
    (bias,) = model.terms(prepared, Site(1)).bias
    x = noise(2, 4, 8)
    added = model.inputs(x, prepared) - x
    for row, molecule in enumerate((WATER, GAS)):
        places, labels = molecule.features["coordinates"], [{"H": 1, "O": 2}.get(atom, 0) for atom in molecule.nodes]
        for i in range(molecule.size):
            total = torch.zeros(5, dtype=torch.float64)
            for j in range(molecule.size):
                a, b = (table[labels[i], labels[j]].item() for table in (model.factor, model.offset))
                z = a * math.dist(places[i], places[j]) + b
                g = torch.tensor(
                    [
                        math.exp(-0.5 * ((z - m) / (abs(w) + 1e-5)) ** 2) / (math.sqrt(2 * math.pi) * (abs(w) + 1e-5))
                        for m, w in zip(model.means.tolist(), model.widths.tolist(), strict=True)
                    ],
                    dtype=torch.float64,
                )
                total += g
                hidden = model.hidden.weight @ g + model.hidden.bias
                hidden = hidden * 0.5 * (1 + torch.erf(hidden / math.sqrt(2)))
                expected = model.out.weight @ hidden + model.out.bias
                torch.testing.assert_close(bias.dense()[row, i, j], expected, rtol=0, atol=1e-9)
            torch.testing.assert_close(added[row, i], model.embed.weight @ total + model.embed.bias, rtol=0, atol=1e-9)


def test_moving_and_turning_a_molecule_changes_nothing() -> None:
    turned, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))
    moved = replace(WATER, features={"coordinates": WATER.features["coordinates"] @ turned + [5, -2, 1]})
    model = MODELS["graphormer-3d"](Dims(8, 2, 2), encoding=Euclidean(labels=("H", "O"))).double()
    here, there = (
        model.prepare(encode([s], model.encodings).to(torch.device("cpu"), torch.float64)) for s in (WATER, moved)
    )
    torch.testing.assert_close(there.added, here.added)
    (bias,), (moved_bias,) = here.terms.bias, there.terms.bias
    torch.testing.assert_close(moved_bias.dense(), bias.dense())


def test_at_first_all_pairs_of_labels_are_alike() -> None:
    model = MODELS["graphormer-3d"](Dims(8, 2, 1), encoding=Euclidean(labels=("H", "O")))
    assert (model.factor == 1).all()
    assert (model.offset == 0).all()
    assert model.means.min() >= 0
    assert model.means.max() <= 3
    with pytest.raises(PositionError, match="'kernels' of position model 'graphormer-3d' is 0; give 1 or more"):
        MODELS["graphormer-3d"](Dims(8, 2, 1), kernels=0)
