"""The graph sets of TU Dortmund, with the ten folds of the graph kernels' and GIN's tables (Morris et al. 2020)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from structpe.data.features import Categories
from structpe.datasets.base import Benchmark, Split, benchmark
from structpe.datasets.files.arrays import indices, lines
from structpe.errors import ReadError, listed
from structpe.objectives.classification import Multiclass
from structpe.structure import Ids, Structure

__all__ = ["tu"]

FOLDS = 10
NOTE = (
    "mean over ten folds; each validates on the test part of the next one, removed from its training part. GIN's "
    "published results have no validation part: they take the epoch that is best on the test parts, which is optimistic"
)


class _Graph(NamedTuple):
    """A graph of the file: its class, the tags of its nodes, and its edges without repetition."""

    target: int
    tags: Ids
    edges: Ids


@benchmark("tu")
def tu(folder: Path) -> Benchmark:
    """A graph set of TU Dortmund in the text format of DGCNN and GIN, with ten folds; its name is that of the folder.

    The protocol of GIN has no validation part. Here fold k validates on the test part of fold k + 1 (fold 10 on that of
    fold 1), which is removed from its training part. The category of a node is its tag, or its degree if all tags are
    equal, as in the social sets. Categories are numbered over all graphs; those that only test graphs have keep an
    untrained vector.

    Files: of a folder MUTAG, ``MUTAG.txt`` (the number of graphs; of each graph a line ``nodes class``, then for each
    node ``tag degree neighbours``), ``10fold_idx/train_idx-k.txt`` and ``10fold_idx/test_idx-k.txt``, k = 1..10.
    """
    name = folder.resolve().name
    graphs = list(_graphs(folder / f"{name}.txt"))
    tags = np.concatenate([graph.tags for graph in graphs])
    social = len(np.unique(tags)) == 1
    seen = [_degrees(graph) if social else graph.tags for graph in graphs]
    kinds, classes = np.unique(np.concatenate(seen)), np.unique([graph.target for graph in graphs])
    return Benchmark(
        name=name,
        graphs=[
            Structure(
                tuple(map(str, values.tolist())),
                graph.edges,
                directed=False,
                features={"x": np.searchsorted(kinds, values)[:, None]},
                name=f"{name}:{number}",
            )
            for number, (graph, values) in enumerate(zip(graphs, seen, strict=True))
        ],
        targets=np.searchsorted(classes, [graph.target for graph in graphs]),
        splits=_folds(folder / "10fold_idx", len(graphs)),
        nodes=Categories((len(kinds),)),
        objective=Multiclass("graph", len(classes), "accuracy"),
        note=NOTE + ("; nodes have their degree as category" if social else ""),
        names=tuple(map(str, classes.tolist())),
    )


def _degrees(graph: _Graph) -> Ids:
    return np.bincount(graph.edges.reshape(-1), minlength=len(graph.tags))


def _graphs(file: Path) -> Iterator[_Graph]:
    rows = _rows(file)
    place, (count, *_) = next(rows, (0, [0]))
    for graph in range(count):
        place, row = next(rows, (0, []))
        if len(row) != 2 or row[0] < 1:
            raise _error(file, place, f"graph {graph} of {count} needs a line 'number-of-nodes class'")
        yield _graph(file, rows, *row)
    if not count or next(rows, None) is not None:
        raise _error(file, place, f"the first line says {count} graphs, and the file has another number")


def _graph(file: Path, rows: Iterator[tuple[int, list[int]]], size: int, target: int) -> _Graph:
    tags: list[int] = []
    ends: list[tuple[int, int]] = []
    for node in range(size):
        place, row = next(rows, (0, []))
        if len(row) < 2 or len(row) != 2 + row[1]:
            raise _error(file, place, f"node {node} of {size} needs a line 'tag degree neighbours'")
        if any(not 0 <= other < size for other in row[2:]):
            raise _error(file, place, f"neighbours [{listed(row[2:])}] are not all nodes 0..{size - 1}")
        tags.append(row[0])
        ends.extend((node, other) if node < other else (other, node) for other in row[2:])
    # Both ends of an edge list it.
    if alone := [edge for edge, times in Counter(ends).items() if times != 2 - (edge[0] == edge[1])]:
        raise _error(
            file, place, f"the edge {alone[0][0]} - {alone[0][1]} is not listed once in the lines of both its ends"
        )
    return _Graph(target, np.array(tags, dtype=np.int64), np.array(sorted(set(ends)), dtype=np.int64).reshape(-1, 2))


def _rows(file: Path) -> Iterator[tuple[int, list[int]]]:
    for place, line in lines(file):
        try:
            row = [int(text) for text in line.split()]
            np.array(row, dtype=np.int64)
            yield place, row
        except (ValueError, OverflowError):
            raise _error(file, place, "whole numbers are needed; other features of nodes are not read") from None


def _folds(folder: Path, count: int) -> tuple[Split, ...]:
    """Fold k tests on test part k, validates on the next test part, and trains on the rest of training part k."""
    trained, tested = (
        [np.sort(indices(folder / f"{part}_idx-{k}.txt", count, "graphs")) for k in range(1, FOLDS + 1)]
        for part in ("train", "test")
    )
    folds = []
    for k, (train, test) in enumerate(zip(trained, tested, strict=True)):
        valid = tested[(k + 1) % FOLDS]
        if np.intersect1d(train, test).size or np.setdiff1d(valid, train).size:
            raise ReadError(
                f"fold {k + 1} trains on what it tests, or lacks what the next fold tests; bring back the original"
            ).at(folder)
        if len(train) + len(test) != count:
            named = f"fold {k + 1} names {len(train) + len(test)} of {count} graphs; it must name each once"
            raise ReadError(f"{named}; bring back the original").at(folder)
        folds.append(Split(np.setdiff1d(train, valid), valid, test))
    return tuple(folds)


def _error(file: Path, line: int, message: str) -> ReadError:
    return ReadError(f"{message}; bring back the original").at(file, f"line {line}" if line else "at its end")
