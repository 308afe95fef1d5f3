"""Telling graphs apart: what is alike counts as alike, what differs as different."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import networkx
import numpy as np
import pytest

from structpe.structure import Structure
from tests.experiments.script import script
from tests.modules import ROOT
from tests.together import together

run = script("expressivity/run.py")
views = {view.name: view for view in run.VIEWS}
DATA = ROOT.parent / "shared" / "data" / "expressivity"
UNSOUND = {"laplacian, 8", "magnitudes of eigenvectors, 8"}
SOUND = sorted(set(views) - UNSOUND)


def structure(graph: networkx.Graph) -> Structure:
    numbered = networkx.convert_node_labels_to_integers(graph)
    return Structure(("",) * len(numbered), np.array(numbered.edges).reshape(-1, 2), directed=False)


def rook() -> networkx.Graph:
    """Squares of a board of 4 by 4, joined where a rook moves: strongly regular (16, 6, 2, 2)."""
    squares = [(i, j) for i in range(4) for j in range(4)]
    return networkx.Graph([(a, b) for a, b in combinations(squares, 2) if (a[0] == b[0]) != (a[1] == b[1])])


def shrikhande() -> networkx.Graph:
    """The other one with these parameters."""
    steps = [(0, 1), (1, 0), (1, 1)]
    return networkx.Graph([((i, j), ((i + a) % 4, (j + b) % 4)) for i in range(4) for j in range(4) for a, b in steps])


def two_rings() -> tuple[networkx.Graph, networkx.Graph]:
    """Decalin, two rings of six with an edge in common, and bicyclopentyl, two rings of five with one between."""
    decalin = networkx.cycle_graph(10)
    decalin.add_edge(0, 5)
    return decalin, networkx.Graph([*networkx.cycle_graph(5).edges, *((a + 5, b + 5) for a, b in
                                    networkx.cycle_graph(5).edges), (0, 5)])  # fmt: skip


def given(*pair: networkx.Graph) -> object:
    assert not networkx.is_isomorphic(*pair)
    return run.GraphSet("test", [structure(graph) for graph in pair], [(0, 1)])


@together("name", SOUND)
def test_strongly_regular_graphs_look_alike(name: str) -> None:
    """No walk, distance or eigenvalue tells them apart, and no rounding does; only one of them has cliques of four."""
    found = run.count(views[name], given(rook(), shrikhande()))
    assert found == run.Count(apart=int("clique-4" in name), pairs=1, copies=0, graphs=2)


@together("name", SOUND)
def test_refinement_does_not_see_rings_and_walks_do(name: str) -> None:
    found = run.count(views[name], given(*two_rings()))
    assert found == run.Count(int(name not in ("degree", "weisfeiler-lehman")), 1, 0, 2)


@together("name", SOUND)
def test_a_triangle_and_a_path_differ_for_all(name: str) -> None:
    assert run.count(views[name], given(networkx.complete_graph(3), networkx.path_graph(3))).apart == 1


@pytest.mark.parametrize("name", sorted(UNSOUND))
def test_eigenvectors_of_repeated_eigenvalues_give_themselves_away(name: str) -> None:
    found = run.count(views[name], given(rook(), shrikhande()))
    assert found.copies > 0
    assert "| (1) |" in run.table({name: {"test": found}})


def test_circles_with_chords() -> None:
    (circles,) = run.SETS["csl"](Path())
    assert len(circles.graphs) == 10
    assert len(circles.pairs) == 45
    for graph in circles.graphs:
        assert (np.bincount(graph.edges.reshape(-1)) == 4).all()
    assert run.count(views["weisfeiler-lehman"], circles).apart == 0
    assert run.count(views["random-walk, 16 steps"], circles) == run.Count(45, 45, 0, 10)


def test_rows_in_another_order_are_the_same_set() -> None:
    rows = np.random.default_rng(1).normal(size=(50, 7))
    assert not run.differ(rows, rows[::-1] + 1e-8)
    other = rows.copy()
    other[[3, 4], 0] = rows[[4, 3], 0]  # each column alone is the same set of numbers as before
    assert run.differ(rows, other)
    assert run.differ(rows, rows[1:])


def test_a_set_that_is_not_there_is_left_out_and_said_to_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert [given.name for given in run.read(tmp_path, ["sr25", "csl"])] == ["CSL"]
    assert f"sr25 is left out: {tmp_path / 'gnn-matlang' / 'sr251256.g6'} is not there" in capsys.readouterr().err


@pytest.mark.slow
def test_graphs_of_the_files() -> None:
    if not DATA.is_dir():
        pytest.skip("needs ../shared/data: expressivity")
    sets = {given.name: given for given in run.read(DATA, ["sr25", "exp", "brec"])}
    assert {name: len(given.pairs) for name, given in sets.items()} == {
        "SR25": 105, "EXP": 600, "BREC basic": 60, "BREC regular": 50, "BREC str": 50, "BREC extension": 100,
        "BREC cfi": 100, "BREC 4vtx": 20, "BREC dr": 20,
    }  # fmt: skip
    regular = sets["SR25"]
    assert all((np.bincount(graph.edges.reshape(-1)) == 12).all() for graph in regular.graphs)
    assert run.count(views["rrwp, 16 powers"], regular) == run.Count(0, 105, 0, 15)
    some = run.GraphSet("EXP", sets["EXP"].graphs[:20], sets["EXP"].pairs[:10])
    assert run.count(views["weisfeiler-lehman"], some).apart == 0
    assert run.count(views["random-walk, 16 steps"], some) == run.Count(10, 10, 0, 20)
