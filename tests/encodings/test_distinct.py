"""Pairs alike have one value: rounding errors make no vocabulary longer."""

from __future__ import annotations

import subprocess
import sys

import networkx as nx
import numpy as np
import pytest

from structpe.encodings import RRWP, Encoding, Euclidean, Intimacy, PersonalizedPageRank, Resistance, WalkKernel
from structpe.encodings.columns import significant
from structpe.structure import Structure, path
from tests.modules import ROOT
from tests.together import together


def drawn(graph: nx.Graph, root: int | None = None) -> Structure:
    graph = nx.convert_node_labels_to_integers(graph)
    return Structure(("x",) * len(graph), np.array(graph.edges), directed=False, root=root)


@pytest.mark.parametrize("n", [2, 60, 200, 700])
def test_a_path_has_as_many_resistances_as_nodes(n: int) -> None:
    encoded = Resistance().one(path(["x"] * n))
    np.testing.assert_allclose(np.unique(encoded.values), np.arange(n), atol=1e-4)
    places = np.arange(n)
    np.testing.assert_allclose(encoded.pairs(), np.abs(places[:, None] - places), atol=1e-4)


def test_resistances_keep_the_digits_that_they_have() -> None:
    """Those of cliques, rings and trees are fractions."""
    for graph, expected in (
        (nx.complete_graph(7), [0, 2 / 7]),
        (nx.cycle_graph(9), [j * (9 - j) / 9 for j in range(5)]),
        (nx.cycle_graph(64), [j * (64 - j) / 64 for j in range(33)]),
        (nx.complete_bipartite_graph(3, 5), [0, 7 / 15, 2 / 5, 2 / 3]),
    ):
        np.testing.assert_allclose(np.unique(Resistance().one(drawn(graph)).values), np.sort(expected), atol=2e-10)


ALIKE: list[tuple[Encoding, nx.Graph, int]] = [
    # A graph in which all pairs of one distance are alike has as many values as distances; 11 of a ring of 21.
    *(
        (encoding, graph, count)
        for graph, count in ((nx.cycle_graph(21), 11), (nx.hypercube_graph(7), 8), (nx.petersen_graph(), 3))
        for encoding in (Resistance(), PersonalizedPageRank(threshold=None))
    ),
    (RRWP(12), nx.cycle_graph(45), 13),  # twelve steps tell apart what is up to 11 away, and all beyond
    (RRWP(17), nx.dodecahedral_graph(), 6),
    (RRWP(17), nx.icosahedral_graph(), 4),
]


@together("encoding, graph, count", ALIKE)
def test_pairs_that_a_symmetry_exchanges_have_one_value(encoding: Encoding, graph: nx.Graph, count: int) -> None:
    assert len(np.unique(encoding.one(drawn(graph)).values, axis=0)) == count


@pytest.mark.parametrize("spacing", [0.1, 0.3, 1 / 3])
def test_points_of_a_line_have_as_many_distances_as_points(spacing: float) -> None:
    line = Structure(("x",) * 200, [[0, 1]], features={"coordinates": np.arange(200)[:, None] * spacing})
    values = Euclidean().one(line).values
    assert len(values) == 200
    np.testing.assert_allclose(values[:, 0], np.arange(200) * spacing, rtol=1e-10)


def test_a_unit_and_itself_have_kernel_1() -> None:
    encoded = WalkKernel(walks=7).one(drawn(nx.gnm_random_graph(40, 80, seed=0)))
    assert (np.diagonal(encoded.pairs()) == 1).all()
    assert encoded.values.max() == 1


@pytest.mark.parametrize("side", [40, 400])
def test_both_ways_from_the_middle_of_a_path_are_as_intimate(side: int) -> None:
    ranks = Intimacy().one(drawn(nx.path_graph(2 * side + 1), root=side)).values
    np.testing.assert_array_equal(ranks[:side], ranks[side + 1 :][::-1])


@pytest.mark.slow
def test_values_do_not_depend_on_threads() -> None:
    """Products of matrices are summed in another order by two threads."""
    command = (
        "import hashlib, networkx as nx, numpy as np\n"
        "from structpe.encodings import RRWP, PersonalizedPageRank, Resistance\n"
        "from structpe.structure import Structure\n"
        "graph = nx.random_regular_graph(4, 300, seed=0)\n"
        "graph = Structure(('x',) * 300, np.array(graph.edges), directed=False)\n"
        "made = [e.one(graph) for e in (Resistance(), PersonalizedPageRank(threshold=None), RRWP(6))]\n"
        "print([hashlib.sha256(m.values.tobytes() + m.index.tobytes()).hexdigest() for m in made])"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", command],
            cwd=ROOT,
            env={"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads, "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in "14"
    }
    assert len(said) == 1


# --- the rounding itself ---


@pytest.mark.parametrize("exact", [1.0, 0.1, 1 / 3, 2.0**-40, 12345.678, 0.5 + 2.0**-30])
def test_significant_digits(exact: float) -> None:
    near = exact * (1 + np.arange(-8, 9) * 2.0**-52)
    assert len(np.unique(significant(near))) == 1
    np.testing.assert_allclose(significant(near), exact, rtol=2e-11)
    assert significant(np.array([0.0, -0.0])).tobytes() == bytes(16)
