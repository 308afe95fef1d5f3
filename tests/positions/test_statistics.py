"""Statistics of nodes, sets of eigenvectors, eigenspaces: compared with the formulas unit by unit."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from structpe.encodings import Eigenpairs, MagneticLaplacian, RandomWalk
from structpe.errors import PositionError
from structpe.positions import MODELS, Dims, PositionModel, Positions
from structpe.structure import Structure
from tests.positions.cases import SYMMETRIC, TREES, encoded, made, noise

DIMS = Dims(8, 2, 1)
SMALL = 1 / math.sqrt(1 + 1e-5)
"""What batch normalisation does in evaluation, with running averages 0 and 1."""


def linear(module: torch.nn.Module, x: Tensor) -> Tensor:
    return module.weight @ x + module.bias


def structure(size: int, edges: list[tuple[int, int]]) -> Structure:
    return Structure(("x",) * size, edges, directed=False)


def of_units(model: PositionModel, structure: Structure) -> Tensor:
    return torch.from_numpy(model.encodings[0].one(structure).values).double()


# --- statistics ---


@pytest.mark.parametrize(
    ("name", "layers", "norm"),
    [
        *((name, layers, "batch") for name in ("rwse", "heat-kernel", "electrostatic") for layers in (0, 1, 3)),
        ("curvature-profile", 0, "none"),
        ("mose", 2, "none"),
    ],
)
def test_statistics_are_normalised_and_embedded(name: str, layers: int, norm: str) -> None:
    model, x = made(name, layers=layers, norm=norm), noise(3, 10, 8)
    changed = model.inputs(x, model.prepare(encoded(model, TREES)))
    for row, structure in enumerate(TREES):
        for unit, values in enumerate(of_units(model, structure)):
            normed = values if norm == "none" else values * SMALL * model.norm.weight + model.norm.bias
            if layers:
                for step in model.embed:
                    normed = torch.relu(linear(step[0], normed))
            else:
                normed = linear(model.embed, normed)
            expected = torch.cat([x[row, unit, :6], normed])
            torch.testing.assert_close(changed[row, unit], expected, rtol=0, atol=1e-9)


def test_the_inner_layers_are_twice_as_wide() -> None:
    model = MODELS["rwse"](DIMS, encoding=RandomWalk(5), width=3, layers=3)
    assert [step[0].weight.shape for step in model.embed] == [(6, 5), (6, 6), (3, 6)]


def test_training_normalises_by_the_units_that_are_there() -> None:
    model = made("rwse").train()
    prepared = model.prepare(encoded(model, TREES))
    every = torch.cat([of_units(model, structure) for structure in TREES])
    mean, variance = every.mean(0), every.var(0, correction=0)
    normed = (every - mean) / (variance + 1e-5).sqrt() * model.norm.weight + model.norm.bias
    expected = normed @ model.embed.weight.T + model.embed.bias
    mine = torch.cat([row[: s.unit_count] for row, s in zip(prepared, TREES, strict=True)])
    torch.testing.assert_close(mine, expected, rtol=0, atol=1e-9)
    torch.testing.assert_close(model.norm.mean, 0.1 * mean, rtol=0, atol=1e-9)
    torch.testing.assert_close(model.norm.variance, 0.9 + 0.1 * every.var(0), rtol=0, atol=1e-9)


def test_a_single_unit_is_normalised_by_the_averages() -> None:
    """It has no variance."""
    model = made("rwse").train()
    alone = model.prepare(encoded(model, [Structure(("x",), [])]))
    torch.testing.assert_close(alone, model.eval().prepare(encoded(model, [Structure(("x",), [])])))


@pytest.mark.parametrize("name", ["rwse", "heat-kernel", "electrostatic"])
def test_what_is_rare_in_training_is_not_far_away_later(name: str) -> None:
    """Walks of three steps never return in trees: the first triangle was 100 deviations away."""
    model = made(name).train()
    tree = structure(6, [(0, 1), (0, 2), (1, 3), (1, 4), (2, 5)])
    with torch.no_grad():
        model.norm.weight.fill_(1.0), model.norm.bias.zero_()
        for _ in range(100):
            model.prepare(encoded(model, [tree]))
    model.eval()
    triangle = structure(3, [(0, 1), (1, 2), (2, 0)])
    normed = (of_units(model, triangle) - model.norm.mean) / (model.norm.variance + 1e-5).sqrt()
    assert normed.abs().max() > (50 if name == "rwse" else 0)
    expected = linear(model.embed, normed[0].clip(-5, 5))
    torch.testing.assert_close(model.prepare(encoded(model, [triangle]))[0, 0], expected)


def test_walks_go_both_ways() -> None:
    """Following the edges only, a walk in a tree never returns, and all statistics are zero."""
    model = MODELS["rwse"](DIMS)
    assert model.encodings[0].undirected  # type: ignore[attr-defined]
    assert model.encodings[0].one(TREES[0]).values.any()


# --- columns of tables ---


def test_scores_of_columns_are_clipped_scaled_and_concatenated() -> None:
    model, x = MODELS["tab-pet"](Dims(12, 2, 1), alpha=0.5), noise(3, 10, 12)
    encoding = model.encodings[0]
    assert encoding.one(TREES[0]).values.shape[1] == 6
    changed = model.inputs(x, encoded(model, TREES))
    scores = np.clip(encoding.one(TREES[0]).values, -10, 10)
    torch.testing.assert_close(changed[0, :, 6:], torch.from_numpy(0.5 * scores).double())
    assert torch.equal(changed[..., :6], x[..., :6])
    far = Positions({encoding: torch.full((3, 10, 6), 50.0)})
    assert model.inputs(x, far)[0, 0, -1] == 5.0


def test_tables_need_room() -> None:
    with pytest.raises(
        PositionError, match="position model 'tab-pet' uses 4 of 4 channels and must leave some for the content"
    ):
        MODELS["tab-pet"](Dims(4, 2, 1))


# --- sets of eigenvectors ---


@pytest.mark.parametrize("layers", [1, 2, 4])
def test_lap_pe_sums_over_the_eigenvectors_that_are_there(layers: int) -> None:
    model, x = made("lap-pe", layers=layers), noise(3, 10, 8)
    changed = model.inputs(x, model.prepare(encoded(model, TREES)))
    for row, structure in enumerate(TREES):
        for unit, pairs in enumerate(of_units(model, structure)):
            total = torch.zeros(4, dtype=torch.float64)
            for entry, value, space in pairs:
                if space >= 0:
                    y = torch.stack([entry, value])
                    for step in model.of_each:
                        y = torch.relu(linear(step[0], y))
                    total = total + y
            torch.testing.assert_close(changed[row, unit, 4:], total, rtol=0, atol=1e-9)


def test_lap_pe_needs_a_layer() -> None:
    with pytest.raises(PositionError, match="'layers' of position model 'lap-pe' is 0; give 1 or more"):
        MODELS["lap-pe"](DIMS, layers=0)


def test_magnetic_eigenvectors_attend_to_one_another() -> None:
    model, x = made("magnetic-laplacian", encoding=MagneticLaplacian(8)), noise(3, 10, 8)
    changed = model.inputs(x, model.prepare(encoded(model, TREES)))
    for row, structure in enumerate(TREES):
        for unit, pairs in enumerate(of_units(model, structure)):
            said = magnetic_by_hand(model, pairs)
            torch.testing.assert_close(changed[row, unit], x[row, unit] + said, rtol=0, atol=1e-9)


def magnetic_by_hand(model: PositionModel, pairs: Tensor) -> Tensor:
    attention, there = model.attention, [j for j in range(8) if pairs[j, 2] >= 0]
    z = [torch.cat([pairs[j, 2:], torch.relu(linear(model.of_each, pairs[j, :2]))]) for j in range(8)]
    normed = []
    for each in z:
        centred = each - each.mean()
        normed.append(centred / (centred.square().mean() + 1e-5).sqrt() * model.norm.weight + model.norm.bias)
    result = [torch.zeros(17, dtype=torch.float64) for _ in range(8)]
    for i in there:
        mixed = []
        for head in range(4):
            part = slice(4 * head, 4 * head + 4)
            query = (attention.query.weight @ normed[i])[part]
            scores = torch.stack([query @ (attention.key.weight @ normed[j])[part] / 2 for j in there])
            weights = scores.softmax(0)
            mixed.append(
                sum(w * (attention.value.weight @ normed[j])[part] for w, j in zip(weights, there, strict=True))
            )
        result[i] = z[i] + linear(attention.out, torch.cat(mixed))
    return torch.relu(linear(model.out, torch.cat(result)))


# --- eigenspaces ---


def basisnet_by_hand(model: PositionModel, structure: Structure) -> Tensor:
    """Through the projection matrices themselves, of a graph whose nodes have one unit each."""
    pairs = of_units(model, structure)
    n, k = pairs.shape[:2]
    spaces = pairs[0, :, 2].tolist()
    columns = torch.zeros(n, k, dtype=torch.float64)
    for space in sorted({s for s in spaces if s >= 0}):
        members = [j for j in range(k) if spaces[j] == space]
        v = pairs[:, members, 0]
        p, network = v @ v.T, model.phi[len(members) - 1]
        ones = torch.ones(n, dtype=p.dtype)
        operations = torch.stack(
            [p.diagonal(), ones * p.trace() / n, p.sum(1) / n, p.sum(0) / n, ones * p.sum() / n**2], dim=1
        )
        y = torch.relu(operations @ network.enter.weight.T + network.enter.bias)
        y = y * SMALL * network.norms[0].weight + network.norms[0].bias
        for i in range(2):
            own = y @ network.own[i].weight.T + network.own[i].bias
            y = torch.relu(own + network.mean[i].weight @ y.mean(0))
            y = y * SMALL * network.norms[i + 1].weight + network.norms[i + 1].bias
        columns[:, members] = network.out(y)
    values = pairs[..., 1].clamp(min=0)
    return model.embed(model.rho(torch.cat([columns, values], dim=1)))


def test_basisnet_is_a_network_over_projections() -> None:
    """All dimensions up to 3 occur."""
    structures = [replace(s, units=None, owner=None) for s in (*SYMMETRIC, *TREES)]
    model = made("basisnet")
    found = {int((of_units(model, s)[0, :, 2] == j).sum()) for s in structures for j in range(8)}
    assert {1, 2, 3} <= found
    changed = model.inputs(torch.zeros(5, 8, 8, dtype=torch.float64), model.prepare(encoded(model, structures)))
    for row, structure in enumerate(structures):
        expected = basisnet_by_hand(model, structure)
        torch.testing.assert_close(changed[row, : structure.size], expected, rtol=0, atol=1e-9)


def test_a_larger_eigenspace_is_refused() -> None:
    complete = Structure(("x",) * 6, [[i, j] for i in range(6) for j in range(i)], directed=False)
    model = made("basisnet")
    with pytest.raises(PositionError, match=r"built for eigenspaces of dimension 3 or less, this batch has one of 5"):
        model.prepare(encoded(model, [complete]))
    assert made("basisnet", dimensions=5).prepare(encoded(model, [complete])).isfinite().all()


@pytest.mark.parametrize("name", ["signnet", "basisnet", "stable-expressive", "lap-pe", "san"])
def test_other_numbers_of_eigenvectors(name: str) -> None:
    model = made(name, encoding=Eigenpairs(3))
    assert model.claimed_params() == sum(p.numel() for p in model.parameters())
    assert model.inputs(noise(3, 10, 8), model.prepare(encoded(model, TREES))).isfinite().all()


# --- directed walks ---


def test_directed_walks_are_summed_over_the_nodes_they_come_from() -> None:
    """Once for each node, however many units it has."""
    model, x = made("directed-walks"), noise(3, 10, 8)
    said = model.inputs(x, model.prepare(encoded(model, TREES))) - x
    for i, each in enumerate(TREES):
        walks, owner = torch.from_numpy(model.encodings[0].one(each).pairs()), each.unit_owner.tolist()
        first = [owner.index(node) for node in range(each.size)]
        for u in range(each.unit_count):
            total = sum(torch.relu(linear(model.of_pairs, walks[w, u])) for w in first)
            torch.testing.assert_close(said[i, u], torch.relu(linear(model.of_sums, total)), rtol=0, atol=1e-10)
