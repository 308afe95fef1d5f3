"""Models of eigenvectors: parity with the authors' code, and what signs and bases may not change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from structpe.encodings import Eigenpairs, Encoding
from structpe.errors import PositionError
from structpe.positions import MODELS, Dims, PositionModel, Positions
from structpe.structure import Structure
from tests.golden import Golden, golden
from tests.positions.cases import TREES, encoded, made, noise

DIMS = Dims(8, 2, 3)
CYCLE = Structure(("x",) * 4, [[0, 1], [1, 2], [2, 3], [3, 0]], directed=False)
CUBE = Structure(
    ("x",) * 8, [[i, i ^ (1 << b)] for i in range(8) for b in range(3) if i < i ^ (1 << b)], directed=False
)
SYMMETRIC = [CYCLE, CUBE, replace(CYCLE, edges=np.array([[0, 1], [1, 2], [2, 3]]))]


# --- parity ---


def given(g: Golden, model: PositionModel) -> tuple[Positions, list[int]]:
    """The two graphs of the file with their own eigenpairs."""
    edges, which = g["in.edge_index"].T, g["in.batch"]
    sizes = torch.bincount(which).tolist()
    first = [0, sizes[0]]
    graphs = [
        Structure(("x",) * size, (edges[which[edges[:, 0]] == i] - at).numpy())
        for i, (size, at) in enumerate(zip(sizes, first, strict=True))
    ]
    positions = encoded(model, graphs)
    pairs = positions[model.encodings[0]].clone()
    for row, (size, at) in enumerate(zip(sizes, first, strict=True)):
        pairs[row, :size, :, 0] = g["in.V"][at : at + size]
        pairs[row, :size, :, 1] = g["in.Lambda"][row]
    return Positions({**positions, model.encodings[0]: pairs}, present=positions.present), sizes


def load(module: torch.nn.Module, weights: list[Tensor]) -> None:
    """Weights in the order in which a module lists its parameters."""
    parameters = list(module.parameters())
    assert [p.shape for p in parameters] == [w.shape for w in weights]
    with torch.no_grad():
        for parameter, weight in zip(parameters, weights, strict=True):
            parameter.copy_(weight)


def graph_network(w: dict[str, Tensor], prefix: str) -> list[Tensor]:
    """Its parameters in our order: all eps, then the MLPs."""
    eps = torch.cat([w[f"{prefix}layers.{i}.eps"] for i in range(2)])
    names = ["mlp.layers.0.fc.weight", "mlp.layers.0.fc.bias", "mlp.fc.weight", "mlp.fc.bias"]
    return [eps, *(w[f"{prefix}layers.{i}.{name}"] for i in range(2) for name in names)]


def rows(encoded: Tensor, sizes: list[int]) -> Tensor:
    return torch.cat([row[:size] for row, size in zip(encoded, sizes, strict=True)])


@pytest.mark.parametrize(("variant", "name"), [("spe_mlp", "stable-expressive"), ("spe_gin", "stable-expressive-gin")])
def test_stable_and_expressive_is_the_authors(variant: str, name: str) -> None:
    g = golden("spe_graph_signnet")
    w = g.weights(f"{variant}.")
    model = MODELS[name](DIMS, encoding=Eigenpairs(4), functions=3, hidden=6, width=5).double().eval()
    load(model.functions, [v for k, v in w.items() if k.startswith("psi_list")])
    mlp = [w[f"phi.mlp.{part}"] for part in ("layers.0.fc.weight", "layers.0.fc.bias", "fc.weight", "fc.bias")]
    load(model.phi, mlp if variant == "spe_mlp" else graph_network(w, "phi.gin."))
    positions, sizes = given(g, model)
    torch.testing.assert_close(rows(model.prepare(positions), sizes), g[f"out.{variant}"], rtol=0, atol=1e-9)


def test_signnet_is_the_authors() -> None:
    g = golden("spe_graph_signnet")
    w = g.weights("signnet.")
    model = MODELS["signnet"](DIMS, encoding=Eigenpairs(4), channels=4, hidden=6).double().eval()
    model.rho[-1] = torch.nn.Linear(6, 5).double()  # theirs has one channel more than eigenvectors here
    load(model.phi, graph_network(w, "phi."))
    load(model.rho, [w[f"rho.{part}"] for part in ("layers.0.fc.weight", "layers.0.fc.bias", "fc.weight", "fc.bias")])
    positions, sizes = given(g, model)
    torch.testing.assert_close(rows(model.prepare(positions), sizes), g["out.signnet"], rtol=0, atol=1e-9)


# --- signs and bases ---


def turned(positions: Positions, encoding: Encoding, signs_only: bool) -> Positions:
    """The same graphs with other eigenvectors: other signs, or another basis of every eigenspace."""
    pairs = positions[encoding].clone()
    generator = torch.Generator().manual_seed(0)
    for graph in pairs:
        spaces = graph[0, :, 2]
        for space in spaces[spaces >= 0].unique():
            columns = (spaces == space).nonzero()[:, 0]
            size = len(columns)
            turn = torch.linalg.qr(torch.randn(size, size, generator=generator, dtype=pairs.dtype))[0]
            if signs_only:
                turn = torch.diag((torch.randint(0, 2, (size,), generator=generator) * 2 - 1).to(pairs.dtype))
            graph[:, columns, 0] = graph[:, columns, 0] @ turn
    return Positions({**positions, encoding: pairs}, present=positions.present)


def says(name: str, signs_only: bool, **options: object) -> tuple[Tensor, Tensor]:
    model = made(name, **options)
    positions = encoded(model, SYMMETRIC)
    x = torch.zeros(3, 8, 8, dtype=torch.float64)
    other = turned(positions, model.encodings[0], signs_only)
    return model.inputs(x, model.prepare(positions)), model.inputs(x, model.prepare(other))


@pytest.mark.parametrize("name", ["signnet", "basisnet", "stable-expressive", "stable-expressive-gin"])
def test_other_signs_say_the_same(name: str) -> None:
    before, after = says(name, signs_only=True)
    torch.testing.assert_close(after, before, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["basisnet", "stable-expressive", "stable-expressive-gin"])
def test_another_basis_of_each_eigenspace_is_the_same(name: str) -> None:
    before, after = says(name, signs_only=False)
    torch.testing.assert_close(after, before, rtol=0, atol=1e-5)  # float32 eigenvectors are a basis up to 1e-7


@pytest.mark.parametrize(("name", "signs_only"), [("signnet", False), ("lap-pe", True), ("san", True)])
def test_others_do_depend_on_them(name: str, signs_only: bool) -> None:
    before, after = says(name, signs_only)
    assert (after - before).abs().max() > 1e-3


def test_what_the_basis_decides_is_left_out() -> None:
    """Of the cube's eigenvalue of multiplicity 3 a limit of 2 would keep one vector."""
    for name in ("basisnet", "stable-expressive", "stable-expressive-gin"):
        assert MODELS[name](DIMS).encodings[0].whole  # type: ignore[attr-defined]
    assert Eigenpairs(2, whole=True).one(CUBE).values[0, :, 2].tolist() == [0, -1]


def test_a_small_change_of_the_graph_changes_little() -> None:
    """Near a double eigenvalue the eigenvectors jump; SignNet jumps with them, stable and expressive ones do not."""
    moved = {name: _jump(name) for name in ("signnet", "stable-expressive", "stable-expressive-gin")}
    assert moved["stable-expressive"] < 1e-2
    assert moved["stable-expressive-gin"] < 1e-2
    assert moved["signnet"] > 10 * max(moved["stable-expressive"], moved["stable-expressive-gin"])


def _jump(name: str) -> float:
    """How far an edge of the cycle with 1e-4 more weight, and a chord of weight 1e-4, are from each other."""
    model = made(name, encoding=Eigenpairs(4))
    whole = []
    for heavier in ((0, 1), (0, 2)):
        weights = np.zeros((4, 4))
        for i, j in CYCLE.edges:
            weights[i, j] = weights[j, i] = 1.0
        for pair in (heavier, heavier[::-1]):
            weights[pair] += 1e-4
        scale = weights.sum(1) ** -0.5
        values, vectors = np.linalg.eigh(np.eye(4) - scale[:, None] * weights * scale)
        positions = encoded(model, [CYCLE])
        pairs = torch.from_numpy(np.stack([vectors, np.tile(values, (4, 1)), np.tile(np.arange(4.0), (4, 1))], -1))
        positions = Positions({**positions, model.encodings[0]: pairs[None]}, present=positions.present)
        whole.append(model.inputs(torch.zeros(1, 4, 8, dtype=torch.float64), model.prepare(positions)))
    return float((whole[0] - whole[1]).detach().abs().max())


# --- units, rooms, refusals ---


@pytest.mark.parametrize("name", ["signnet", "basisnet", "stable-expressive", "stable-expressive-gin"])
def test_splitting_a_label_changes_nothing(name: str) -> None:
    model, structure = made(name), TREES[0]
    nodes = replace(structure, units=None, owner=None)
    of_units = model.inputs(torch.zeros(1, 10, 8, dtype=torch.float64), model.prepare(encoded(model, [structure])))
    of_nodes = model.inputs(torch.zeros(1, 7, 8, dtype=torch.float64), model.prepare(encoded(model, [nodes])))
    torch.testing.assert_close(of_units[0], of_nodes[0, structure.unit_owner.tolist()], rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["rwse", "heat-kernel", "electrostatic", "lap-pe", "san"])
def test_content_keeps_its_own_channels(name: str) -> None:
    model, x = made(name, width=2), noise(3, 10, 8)
    changed = model.inputs(x, model.prepare(encoded(model, TREES)))
    assert torch.equal(changed[..., :6], x[..., :6])
    assert (changed[..., 6:] - x[..., 6:]).abs().min() > 0


@pytest.mark.parametrize("name", ["rwse", "lap-pe", "san"])
@pytest.mark.parametrize("width", [8, 10])
def test_no_room_for_content_is_refused(name: str, width: int) -> None:
    with pytest.raises(PositionError, match=rf"position model '{name}' uses {width} of 8 channels and must leave some"):
        MODELS[name](DIMS, width=width)
