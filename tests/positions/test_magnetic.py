"""The bias by magnetic Laplacians: the authors' numbers, pair by pair, and what phases and bases change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from structpe.encodings.laplacian import MultiQMagnetic
from structpe.positions import Dims, Site
from structpe.positions.batch import encode
from structpe.structure import Structure
from tests.golden import golden
from tests.positions.cases import made, noise
from tests.positions.waves import wave

GRAPH = Structure(("x",) * 6, [[0, 1], [1, 2], [2, 3], [3, 1], [0, 4], [4, 0], [4, 5], [3, 3]])


def test_it_is_its_authors_code() -> None:
    """With fewer nodes than eigenvectors, an edge of both directions, and a self-loop."""
    encoding, theirs = MultiQMagnetic(k=8, charges=3), golden("multi_q_magnetic")
    model = made("multi-q-magnetic", Dims(8, 4, 1), encoding=encoding, functions=16)
    with torch.no_grad():
        for i, parameter in enumerate([*model.phi.parameters(), *model.readout.parameters()]):
            parameter.copy_(0.5 * wave(*parameter.shape, shift=float(i)))
        positions = encode([GRAPH], [encoding])
        (bias,) = model.terms(model.prepare(positions), Site(0)).bias
    values = positions[encoding][0, 0, :, :6, 2].double()
    torch.testing.assert_close(values, theirs["out.values"], rtol=0, atol=1e-7)
    torch.testing.assert_close(bias, theirs["out.bias"], rtol=0, atol=2e-6)  # eigenpairs are stored as float32


def test_phases_change_nothing_and_a_step_of_a_decoder_is_the_last_row() -> None:
    model, encoding = made("multi-q-magnetic"), MultiQMagnetic()
    positions = encode([GRAPH, replace(GRAPH, edges=GRAPH.edges[:5])], [encoding])
    values = positions[encoding].double()
    turns = torch.polar(torch.ones(40, dtype=torch.float64), 9 * noise(40)).view(5, 8)
    entries = torch.view_as_real(torch.complex(values[..., 0], values[..., 1]) * turns)
    turned = type(positions)({encoding: torch.cat([entries, values[..., 2:]], dim=-1)}, present=positions.present)
    for layer in range(2):
        ours, theirs = (model.terms(model.prepare(each), Site(layer)).bias[0] for each in (positions, turned))
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)
        (last,) = model.terms(model.prepare(positions.step(5, 6)), Site(layer)).bias
        torch.testing.assert_close(last, ours[:, :, 5:], rtol=0, atol=1e-12)
    assert np.isfinite(ours.detach().numpy()).all()
