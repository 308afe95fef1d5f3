"""Sets of graphs in files of TU Dortmund, and knowledge graphs with held-out triples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from structpe.data.features import Categories
from structpe.datasets.arrays import indices, lines, needed
from structpe.datasets.base import Benchmark, Split, benchmark
from structpe.errors import ConfigError, ReadError, listed
from structpe.formats import read
from structpe.formats.triples import triples
from structpe.objectives.classification import Multiclass
from structpe.objectives.link import Link
from structpe.structure import Ids, Structure

__all__ = ["knowledge_graph", "tu"]


@benchmark("knowledge-graph")
def knowledge_graph(folder: Path, columns: str = "hrt", metric: str = "mrr") -> Benchmark:
    """A knowledge graph, published or your own: which entity completes a triple; filtered ranks.

    The graph has the entities of all three files, and as edges the training triples. Each entity is a category and has
    a learned vector. An entity without a training triple keeps its initial vector (WN18RR has such entities).

    Args:
        folder: where ``train.txt``, ``valid.txt`` and ``test.txt`` are, a triple per line, separated by tabs.
        columns: the order of head, relation and tail: ``hrt``, or ``rht`` as in Nations.
        metric: ``mrr``, ``hits@1``, ``hits@3`` or ``hits@10``; all four are reported.

    Raises:
        ConfigError: a triple is in two splits.
        ReadError: a file is missing, or a line is not a triple.
    """
    parts = [read(needed(folder / f"{part}.txt"), "triples", columns=columns)[0].structure for part in Split._fields]
    facts = [
        (part.nodes[head], relation, part.nodes[tail])
        for part in parts
        for (head, tail), relation in zip(part.edges.tolist(), part.relations, strict=True)
    ]
    whole = triples(facts, name=folder.resolve().name)
    names, relations = np.unique(whole.relations, return_inverse=True)
    found = np.column_stack([whole.edges[:, 0], relations, whole.edges[:, 1]])
    split = Split(*np.split(np.arange(len(facts)), np.cumsum([len(part.edges) for part in parts])[:-1]))
    _check(facts, found, split)
    learned = len(split.train)
    graph = replace(
        whole,
        edges=whole.edges[:learned],
        relations=whole.relations[:learned],
        features={"x": np.arange(whole.size)[:, None], "edge_x": relations[:learned, None]},
    )
    return Benchmark(
        name=whole.name,
        graphs=[graph],
        targets=found,
        splits=(split,),
        nodes=Categories((whole.size,)),
        edges=Categories((len(names),)),
        objective=Link(len(names), metric, whole.size),
        note="filtered ranks, both directions, the mean rank among equal scores",
    )


def _check(facts: Sequence[tuple[str, str, str]], found: Ids, split: Split) -> None:
    """Check that no triple is in two splits, as the test split would then be trained on."""
    _, first, number = np.unique(found, axis=0, return_index=True, return_inverse=True)
    parts = [np.unique(number.reshape(-1)[numbers]) for numbers in split]
    seen, times = np.unique(np.concatenate(parts), return_counts=True)
    if len(twice := seen[times > 1]):
        wrong = f"the triple {facts[first[twice[0]]]} is in two of the files, and {len(twice) - 1} others"
        raise ConfigError(f"{wrong}; keep each in one")


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
        wrong = f"the edge {alone[0][0]} - {alone[0][1]} is not listed once in the lines of both its ends"
        raise _error(file, place, wrong)
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
            wrong = f"fold {k + 1} trains on graphs that it tests, or lacks graphs that the next fold tests"
            raise ReadError(f"{wrong}; bring back the original").at(folder)
        if len(train) + len(test) != count:
            named = f"fold {k + 1} names {len(train) + len(test)} of {count} graphs; it must name each once"
            raise ReadError(f"{named}; bring back the original").at(folder)
        folds.append(Split(np.setdiff1d(train, valid), valid, test))
    return tuple(folds)


def _error(file: Path, line: int, message: str) -> ReadError:
    return ReadError(f"{message}; bring back the original").at(file, f"line {line}" if line else "at its end")
