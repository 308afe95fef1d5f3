"""Repeated eigenvalues of large graphs: every copy is found, in whatever family of graphs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array, eye_array

from structpe.encodings import Eigenpairs, Eigenvalues, Laplacian
from structpe.encodings import spectra as spectra_module
from structpe.encodings.spectra import NotConverged, TooLong, lowest_sparse, sparse_laplacian
from structpe.errors import EncodingError
from structpe.structure import Structure
from tests.representatives import only

FAMILIES: dict[str, Callable[[], nx.Graph]] = {
    "balanced tree": lambda: nx.balanced_tree(2, 8),
    "tree with three children": lambda: nx.balanced_tree(3, 6),
    "drawn tree": lambda: nx.random_labeled_tree(520, seed=0),
    "star": lambda: nx.star_graph(520),
    "star of stars": lambda: nx.full_rary_tree(23, 553),
    "bipartite": lambda: nx.complete_bipartite_graph(20, 500),
    "complete": lambda: nx.complete_graph(504),
    "windmill": lambda: nx.windmill_graph(130, 5),
    "hypercube": lambda: nx.hypercube_graph(9),
    "torus": lambda: nx.grid_2d_graph(23, 23, periodic=True),
    "torus of three axes": lambda: nx.grid_graph((8, 8, 8), periodic=True),
    "square": lambda: nx.grid_2d_graph(23, 23),
    "rook's graph": lambda: nx.cartesian_product(nx.complete_graph(23), nx.complete_graph(23)),
    "strong product": lambda: nx.strong_product(nx.cycle_graph(26), nx.path_graph(20)),
    "ring": lambda: nx.cycle_graph(600),
    "several parts": lambda: nx.gnm_random_graph(700, 500, seed=1),
    "equal parts": lambda: nx.disjoint_union_all([nx.petersen_graph()] * 52),
    "single edges": lambda: nx.disjoint_union_all([nx.path_graph(2)] * 260),
    "cliques in a ring": lambda: nx.connected_caveman_graph(104, 5),
    "regular": lambda: nx.random_regular_graph(3, 520, seed=0),
}


def drawn(graph: nx.Graph) -> Structure:
    graph = nx.convert_node_labels_to_integers(graph)
    return Structure(("x",) * len(graph), np.array(graph.edges, dtype=np.int64).reshape(-1, 2), directed=False)


def dense(structure: Structure, normalised: bool) -> np.ndarray:
    linked = np.zeros((structure.size, structure.size))
    linked[tuple(structure.edges.T)] = 1
    linked = np.maximum(linked, linked.T)
    degree = linked.sum(1)
    if not normalised:
        return np.diag(degree) - linked
    root = np.sqrt(np.maximum(degree, 1))
    return np.eye(structure.size) - linked / root[:, None] / root


@pytest.mark.parametrize("family", only(FAMILIES, *list(FAMILIES)[::4]))
@pytest.mark.parametrize("normalised", [True, False], ids=["normalised", "plain"])
def test_no_copy_of_an_eigenvalue_is_missed(family: str, normalised: bool) -> None:
    graph = drawn(FAMILIES[family]())
    assert graph.size > 500
    matrix = dense(graph, normalised)
    spectrum = np.linalg.eigvalsh(matrix)
    vectors, values, _ = np.moveaxis(Eigenpairs(9, normalised=normalised).one(graph).values.astype(np.float64), -1, 0)
    np.testing.assert_allclose(values[0], spectrum[:9], atol=1e-5)
    np.testing.assert_allclose(matrix @ vectors, vectors * values[0], atol=1e-5 * spectrum[-1])
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(9), atol=1e-6)


@pytest.mark.parametrize(
    "family",
    only(
        ["balanced tree", "several parts", "hypercube", "torus", "bipartite", "ring"],
        "balanced tree",
        "several parts",
    ),
)
def test_nor_by_iterations_alone(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the Laplacian itself, as on graphs of which no inverse is made, and nothing counted."""
    graph = drawn(FAMILIES[family]())
    monkeypatch.setattr(spectra_module, "_LIGHT", -1)
    monkeypatch.setattr(spectra_module, "_COUNTED", -1)
    for k in (7, 9):
        values = Eigenpairs(k).one(graph).values[0, :, 1]
        np.testing.assert_allclose(values, np.linalg.eigvalsh(dense(graph, True))[:k], atol=1e-6)


def test_the_tree_and_the_drawn_graph_that_showed_it() -> None:
    tree, parts = drawn(nx.balanced_tree(2, 9)), drawn(nx.gnm_random_graph(700, 500, seed=1))
    assert (np.abs(Eigenvalues(7).one(tree).values[0] - 0.00209) < 1e-5).sum() == 4
    assert (Eigenpairs(8).one(parts).values[0, :, 1] < 1e-6).sum() == 8


@pytest.mark.parametrize("family", ["balanced tree", "several parts", "square", "regular", "bipartite", "windmill"])
def test_eigenvalues_below_a_bound_are_counted(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With rows in their own order, and in that of the fewest entries."""
    graph = drawn(FAMILIES[family]())
    matrix, spectrum = sparse_laplacian(graph.edges, graph.size), np.linalg.eigvalsh(dense(graph, True))
    gaps = np.flatnonzero(np.diff(spectrum) > 1e-6)
    chosen = gaps[:: max(1, len(gaps) // 8)]
    for light in (1 << 20, -1):
        monkeypatch.setattr(spectra_module, "_LIGHT", light)
        elimination = spectra_module.Elimination.of(matrix)
        for last in chosen:
            bound = spectrum[last] + 0.4e-6
            counted = spectra_module.below(matrix, elimination, bound, 1e-7)
            assert counted in (last + 1, None), light
            assert counted is not None or spectrum[last] > 0.5  # the lower end can always be counted


def test_rows_are_eliminated_once_each_and_leaves_first() -> None:
    star = sparse_laplacian(np.column_stack([np.full(600, 7), np.delete(np.arange(601), 7)]), 601)
    elimination = spectra_module.Elimination.of(star)
    assert sorted(elimination.order) == list(range(601))
    assert elimination.order[-1] == 7
    assert elimination.light
    assert elimination.factors(star + csr_array(np.eye(601))).found.L.nnz == 601 + 600


def test_what_cannot_be_told_of_pivots_is_not() -> None:
    """Rows that were exchanged, and a margin that errors exceed."""
    exchanged = csr_array([[0.0, 1.0], [1.0, 0.0]])
    elimination = spectra_module.Elimination(np.arange(2), 4, light=True)
    assert elimination.factors(exchanged).negative() is None
    assert spectra_module.below(exchanged, elimination, 0.5, 1e-9) == 1
    assert spectra_module.below(exchanged, elimination, 0.5, 0.0) is None


def test_what_is_missed_is_searched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that loses a copy the first time, and one that loses it always."""
    matrix = sparse_laplacian(drawn(nx.balanced_tree(2, 8)).edges, 511)
    expected, search, attempts = lowest_sparse(matrix, 7)[0], spectra_module._dominant, []

    def losing(operator: object, count: int, basis: int, tolerance: float, attempt: int) -> np.ndarray:
        attempts.append(attempt)
        more = search(operator, count + 1, basis, tolerance, attempt)  # type: ignore[arg-type]
        _, vectors, _ = spectra_module._checked(matrix, more)
        return vectors[:, :count] if attempt >= needed else np.delete(vectors, 2, axis=1)

    monkeypatch.setattr(spectra_module, "_dominant", losing)
    needed = 1
    np.testing.assert_allclose(lowest_sparse(matrix, 7)[0], expected, atol=1e-9)
    assert attempts == [0, 1]
    needed = 99
    with pytest.raises(NotConverged, match="4 searches from different starts missed some of the lowest eigenvalues"):
        lowest_sparse(matrix, 7)


def test_what_would_take_minutes_is_refused_before_it_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spectra_module, "_search_all", None)
    million = csr_array(eye_array(1_000_000))
    monkeypatch.setattr(
        spectra_module.Elimination, "of", lambda _: spectra_module.Elimination(np.zeros(0), 1 << 40, light=False)
    )
    assert 60 < spectra_module._estimate(million, 9) < 300
    with pytest.raises(TooLong):
        lowest_sparse(million, 9, 60.0)


@pytest.mark.parametrize("kind", [Laplacian, Eigenvalues, Eigenpairs])
def test_more_minutes_can_be_allowed(
    kind: type[Laplacian | Eigenvalues | Eigenpairs], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = replace(drawn(nx.random_regular_graph(6, 600, seed=0)), name="graph:1")
    monkeypatch.setattr(spectra_module, "_PASSES", 1e6)
    message = (
        rf"graph:1: encoding '{kind.name}': [34] eigenvectors of a part of 600 nodes and 1800 edges take about 2 "
        r"minutes, and 1 is allowed; encode parts of the graph .structpe.transforms.subgraph., choose an encoding that "
        r"is linear in its size, such as 'degree', or give minutes: 2 to allow it"
    )
    with pytest.raises(EncodingError, match=message):
        kind(3).one(graph)
    monkeypatch.setattr(spectra_module, "_PASSES", 5e6)
    with pytest.raises(EncodingError, match="take about 6 minutes, and 2 are allowed"):
        kind(3, minutes=2).one(graph)
    allowed = kind(3, minutes=6).one(graph).values
    monkeypatch.undo()
    np.testing.assert_array_equal(allowed, kind(3).one(graph).values)


def test_no_minute_is_refused() -> None:
    with pytest.raises(EncodingError, match="encoding 'laplacian': minutes is 0; give 1 or more"):
        Laplacian(minutes=0)
