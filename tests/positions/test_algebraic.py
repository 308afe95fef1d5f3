"""Algebraic positions: the authors' scores, matrices of each place, and what scores may depend on."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from scipy.linalg import expm
from torch import Tensor

from structpe.encodings.trees import BranchPath, RootDistance
from structpe.errors import PositionError
from structpe.positions import Dims, PositionModel, Site, build
from structpe.positions.batch import encode
from structpe.structure import Structure, path
from structpe.transforms import grid
from tests.golden import golden
from tests.positions.cases import made, noise
from tests.positions.waves import wave

GOLDEN = golden("algebraic")
PATHS: list[tuple[int, ...]] = [(), (0,), (1,), (0, 0), (0, 1), (1, 1), (0, 0, 1)]


def tree(paths: list[tuple[int, ...]]) -> tuple[Structure, list[int]]:
    """A binary tree with these paths, and the number of the node of each; other nodes come after them."""
    nodes = list(dict.fromkeys([*paths, *((*p[:-1], branch) for p in paths if p for branch in (0, 1))]))
    edges = [(nodes.index(p[:-1]), i) for i, p in enumerate(nodes) if p]
    rank = np.argsort(sorted(range(len(nodes)), key=lambda i: nodes[i]))
    return Structure(tuple(map(str, nodes)), np.array(edges), order=rank, root=nodes.index(())), nodes


@torch.no_grad()
def scores(model: PositionModel, structure: Structure, q: Tensor, k: Tensor) -> Tensor:
    """(1, h, n, m) before the softmax."""
    terms = model.terms(model.prepare(encode([structure], model.encodings)), Site(0))
    (turn,) = terms.maps
    q, k = turn(q, k)
    score = q @ k.mT / q.shape[-1] ** 0.5
    for gate in terms.gate:
        score = score * (gate if isinstance(gate, Tensor) else gate.dense().permute(0, 3, 1, 2))
    return score


def triangle(raw: Tensor) -> Tensor:
    """What is above the diagonals of raw - raw^T."""
    rows, columns = torch.triu_indices(*raw.shape[-2:], offset=1)
    return (raw - raw.mT)[..., rows, columns]


@pytest.mark.parametrize(("name", "raw", "structure", "width", "decay"), [
    ("algebraic", wave(2, 4, 4)[None], path("abcdefg"), 4, 0.98),
    ("algebraic-grid", wave(2, 2, 4, 4), grid((3, 3)), 8, 0.98),
    ("algebraic-tree", wave(5, 4, 4)[:2, None].expand(-1, 2, -1, -1), tree(PATHS)[0], 4, 1.0),
])  # fmt: skip
def test_scores_are_those_of_the_authors_code(
    name: str, raw: Tensor, structure: Structure, width: int, decay: float
) -> None:
    model = build({"name": name, "decay": decay}, Dims(2 * width, 2, 1)).double()
    with torch.no_grad():
        model.entries.copy_(triangle(raw))
    theirs = GOLDEN["out." + (name.partition("-")[2] or "sequence")]
    n = structure.unit_count
    q, k = (wave(1, theirs.shape[-1], width, 2, shift=s).permute(0, 3, 1, 2) for s in (0.0, 2.0))
    q, k = (torch.nn.functional.pad(x, (0, 0, 0, n - x.shape[2])) for x in (q, k))
    mine = scores(model, structure, q, k)[..., : theirs.shape[-1], : theirs.shape[-1]]
    torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-13)


def generators(model: Any) -> np.ndarray[Any, Any]:
    """(g, h, w, w) exp of skew-symmetric matrices, by scipy."""
    kinds, heads, count = model.entries.shape
    width = int((2 * count) ** 0.5) + 1
    found = np.zeros((kinds, heads, width, width))
    for g in range(kinds):
        for h in range(heads):
            skew = np.zeros((width, width))
            skew[np.triu_indices(width, 1)] = model.entries[g, h].detach().numpy()
            found[g, h] = expm(skew - skew.T)
    return found


def test_scores_of_a_tree_are_products_along_the_path_between_two_nodes() -> None:
    """In a tree of which no part is a path: up by W_b, down by its inverse, and a decay for each edge."""
    paths = [(), (0,), (1,), (0, 0), (0, 1), (1, 0), (1, 0, 0), (1, 0, 1), (1, 0, 1, 1, 0, 1)]
    structure, nodes = tree([p[:n] for p in paths for n in range(len(p) + 1)])
    model = made("algebraic-tree", Dims(10, 2, 1), encoding=BranchPath(depth=6), decay=0.9)
    q, k = noise(2, 1, 2, len(nodes), 5)
    mine, w = scores(model, structure, q, k), generators(model)
    for i, here in enumerate(nodes):
        for j, there in enumerate(nodes):
            shared = next((n for n, (a, b) in enumerate(zip(here, there, strict=False)) if a != b), None)
            shared = min(len(here), len(there)) if shared is None else shared
            for h in range(2):
                turn = np.eye(5)
                for branch in reversed(here[shared:]):
                    turn = turn @ w[branch, h]
                for branch in there[shared:]:
                    turn = turn @ np.linalg.inv(w[branch, h])
                far = len(here) + len(there) - 2 * shared
                expected = q[0, h, i].numpy() @ turn @ k[0, h, j].numpy() / 5**0.5 * 0.9**far
                assert abs(float(mine[0, h, i, j]) - expected) < 1e-12


@pytest.mark.parametrize("places", [list(range(9)), [0, 1, 2, -5, -5, -5]])
def test_scores_of_a_text_are_powers_of_one_matrix(places: list[int]) -> None:
    """Also of places below 0, here of nodes that the root does not reach, and in a step of a decoder."""
    text, apart = (
        path("abcdefghi"),
        Structure(tuple("abcdef"), [[0, 1], [1, 2], [3, 4], [4, 5]], root=0, order=range(6)),
    )
    structure, options = (text, {}) if len(places) == 9 else (apart, {"encoding": RootDistance(unreachable=-5)})
    model, n = made("algebraic", Dims(10, 2, 1), **options), len(places)
    q, k = noise(2, 1, 2, n, 5)
    mine, (w,) = scores(model, structure, q, k), generators(model)
    for h in range(2):
        for i in range(n):
            for j in range(n):
                turn = np.linalg.matrix_power(w[h], places[j] - places[i])
                expected = q[0, h, i].numpy() @ turn @ k[0, h, j].numpy() / 5**0.5
                assert abs(float(mine[0, h, i, j]) - expected) < 1e-12
    (turned,) = model.terms(model.prepare(encode([structure], model.encodings).step(n - 1, n)), Site(0)).maps
    last, keys = turned(q[:, :, -1:], k)
    torch.testing.assert_close((last @ keys.mT / 5**0.5).detach(), mine[:, :, -1:], rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", ["algebraic", "algebraic-grid", "algebraic-tree"])
def test_matrices_are_orthogonal_and_start_where_the_authors_do(name: str) -> None:
    model = build(name, Dims(32, 2, 1))
    matrices = generators(model)
    pairs = matrices.shape[-1] // 2
    for i in range(pairs):
        angle = 10000.0 ** (-2 * (i // 2) / pairs)
        block = matrices[..., 2 * i : 2 * i + 2, 2 * i : 2 * i + 2]
        assert np.allclose(block, [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]], atol=1e-6)
    assert np.allclose(matrices @ matrices.swapaxes(-1, -2), np.eye(2 * pairs), atol=1e-6)


def test_the_first_place_and_the_root_are_not_turned() -> None:
    for name in ("algebraic", "algebraic-grid", "algebraic-tree"):
        model, x = made(name), noise(1, 2, 1, 4)
        terms = model.terms(model.prepare(encode([Structure(("a",), [], root=0, order=[0])], model.encodings)), Site(0))
        assert torch.equal(terms.maps[0](x, x)[0], x)


def test_what_cannot_be_cut_or_does_not_decay_is_refused() -> None:
    with pytest.raises(
        PositionError, match="cuts the 4 channels of a head into 3 equal parts of 2 or more; give heads of width 6"
    ):
        build({"name": "algebraic-grid", "axes": 3}, Dims(8, 2, 1))
    with pytest.raises(PositionError, match="give a decay above 0 and up to 1, such as 0"):
        build({"name": "algebraic", "decay": 1.5}, Dims(8, 2, 1))
    with pytest.raises(PositionError, match="needs integer positions"):
        build({"name": "algebraic", "encoding": "unit-square"}, Dims(8, 2, 1))


def test_the_matrices_of_units_and_the_steps_of_a_traced_graph_are_the_same() -> None:
    model = made("algebraic-tree", encoding=BranchPath(depth=4))
    structures = [tree(PATHS)[0], path("abcdefg"), Structure(("a",), [], root=0, order=[0])]
    positions = encode(structures, model.encodings)
    x = noise(3, 2, positions[model.encodings[0]].shape[1], 4)
    (eager,) = model.terms(model.prepare(positions), Site(0)).maps
    with patch("torch.compiler.is_compiling", return_value=True):
        (traced,) = model.terms(model.prepare(positions), Site(0)).maps
    for mine, theirs in zip(eager(x, 2 * x), traced(x, 2 * x), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-13)
