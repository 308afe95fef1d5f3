"""Eigenpairs, heat kernels, potentials, magnetic Laplacians, columns of tables: against the formulas written out."""

from __future__ import annotations

from itertools import pairwise

import networkx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from structpe.encodings import (
    UNREACHABLE,
    Eigenpairs,
    Eigenvalues,
    Electrostatic,
    HeatKernel,
    Laplacian,
    MagneticLaplacian,
    MultiQMagnetic,
    Resistance,
    Tabular,
    UnitCount,
)
from structpe.encodings.tabular import _counts
from structpe.errors import EncodingError
from structpe.structure import Structure, path
from tests.examples import examples
from tests.golden import golden
from tests.strategies import relabelled, structures
from tests.together import together

CYCLE = Structure(("x",) * 4, [[0, 1], [1, 2], [2, 3], [3, 0]], directed=False)


def linked(structure: Structure, loops: bool = True) -> np.ndarray:
    """Whether an edge joins two nodes, either way."""
    result = np.zeros((structure.size, structure.size))
    for source, target in structure.edges:
        if loops or source != target:
            result[source, target] = result[target, source] = 1
    return result


def plain(structure: Structure) -> np.ndarray:
    adjacency = linked(structure, loops=False)
    return np.diag(adjacency.sum(1)) - adjacency


def normalised(structure: Structure) -> np.ndarray:
    """A self-loop counts once, an isolated node has degree 1."""
    adjacency = linked(structure)
    degree = np.maximum(adjacency.sum(1), 1)
    return np.eye(structure.size) - adjacency / np.sqrt(np.outer(degree, degree))


# --- eigenpairs ---


@pytest.mark.parametrize("laplacian", [normalised, plain])
@examples(40)
@given(structure=structures(units=False), k=st.integers(1, 12), skip=st.integers(0, 2), whole=st.booleans())
def test_eigenpairs_are_the_lowest_and_numbered_by_eigenspace(
    laplacian: object, structure: Structure, k: int, skip: int, whole: bool
) -> None:
    matrix = laplacian(structure)  # type: ignore[operator]
    encoded = Eigenpairs(k, skip, laplacian is normalised, whole=whole).one(structure).values.astype(np.float64)
    spectrum = np.linalg.eigvalsh(matrix)
    expected = spectrum[skip : skip + k]
    if whole and len(spectrum) > skip + k:
        expected = expected[np.abs(expected - spectrum[skip + k]) > 1e-6]
    m = len(expected)
    vectors, values, numbers = np.moveaxis(encoded, -1, 0)
    np.testing.assert_allclose(values[:, :m], np.tile(expected, (structure.size, 1)), atol=1e-5)
    np.testing.assert_allclose(matrix @ vectors[:, :m], vectors[:, :m] * expected, atol=1e-5)
    np.testing.assert_allclose(vectors[:, :m].T @ vectors[:, :m], np.eye(m), atol=1e-6)
    assert (encoded[:, m:] == [0, -1, -1]).all()
    groups = [int(np.sum(np.diff(expected[: j + 1]) > 1e-6)) for j in range(m)]
    assert (numbers[:, :m] == groups).all()


@examples(20)
@given(structure=structures())
def test_both_halves_are_those_of_the_single_encodings(structure: Structure) -> None:
    pairs = Eigenpairs(5).one(structure).values
    np.testing.assert_array_equal(pairs[..., 0], Laplacian(5, components=False, skip=0).one(structure).values)
    np.testing.assert_array_equal(pairs[..., 1], Eigenvalues(5, components=False, skip=0).one(structure).values)


@pytest.mark.parametrize("name", ["g7", "disc6", "cycle4"])
def test_sans_rows_and_eigenvalues(name: str) -> None:
    """Columns up to sign; of a repeated eigenvalue the products of rows, which rows of length 1 keep."""
    g = golden("lap_wl_rw_dgl")
    expected, values = g[f"out.{name}.san_EigVecs"].numpy(), g[f"out.{name}.san_EigVals"].numpy()[..., 0]
    there = ~np.isnan(values[0])
    graph = Structure(("x",) * len(expected), g[f"in.{name}.edges"].numpy())
    ours = Eigenpairs(8, norm="rows").one(graph).values
    assert ((ours[..., 1] >= 0) == there).all()
    np.testing.assert_allclose(ours[:, there, 1], values[:, there], atol=1e-6)
    for number in range(int(ours[0, :, 2].max()) + 1):
        columns = np.flatnonzero(ours[0, :, 2] == number)
        here, theirs = ours[:, columns, 0], expected[:, columns]
        np.testing.assert_allclose(here @ here.T, theirs @ theirs.T, atol=1e-6)


def by_hand(norm: str, v: np.ndarray, values: np.ndarray) -> np.ndarray:
    """GraphGPS's normalisations, one eigenvector after the other."""
    result = np.zeros_like(v)
    for j, (column, value) in enumerate(zip(v.T, values, strict=True)):
        root = np.sqrt(value) if value >= 1e-12 else 1.0
        weights = np.exp(np.abs(column)) / np.exp(np.abs(column)).sum()
        top = np.abs(column).max()
        result[:, j] = {
            "L1": lambda c=column: c / np.abs(c).sum(),
            "L2": lambda c=column: c / np.sqrt((c**2).sum()),
            "abs-max": lambda c=column, t=top: c / t,
            "wavelength": lambda c=column, t=top, r=root: c * np.pi / (2 * t * r),
            "wavelength-asin": lambda c=column, t=top, r=root: np.arcsin(c / t) / r,
            "wavelength-soft": lambda c=column, w=weights, r=root: c / ((w * np.abs(c)).sum() * r),
        }[norm]()
    return result


@pytest.mark.parametrize("norm", ["L1", "L2", "abs-max", "wavelength", "wavelength-asin", "wavelength-soft"])
def test_the_six_scales_of_graphgps(norm: str) -> None:
    graph = Structure(("x",) * 7, [[0, 1], [1, 2], [2, 3], [3, 0], [1, 4], [4, 5], [5, 6]], directed=False)
    raw = Eigenpairs(5).one(graph).values.astype(np.float64)
    scaled = Eigenpairs(5, norm=norm).one(graph).values  # type: ignore[arg-type]
    values = np.where(raw[0, :, 1] < 1e-9, 0.0, raw[0, :, 1])
    np.testing.assert_allclose(scaled[..., 0], by_hand(norm, raw[..., 0], values), atol=1e-5)
    np.testing.assert_array_equal(scaled[..., 1:], raw[..., 1:].astype(np.float32))


def test_large_graphs_have_the_eigenpairs_of_d_minus_a() -> None:
    rng = np.random.default_rng(0)
    graph = Structure(("x",) * 560, rng.integers(0, 560, (1400, 2)), directed=False)
    encoded = Eigenpairs(6, normalised=False).one(graph).values.astype(np.float64)
    matrix = plain(graph)
    np.testing.assert_allclose(encoded[0, :, 1], np.linalg.eigvalsh(matrix)[:6], atol=1e-5)
    np.testing.assert_allclose(matrix @ encoded[..., 0], encoded[..., 0] * encoded[0, :, 1], atol=1e-5)


@pytest.mark.parametrize("options", [{"k": 0}, {"skip": -1}])
def test_impossible_eigenpairs_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(EncodingError, match="encoding 'eigenpairs': k must be 1 or more and skip 0 or more; they are"):
        Eigenpairs(**options)


# --- heat and potentials ---


@examples(30)
@given(structure=structures(units=False))
def test_heat_kernels_are_diagonals_of_the_exponential_less_the_limit(structure: Structure) -> None:
    graph = networkx.Graph(structure.edges.tolist())
    graph.add_nodes_from(range(structure.size))
    limit = np.zeros(structure.size)
    for part in networkx.connected_components(graph):
        limit[list(part)] = 1 / len(part)
    encoded = HeatKernel((0.1, 1, 7.5)).one(structure).values
    for column, time in enumerate((0.1, 1, 7.5)):
        exponential = torch.matrix_exp(torch.from_numpy(-time * plain(structure))).numpy()
        np.testing.assert_allclose(encoded[:, column], np.diag(exponential) - limit, atol=1e-6)


@pytest.mark.parametrize("times", [(), (0.0, 1.0)])
def test_impossible_times_are_refused(times: tuple[float, ...]) -> None:
    with pytest.raises(EncodingError, match=r"encoding 'heat-kernel': times are .*; give one or more, each above 0"):
        HeatKernel(times)


@examples(30)
@given(structure=structures(units=False))
def test_potentials_are_as_coded(structure: Structure) -> None:
    laplacian = torch.from_numpy(plain(structure))
    n, degree = structure.size, laplacian.diagonal()
    field = torch.linalg.pinv(laplacian, hermitian=True)
    field = field - field.diagonal()
    near = torch.tensor([[-float(laplacian[i, j]) / max(float(degree[i]), 1) for j in range(n)] for i in range(n)])
    near = (near * (1 - torch.eye(n))).double()
    deviation = (lambda x, dim: x.std(dim)) if n > 1 else (lambda x, dim: x.sum(dim) * 0)
    expected = [
        field.amin(0), field.amax(0), field.mean(0), deviation(field, 0),
        field.amin(1), field.amax(0), field.mean(1), deviation(field, 1),
        (near * field).sum(0), (near * field).sum(1),
    ]  # fmt: skip
    encoded = Electrostatic().one(structure).values
    np.testing.assert_allclose(encoded, torch.stack(expected, 1).numpy(), atol=1e-5)


@examples(30)
@given(structure=structures(units=False))
def test_resistance_is_that_of_the_network_of_wires(structure: Structure) -> None:
    """One ampere in at i and out at j: the voltage between them."""
    graph = networkx.Graph([(a, b) for a, b in structure.edges.tolist() if a != b])
    graph.add_nodes_from(range(structure.size))
    pairs = Resistance().one(structure).pairs()
    for part in networkx.connected_components(graph):
        nodes = sorted(part)
        laplacian = plain(structure)[np.ix_(nodes, nodes)]
        assert (np.delete(pairs[nodes], nodes, axis=1) == UNREACHABLE).all()
        for a, i in enumerate(nodes):
            for b, j in enumerate(nodes):
                current = np.zeros(len(nodes))
                current[a] += 1
                current[b] -= 1
                volts = np.linalg.lstsq(laplacian, current, rcond=None)[0]
                assert pairs[i, j] == pytest.approx(volts[a] - volts[b], abs=1e-8)


def test_resistances_of_a_square() -> None:
    assert Resistance().one(CYCLE).pairs()[0].tolist() == [0, 0.75, 1, 0.75]
    assert Resistance().one(path("abc")).pairs()[0].tolist() == [0, 1, 2]


# --- magnetic ---


@examples(40)
@given(structure=structures(units=False), whole=st.booleans(), q=st.sampled_from([0.0, 0.1, 0.25]))
def test_magnetic_eigenpairs_are_those_of_the_hermitian_matrix(structure: Structure, whole: bool, q: float) -> None:
    n, leads = structure.size, structure.adjacency() > 0
    single = sum(leads[i, j] != leads[j, i] for i in range(n) for j in range(i))
    charge = q / max(min(single, n), 1)
    matrix = np.zeros((n, n), dtype=complex)
    degree = linked(structure).sum(1)
    for i in range(n):
        for j in range(n):
            if leads[i, j] or leads[j, i]:
                turn = np.exp(2j * np.pi * charge * (int(leads[i, j]) - int(leads[j, i])))
                matrix[i, j] = -turn / (np.sqrt(degree[i] * degree[j]) if whole else 1)
        matrix[i, i] += 1 if whole else degree[i]
    encoded = MagneticLaplacian(4, q, normalised=whole).one(structure).values.astype(np.float64)
    m = min(4, n)
    vectors, values = (encoded[..., 0] + 1j * encoded[..., 1])[:, :m], encoded[0, :m, 2]
    np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix)[:m], atol=1e-5)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-5)
    np.testing.assert_allclose(vectors.conj().T @ vectors, np.eye(m), atol=1e-6)
    assert (encoded[:, m:] == [0, 0, -1]).all()


@examples(30)
@given(structure=structures(units=False), q=st.sampled_from([0.0, 0.1, 0.25, 0.5]), relative=st.booleans())
def test_eigenpairs_of_several_charges_are_those_of_each_matrix(structure: Structure, q: float, relative: bool) -> None:
    n, charges, k = structure.size, 3, 4
    leads = (structure.adjacency() > 0) & ~np.eye(n, dtype=bool)
    single = sum(leads[i, j] != leads[j, i] for i in range(n) for j in range(i))
    encoded = MultiQMagnetic(k, q, charges, relative).one(structure).values.astype(np.float64)
    for c in range(charges):
        matrix, turn = np.zeros((n, n), dtype=complex), (c + 1) * q / (max(min(single, n), 1) if relative else 1)
        degree = [max(leads[i].sum() + leads[:, i].sum(), 1) for i in range(n)]
        for i in range(n):
            for j in range(n):
                met = leads[i, j] * np.exp(2j * np.pi * turn) + leads[j, i] * np.exp(-2j * np.pi * turn)
                matrix[i, j] = (i == j) - met / np.sqrt(degree[i] * degree[j])
        m = min(k, n)
        vectors, values = (encoded[:, c, :m, 0] + 1j * encoded[:, c, :m, 1]), encoded[0, c, :m, 2]
        np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix)[:m], atol=1e-5)
        np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-5)
        np.testing.assert_allclose(vectors.conj().T @ vectors, np.eye(m), atol=1e-6)
        assert (encoded[:, c, m:] == [0, 0, -1]).all()


def test_on_a_path_the_phase_falls_from_its_beginning() -> None:
    encoded = MagneticLaplacian(1, q=0.25).one(path("abcdef")).values[:, 0].astype(np.float64)
    phases = np.angle(encoded[:, 0] + 1j * encoded[:, 1])
    np.testing.assert_allclose(phases, -2 * np.pi * 0.25 / 5 * np.arange(6), atol=1e-6)


def test_the_phase_does_not_depend_on_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Structure(("x",) * 6, [[0, 1], [1, 2], [2, 3], [3, 0], [1, 4], [4, 5]])
    expected, eigh = MagneticLaplacian(6).one(graph).values, np.linalg.eigh

    def turned(matrices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, vectors = eigh(matrices)
        return values, vectors * np.exp(1j * np.arange(vectors.shape[-1]) ** 2)

    monkeypatch.setattr(np.linalg, "eigh", turned)
    np.testing.assert_allclose(MagneticLaplacian(6).one(graph).values, expected, atol=1e-6)


def test_without_directed_edges_it_is_the_ordinary_laplacian() -> None:
    graph = Structure(("x",) * 5, [[0, 1], [1, 2], [2, 3], [3, 1], [3, 4]], directed=False)
    encoded = MagneticLaplacian(4).one(graph).values
    assert not encoded[..., 1].any()
    np.testing.assert_allclose(np.abs(encoded[..., 0]), np.abs(Laplacian(4, skip=0).one(graph).values), atol=1e-6)


def test_no_vector_is_refused() -> None:
    with pytest.raises(EncodingError, match="encoding 'magnetic-laplacian': k is 0; give 1 or more"):
        MagneticLaplacian(0)


# --- relabelling ---

ASYMMETRIC = {
    "tree": [[0, 1], [1, 2], [2, 3], [3, 4], [1, 3], [4, 5]],
    "spider": [[0, 1], [0, 2], [2, 3], [0, 4], [4, 5], [5, 6]],
    "dense": [[0, 1], [0, 2], [0, 4], [0, 5], [1, 4], [1, 6], [1, 7], [2, 3], [2, 4], [3, 5], [3, 6], [5, 6]],
}
"""Edges of graphs of which no two nodes can be exchanged. In the tree and the spider entries of a vector have the same
magnitude at several nodes."""
OF_SIMPLE = [
    Laplacian(4),
    Eigenpairs(4),
    Eigenpairs(4, normalised=False),
    Eigenvalues(4),
    Tabular(2),
    HeatKernel(),
    Electrostatic(),
    *(MagneticLaplacian(k, q, whole) for k in (1, 4) for q in (0.0, 0.25) for whole in (True, False)),
    MultiQMagnetic(1, q=0.15, charges=2),
]


def linked_by(edges: list[list[int]], ways: str) -> Structure:
    both = [*edges, *(each[::-1] for each in edges)] if ways == "both" else edges
    both = [*edges, *(each[::-1] for each in edges[::3])] if ways == "some" else both
    return Structure(("x",) * (np.max(edges) + 1), both, directed=ways != "undirected")


@together("ways", ["undirected", "one", "both", "some"])
@together("name", ASYMMETRIC)
def test_numbering_the_nodes_otherwise_permutes_what_simple_eigenvalues_give(name: str, ways: str) -> None:
    """Signs and phases depend on the graph, not on the solver and on numbers of nodes."""
    graph = linked_by(ASYMMETRIC[name], ways)
    for encoding in OF_SIMPLE:
        if isinstance(encoding, MagneticLaplacian):
            spectrum = MagneticLaplacian(graph.size, encoding.q, encoding.normalised).one(graph).values[0, :, 2]
            assert np.diff(spectrum).min() > 1e-4, (name, encoding)
        expected = encoding.one(graph).values
        for seed in range(3):
            new, units = relabelled(graph, np.random.default_rng(seed).permutation(graph.size))
            np.testing.assert_allclose(encoding.one(new).values, expected[units], atol=2e-5, err_msg=str(encoding))


# --- columns of tables ---


def table(seed: int, n: int = 9) -> tuple[np.ndarray, Structure]:
    rng = np.random.default_rng(seed)
    weights = np.round(rng.normal(size=(n, n)) * (rng.random((n, n)) < 0.4), 3)
    np.fill_diagonal(weights, 0)
    edges = np.argwhere(weights)
    return weights, Structure(("x",) * n, edges, features={"edge_weight": weights[tuple(edges.T)]})


def tab_pet(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Eigenvalues, eigenvectors and k, step by step."""
    symmetric = np.maximum(np.abs(weights), np.abs(weights).T)
    degree = symmetric.sum(1)
    degree[degree == 0] = 1
    laplacian = np.eye(len(weights)) - np.diag(degree**-0.5) @ symmetric @ np.diag(degree**-0.5)
    values, vectors = np.linalg.eigh(laplacian)
    low = [value for value in values[1:] if value <= 0.75]
    k = len(low)
    if k > 3:
        gaps = [b - a for a, b in pairwise(low)]
        for i, gap in enumerate(gaps):
            if gap > max(10 * np.median(gaps), 0.5):
                k = i + 1
                break
    return values, vectors, max(2, min(k, 10))


@together("seed", range(8))
def test_columns_of_tables_are_scored_as_coded(seed: int) -> None:
    weights, graph = table(seed, n=9 + seed)
    values, vectors, k = tab_pet(weights)
    assert np.diff(values).min() > 1e-4
    columns = np.concatenate([vectors[:, 1 : k + 1], vectors[:, -k:]], axis=1)
    z = (columns - columns.mean(0)) / columns.std(0, ddof=1)
    encoded = Tabular().one(graph).values
    assert encoded.shape == (9 + seed, 20)
    assert not encoded[:, 2 * k :].any()
    signs = np.sign((encoded[:, : 2 * k] * z).sum(0))
    np.testing.assert_allclose(encoded[:, : 2 * k] * signs, z, atol=1e-4)


def test_a_gap_ends_the_low_eigenvectors() -> None:
    # the second has as many low eigenvalues as the first, and no gap
    low = [[0, 0.01, 0.011, 0.012, 0.013, 0.72, 1.1, 1.2], [0, 0.01, 0.1, 0.2, 0.3, 0.4, 1.1, 1.2]]
    assert _counts(np.array(low), 10).tolist() == [4, 5]
    assert _counts(np.array([[0, 0.01, 0.3, 0.72, 1.1, 1.2]]), 10).tolist() == [3]
    assert _counts(np.array([[0, 1.0, 1.1, 1.2]]), 10).tolist() == [2]
    assert _counts(np.linspace(0, 0.7, 15)[None], 10).tolist() == [10]


def test_single_nodes_and_constant_columns_are_scored_zero() -> None:
    assert not Tabular().one(path("a")).values.any()
    assert np.isfinite(Tabular().one(Structure(("x",) * 4, [[0, 1]])).values).all()


def test_wrong_tables_are_refused() -> None:
    with pytest.raises(EncodingError, match="encoding 'tabular': the largest k is 1; give 2 or more"):
        Tabular(1)
    graph = Structure(("x",) * 2, [[0, 1]], features={"edge_weight": np.ones((1, 2))}, name="t:1")
    with pytest.raises(EncodingError, match=r"t:1: encoding 'tabular': the feature 'edge_weight' has shape \(1, 2\)"):
        Tabular().one(graph)


# --- units ---


def test_units_know_how_many_they_are() -> None:
    graph = path("abc").with_units(["a", "b1", "b2", "c1", "c2", "c3", "c4"], [0, 1, 1, 2, 2, 2, 2])
    assert UnitCount().one(graph).values.tolist() == [1, 2, 2, 4, 4, 4, 4]
    assert UnitCount().one(path("abc")).values.tolist() == [1, 1, 1]
