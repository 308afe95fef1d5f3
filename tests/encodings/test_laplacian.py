from __future__ import annotations

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structpe.encodings import Eigenvalues, Laplacian, spectra
from structpe.errors import EncodingError
from structpe.structure import Structure, path
from tests.examples import examples
from tests.golden import golden
from tests.strategies import digraphs, paths, relabelled, structures, undirected


def undirected_networkx(structure: Structure) -> networkx.Graph:
    graph = networkx.Graph(structure.edges.tolist())
    graph.add_nodes_from(range(structure.size))
    return graph


def matrix(structure: Structure, nodes: list[int]) -> np.ndarray:
    """The normalised Laplacian of some nodes; networkx gives an isolated one 0 where the encoding means 1."""
    graph = undirected_networkx(structure)
    dense = networkx.normalized_laplacian_matrix(graph, nodelist=nodes).toarray()
    for i, node in enumerate(nodes):
        if not graph.degree(node):
            dense[i, i] = 1.0
    return dense


def parts(structure: Structure, components: bool) -> list[list[int]]:
    if not components:
        return [list(range(structure.size))]
    return [sorted(part) for part in networkx.connected_components(undirected_networkx(structure))]


def of_nodes(encoding: Laplacian | Eigenvalues, structure: Structure) -> np.ndarray:
    return encoding.one(structure).values.astype(np.float64)


def torus(side: int) -> Structure:
    graph = networkx.convert_node_labels_to_integers(networkx.grid_graph([side, side], periodic=True))
    return Structure(("x",) * side**2, list(graph.edges), directed=False)


def waves(side: int) -> list[float]:
    """Eigenvalues of the torus, each four times or more."""
    cosines = np.cos(2 * np.pi * np.arange(side) / side)
    return sorted((1 - (cosines[:, None] + cosines) / 2).ravel().tolist())


def ring(size: int) -> Structure:
    return Structure(("x",) * size, [[i, (i + 1) % size] for i in range(size)], directed=False)


@examples(50)
@given(structure=structures(units=False), k=st.integers(1, 12), components=st.booleans(), skip=st.integers(0, 2))
def test_they_are_the_lowest_eigenpairs_of_each_part(structure: Structure, k: int, components: bool, skip: int) -> None:
    vectors = of_nodes(Laplacian(k, components, skip), structure)
    values = of_nodes(Eigenvalues(k, components, skip), structure)
    for part in parts(structure, components):
        laplacian = matrix(structure, part)
        expected = np.linalg.eigvalsh(laplacian)[skip : skip + k]
        m = len(expected)
        own, v = values[part], vectors[part]
        np.testing.assert_allclose(own[:, :m], np.tile(expected, (len(part), 1)), atol=1e-6)
        np.testing.assert_allclose(laplacian @ v[:, :m], v[:, :m] * expected, atol=1e-6)
        np.testing.assert_allclose(v[:, :m].T @ v[:, :m], np.eye(m), atol=1e-6)
        assert (own[:, m:] == -1).all()
        assert (v[:, m:] == 0).all()


@examples(50)
@given(structure=st.one_of(undirected(connected=True), digraphs(connected=True)), data=st.data())
def test_signs_are_canonical_where_the_spectrum_is_simple(structure: Structure, data: st.DataObject) -> None:
    new, p = relabelled(structure, np.array(data.draw(st.permutations(range(structure.size)))))
    spectrum = np.linalg.eigvalsh(matrix(structure, list(range(structure.size))))
    old, there = of_nodes(Laplacian(12), structure), of_nodes(Laplacian(12), new)
    first_units = np.unique(structure.unit_owner, return_index=True)[1]
    for j in range(min(12, structure.size - 1)):
        gaps = np.abs(np.delete(spectrum, j + 1) - spectrum[j + 1])
        nodes = old[first_units, j]
        decided = np.abs(np.sort(nodes) - np.sort(-nodes)).max() > 1e-4
        if gaps.min() > 1e-3 and decided:
            np.testing.assert_allclose(there[:, j], old[p, j], atol=1e-5)
        if decided and nodes.max() > -nodes.min() + 1e-4:
            assert nodes[np.abs(nodes).argmax()] > 0
        assert nodes.max() > -nodes.min() - 1e-4


@examples(25)
@given(tokens=paths(most=14), data=st.data())
def test_on_a_path_the_reading_order_decides_every_sign(tokens: Structure, data: st.DataObject) -> None:
    new, p = relabelled(tokens, np.array(data.draw(st.permutations(range(tokens.size)))))
    np.testing.assert_allclose(of_nodes(Laplacian(), new), of_nodes(Laplacian(), tokens)[p], atol=1e-5)


@pytest.mark.parametrize("name", ["g7", "disc6", "cycle4"])
def test_the_authors_code_agrees_up_to_sign_and_basis(name: str) -> None:
    """They take the graph as a whole and drop the first column, trivial or not."""
    g = golden("lap_wl_rw_dgl")
    edges, expected = g[f"in.{name}.edges"].numpy(), g[f"out.{name}.lap3"].numpy().astype(np.float64)
    graph = Structure(("x",) * len(expected), edges)
    vectors = of_nodes(Laplacian(3, components=False), graph)
    values = of_nodes(Eigenvalues(8, components=False, skip=0), graph)[0]
    whole = [group for group in groups(values, first=1, last=3) if not cut(values, group)]
    assert whole
    for columns in whole:
        np.testing.assert_allclose(projector(vectors, columns), projector(expected, columns), atol=1e-5)


def groups(values: np.ndarray, first: int, last: int) -> list[list[int]]:
    """The columns first..last in groups of equal eigenvalues."""
    result: list[list[int]] = [[first]]
    for j in range(first + 1, last + 1):
        if values[j] - values[j - 1] < 1e-5:
            result[-1].append(j)
        else:
            result.append([j])
    return result


def cut(values: np.ndarray, columns: list[int]) -> bool:
    """Whether some vectors of the eigenspace are not among the columns: then any others may be."""
    close = np.flatnonzero(np.abs(values - values[columns[0]]) < 1e-5)
    return len(close) > len(columns)


def projector(vectors: np.ndarray, columns: list[int]) -> np.ndarray:
    chosen = vectors[:, [j - 1 for j in columns]]
    return chosen @ chosen.T


def test_parts_are_each_for_themselves() -> None:
    """0-1-2, 3-4 and 5 alone: two vectors, one, none."""
    graph = Structure(("x",) * 6, [[0, 1], [1, 2], [3, 4]], order=np.arange(6))
    half, root = 0.5, np.sqrt(0.5)
    expected = [[root, -half], [0, root], [-root, -half], [root, 0], [-root, 0], [0, 0]]
    np.testing.assert_allclose(of_nodes(Laplacian(2), graph), expected, atol=1e-6)
    values = [[1, 2], [1, 2], [1, 2], [2, -1], [2, -1], [-1, -1]]
    np.testing.assert_allclose(of_nodes(Eigenvalues(2), graph), values, atol=1e-6)


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (torus(24), waves(24)[1:9]),
        (ring(600), [1 - np.cos(2 * np.pi * (j // 2) / 600) for j in range(2, 10)]),
        (path(["x"] * 700), [1 - np.cos(np.pi * j / 699) for j in range(1, 9)]),
    ],
    ids=["torus, each four times", "ring, every eigenvalue twice", "path"],
)
def test_large_graphs_lose_no_eigenvalue(graph: Structure, expected: list[float]) -> None:
    np.testing.assert_allclose(of_nodes(Eigenvalues(), graph)[0], expected, atol=1e-9)


def test_large_graphs_have_the_eigenpairs_of_a_full_decomposition() -> None:
    rng = np.random.default_rng(1)
    edges = np.concatenate([rng.integers(0, 600, (1200, 2)), [[600, 601], [601, 602]]])
    graph = Structure(("x",) * 603, edges, directed=False)
    vectors, values = of_nodes(Laplacian(), graph), of_nodes(Eigenvalues(), graph)
    part = max(parts(graph, components=True), key=len)
    assert 500 < len(part) < 603
    laplacian = matrix(graph, part)
    full = np.linalg.eigvalsh(laplacian)[1:9]
    np.testing.assert_allclose(values[part][0], full, atol=1e-6)
    np.testing.assert_allclose(laplacian @ vectors[part], vectors[part] * full, atol=1e-6)
    np.testing.assert_allclose(vectors[part].T @ vectors[part], np.eye(8), atol=1e-6)
    np.testing.assert_array_equal(vectors, of_nodes(Laplacian(), graph))


def test_what_does_not_converge_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spectra, "_dominant", lambda *given: None)
    expected = (
        "encoding 'laplacian': the iteration ended before .* .a part of 600 nodes, 9 eigenvectors.; give another k, or"
    )
    with pytest.raises(EncodingError, match=expected):
        Laplacian().one(ring(600))


def test_a_large_residual_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spectra, "_dominant", lambda operator, count, *rest: np.eye(600)[:, :count])
    with pytest.raises(EncodingError, match="the largest residual is 7e-01, it must be 1e-05 at most"):
        Eigenvalues().one(ring(600))


@pytest.mark.parametrize("encoding", [Laplacian, Eigenvalues])
def test_impossible_options_are_refused(encoding: type[Laplacian | Eigenvalues]) -> None:
    with pytest.raises(EncodingError, match="k must be 1 or more and skip 0 or more; they are k 0, skip 1"):
        encoding(0)
    with pytest.raises(EncodingError, match="they are k 2, skip -1"):
        encoding(2, skip=-1)


def test_both_of_two_equal_eigenvalues_are_repeated() -> None:
    ring = Structure(("a",) * 4, [(0, 1), (1, 2), (2, 3), (3, 0)], directed=False)  # 0, 1, 1, 2
    assert Laplacian(k=3).repeated(ring).tolist() == [[True, True, False]] * 4
    assert Laplacian(k=1).repeated(ring).tolist() == [[True]] * 4  # cuts through the two
