"""Sets of graphs that are hard to tell apart, read from files or made by their definition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from structpe.datasets import load
from structpe.datasets.expressivity import KINDS, SKIPS, brec_pairs, circle
from structpe.formats.graph6 import graph6
from structpe.structure import Structure

__all__ = ["SETS", "GraphSet", "Missing", "csl"]


class Missing(Exception):
    """A file of a set is not there."""


@dataclass(frozen=True)
class GraphSet:
    """Graphs, and which pairs of them are to be told apart; no two of a pair are isomorphic.

    Attributes:
        name: of the set.
        graphs: all of them.
        pairs: numbers of graphs.
    """

    name: str
    graphs: list[Structure]
    pairs: list[tuple[int, int]]


def csl(folder: Path) -> Iterator[GraphSet]:
    """One graph of each class, each with each other: made by the definition, no file is needed."""
    del folder
    yield GraphSet("CSL", [circle(skip) for skip in SKIPS], list(combinations(range(len(SKIPS)), 2)))


def exp(folder: Path) -> Iterator[GraphSet]:
    """Pairs of formulas, one satisfiable and one not, which Weisfeiler-Lehman refinement does not tell apart."""
    _there(folder / "exp" / "EXP_GRAPHSAT.npz")
    graphs = list(load("exp", folder / "exp").graphs)
    yield GraphSet("EXP", graphs, [(i, i + 1) for i in range(0, len(graphs), 2)])


def sr25(folder: Path) -> Iterator[GraphSet]:
    """The strongly regular graphs of parameters 25, 12, 5, 6, each with each other."""
    lines = _there(folder / "gnn-matlang" / "sr251256.g6").read_text(encoding="ascii").split()
    graphs = [graph6(line) for line in lines]
    yield GraphSet("SR25", graphs, list(combinations(range(len(graphs)), 2)))


def brec(folder: Path) -> Iterator[GraphSet]:
    """400 pairs of seven kinds."""
    for kind in KINDS:
        _there(folder / "brec" / f"{kind}.npy")
        pairs = brec_pairs(folder / "brec", kind)
        graphs = [graph for pair in pairs for graph in (pair.first, pair.second)]
        yield GraphSet(f"BREC {kind}", graphs, [(2 * i, 2 * i + 1) for i in range(len(pairs))])


SETS = {"csl": csl, "exp": exp, "sr25": sr25, "brec": brec}
"""Functions of the folder of the files."""


def _there(path: Path) -> Path:
    if not path.is_file():
        raise Missing(f"{path} is not there")
    return path
