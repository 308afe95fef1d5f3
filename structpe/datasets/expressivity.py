"""Graphs that colour refinement (Weisfeiler, Lehman) cannot distinguish, or hardly: BREC, CSL, EXP.

The graphs of BREC have no target, so it is not a :class:`~structpe.datasets.base.Benchmark`: a model is trained for
each pair and tested statistically, see ``experiments/benchmarks/brec_protocol.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structpe.data.features import Categories
from structpe.datasets.arrays import (
    array,
    check_counts,
    check_ends,
    check_list,
    check_range,
    lists_of_indices,
    read_packed,
    slices,
)
from structpe.datasets.base import Benchmark, Split, benchmark
from structpe.errors import ReadError, located
from structpe.formats.graph6 import graph6
from structpe.objectives.classification import Multiclass
from structpe.structure import Ids, Structure
from structpe.transforms.parts import renumbered

__all__ = ["KINDS", "SKIPS", "Pair", "brec_pairs", "circle", "csl", "exp"]

KINDS = {"basic": 60, "regular": 50, "str": 50, "extension": 100, "cfi": 100, "4vtx": 20, "dr": 20}
"""Number of pairs of each kind: basic, simple regular, strongly regular, extension, CFI, 4-vertex condition, distance
regular; in the order of the authors' numbers."""


class Pair(NamedTuple):
    """Two graphs that are not isomorphic, and their kind."""

    kind: str
    first: Structure
    second: Structure


def brec_pairs(folder: Path, *kinds: str) -> list[Pair]:
    """Read pairs of graphs.

    Files: ``basic.npy`` and so on, arrays of graph6 texts; graphs 2i and 2i + 1 are a pair.

    Args:
        folder: folder with the files.
        kinds: names in :data:`KINDS`; all by default.

    Raises:
        ReadError: a kind is unknown, or its file is missing or damaged.
    """
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise ReadError(f"BREC has no pairs of kind {unknown[0]!r}; known: {', '.join(KINDS)}")
    return [pair for kind in kinds or KINDS for pair in _pairs(folder / f"{kind}.npy", kind)]


def _pairs(file: Path, kind: str) -> list[Pair]:
    texts = array(file).reshape(-1)
    if texts.dtype.kind not in "SU" or len(texts) != 2 * KINDS[kind]:
        wrong = f"an array of {2 * KINDS[kind]} texts is needed, this one is of {len(texts)} {texts.dtype}"
        raise ReadError(f"{wrong}; bring back the original").at(file)
    with located(file):
        graphs = [graph6(text, f"{kind} {number}") for number, text in enumerate(texts.astype(str).tolist())]
    return [Pair(kind, *pair) for pair in zip(graphs[::2], graphs[1::2], strict=True)]


SKIPS = (2, 3, 4, 5, 6, 9, 11, 12, 13, 16)
"""Length of the chords of each of the ten classes, in steps along the circle."""

NODES, COPIES, SEED = 41, 15, 41
GRAPHS = COPIES * len(SKIPS)


@benchmark("csl")
def csl(folder: Path, loops: bool = False) -> Benchmark:
    """CSL: ten classes of 15 graphs with 41 equal nodes, each with four neighbours; five folds.

    The graphs are made by their definition: a class is one graph, and its members are that graph with its nodes
    numbered at random (with a fixed seed). Only the folds are read. They number the graphs class by class.

    Files: ``CSL_train.index``, ``CSL_val.index``, ``CSL_test.index`` of Dwivedi et al. (2023), with one line per fold
    and numbers of graphs separated by commas.

    Args:
        folder: folder with the files.
        loops: whether each node has an edge to itself, as in the files of Dwivedi et al. It carries no information,
            since every node has it.
    """
    generator = np.random.default_rng(SEED)
    graphs = [renumbered(circle(skip, loops), generator) for skip in SKIPS for _ in range(COPIES)]
    return Benchmark(
        name="CSL",
        graphs=graphs,
        targets=np.repeat(np.arange(len(SKIPS)), COPIES),
        splits=_folds(folder),
        objective=Multiclass("graph", len(SKIPS), "accuracy"),
        note=f"graphs made by their definition, {'with' if loops else 'without'} self-loops; the five published folds",
    )


def circle(skip: int, loops: bool = False) -> Structure:
    """Make a circle of 41 nodes with chords.

    Args:
        skip: length of a chord, in steps along the circle.
        loops: whether each node has an edge to itself.
    """
    steps = (1, skip, 0) if loops else (1, skip)
    edges = [(i, (i + step) % NODES) for i in range(NODES) for step in steps]
    return Structure(("",) * NODES, np.array(edges), directed=False, name=f"CSL skip {skip}")


def _folds(folder: Path) -> tuple[Split, ...]:
    files = [folder / f"CSL_{part}.index" for part in ("train", "val", "test")]
    parts = [lists_of_indices(file, GRAPHS, "graphs") for file in files]
    for file, part in zip(files, parts, strict=True):
        if len(part) != len(parts[0]):
            raise ReadError(f"there are {len(part)} folds, but {len(parts[0])} in {files[0].name}").at(file)
    folds = tuple(Split(*fold) for fold in zip(*parts, strict=True))
    for number, fold in enumerate(folds, 1):
        if not np.array_equal(np.sort(np.concatenate(fold)), np.arange(GRAPHS)):
            wrong = f"fold {number} does not name each of the graphs 0..{GRAPHS - 1} once"
            raise ReadError(f"{wrong}; bring back the original").at(folder)
    return folds


FOLDS, NODE_KINDS = 10, 2
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
        nodes=Categories((NODE_KINDS,)),
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
    check_range(packed, "x", 0, NODE_KINDS)
    check_ends(packed, edges, ("edge", "graph", "node"))
    y = y.astype(np.int64)
    if len(y) < 2 * FOLDS or len(y) % 2 or (y[::2] + y[1::2] != 1).any():
        problem = f"the {len(y)} classes are not those of {FOLDS} or more pairs, one graph of each class in each"
        raise ReadError(f"{problem}; bring back the original")
    if len(y) // FOLDS % 2 or (len(y) - len(y) // FOLDS) // FOLDS % 2:
        raise ReadError(f"{len(y)} graphs cannot be divided into ten folds of whole pairs; bring back the original")
