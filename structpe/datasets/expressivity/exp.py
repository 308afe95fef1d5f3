"""EXP: formulas as graphs, which colour refinement (Weisfeiler, Lehman) cannot distinguish (Abboud et al. 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.data.features import Categories
from structpe.datasets.base import Benchmark, Split, benchmark
from structpe.datasets.files.packed import check_counts, check_ends, check_list, check_range, read_packed, slices
from structpe.errors import ReadError
from structpe.objectives.classification import Multiclass
from structpe.structure import Ids, Structure

__all__ = ["exp"]

FOLDS, KINDS = 10, 2
NAMES = ("x", "edge_index", "y", "n_nodes", "n_edges")


@benchmark("exp")
def exp(folder: Path) -> Benchmark:
    """EXP: whether a formula can be satisfied; 600 pairs of similar graphs, one of each class; ten folds.

    Nodes are literals or clauses. The folds are those of the authors' code: fold k tests on the k-th tenth of the
    graphs, validates on the k-th tenth of the others, and trains on the rest. The graphs of a pair are always in the
    same part, since they are neighbours and every tenth has an even length.

    File: ``EXP_GRAPHSAT.npz`` with ``x`` (kinds of all nodes), ``edge_index`` (2, e; each edge in both directions),
    ``y``, ``n_nodes`` and ``n_edges``.
    """
    file = folder / "EXP_GRAPHSAT.npz"
    packed = read_packed(file, NAMES, _check)
    x, index = packed["x"], packed["edge_index"].T
    graphs = [_graph(f"{file.name}:{i}", x[n], index[e]) for i, (n, e) in enumerate(slices(packed))]
    return Benchmark(
        name="EXP",
        graphs=graphs,
        targets=packed["y"].astype(np.int64),
        splits=tuple(_fold(len(graphs), k) for k in range(FOLDS)),
        nodes=Categories((KINDS,)),
        objective=Multiclass("graph", 2, "accuracy"),
        note="mean over the ten folds of the authors' code; the two graphs of a pair are always in the same part",
    )


def _graph(name: str, kinds: NDArray[Any], edges: NDArray[Any]) -> Structure:
    once = edges[edges[:, 0] < edges[:, 1]].astype(np.int64)
    features = {"x": kinds.astype(np.int64)[:, None]}
    return Structure(tuple(map(str, kinds.tolist())), once, directed=False, features=features, name=name)


def _fold(count: int, k: int) -> Split:
    numbers, tenth = np.arange(count), count // FOLDS
    test = numbers[k * tenth : (k + 1) * tenth]
    others: Ids = np.setdiff1d(numbers, test)
    tenth = len(others) // FOLDS
    valid = others[k * tenth : (k + 1) * tenth]
    return Split(np.setdiff1d(others, valid), valid, test)


def _check(packed: Mapping[str, NDArray[Any]]) -> None:
    """Check that the arrays fit together, and that ten folds do not separate pairs.

    Raises:
        ReadError: the arrays do not fit, or a fold would separate a pair.
    """
    y = packed["y"]
    check_list(packed, "y", "biu", max(y.size, 1), "a class for each graph")
    check_range(packed, "y", 0, 2)
    nodes, edges = check_counts(packed, "graph")
    check_list(packed, "x", "iu", nodes, f"one per node, {nodes}")
    check_range(packed, "x", 0, KINDS)
    check_ends(packed, edges, ("edge", "graph", "node"))
    y = y.astype(np.int64)
    if len(y) < 2 * FOLDS or len(y) % 2 or (y[::2] + y[1::2] != 1).any():
        problem = f"the {len(y)} classes are not those of {FOLDS} or more pairs, one graph of each class in each"
        raise ReadError(f"{problem}; bring back the original")
    if len(y) // FOLDS % 2 or (len(y) - len(y) // FOLDS) // FOLDS % 2:
        raise ReadError(f"{len(y)} graphs cannot be divided into ten folds of whole pairs; bring back the original")
