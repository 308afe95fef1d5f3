"""Sets of graphs that are hard to tell apart, read from files or made by their definition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from structpe.structure import Structure

__all__ = ["SETS", "GraphSet", "Missing", "csl", "relabelled"]

SKIPS = (2, 3, 4, 5, 6, 9, 11, 12, 13, 16)
"""Of the ten classes of CSL (Murphy et al. 2019): circles of 41 nodes, with a chord from each to the one so far on."""

BREC_PARTS = {"basic": 60, "regular": 50, "str": 50, "extension": 100, "cfi": 100, "4vtx": 20, "dr": 20}
"""Number of pairs of each file (Wang and Zhang 2024)."""


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
    each = [[(i, (i + s) % 41) for i in range(41) for s in (1, skip)] for skip in SKIPS]
    yield GraphSet("CSL", [_graph(41, np.array(edges)) for edges in each], list(combinations(range(len(each)), 2)))


def exp(folder: Path) -> Iterator[GraphSet]:
    """Pairs of formulas, one satisfiable and one not, which Weisfeiler-Lehman refinement does not tell apart."""
    arrays = np.load(_there(folder / "exp" / "EXP_GRAPHSAT.npz"), allow_pickle=False)
    sizes, counts = arrays["n_nodes"].astype(np.int64), arrays["n_edges"].astype(np.int64)
    edges = np.split(arrays["edge_index"].T.astype(np.int64), np.cumsum(counts)[:-1])
    graphs = [_graph(int(n), e[e[:, 0] < e[:, 1]]) for n, e in zip(sizes, edges, strict=True)]
    yield GraphSet("EXP", graphs, [(i, i + 1) for i in range(0, len(graphs), 2)])


def sr25(folder: Path) -> Iterator[GraphSet]:
    """The strongly regular graphs of parameters 25, 12, 5, 6, each with each other."""
    lines = _there(folder / "gnn-matlang" / "sr251256.g6").read_text(encoding="ascii").split()
    graphs = [_graph6(line) for line in lines]
    yield GraphSet("SR25", graphs, list(combinations(range(len(graphs)), 2)))


def brec(folder: Path) -> Iterator[GraphSet]:
    """400 pairs of seven kinds."""
    for part, count in BREC_PARTS.items():
        stored = np.load(_there(folder / "brec" / f"{part}.npy"), allow_pickle=False).reshape(-1)
        texts = [text.decode("ascii") if isinstance(text, bytes) else str(text) for text in stored.tolist()]
        assert len(texts) == 2 * count, f"{part} has {len(texts)} graphs"
        yield GraphSet(f"BREC {part}", [_graph6(text) for text in texts], [(2 * i, 2 * i + 1) for i in range(count)])


SETS = {"csl": csl, "exp": exp, "sr25": sr25, "brec": brec}
"""Functions of the folder of the files."""


def relabelled(graph: Structure, generator: np.random.Generator) -> Structure:
    """The same graph with its nodes numbered otherwise, its edges in another order, some of them turned round."""
    number = generator.permutation(graph.size)
    edges = number[graph.edges][generator.permutation(len(graph.edges))]
    turned = generator.random(len(edges)) < 0.5
    return _graph(graph.size, np.where(turned[:, None], edges[:, ::-1], edges))


def _there(path: Path) -> Path:
    if not path.is_file():
        raise Missing(f"{path} is not there")
    return path


def _graph6(text: str) -> Structure:
    import networkx

    graph = networkx.from_graph6_bytes(text.encode("ascii"))
    return _graph(graph.number_of_nodes(), np.array(sorted(graph.edges), dtype=np.int64).reshape(-1, 2))


def _graph(size: int, edges: NDArray[np.int64]) -> Structure:
    return Structure(("",) * size, edges, directed=False)
