"""TU Dortmund's format of graph sets: several files of numbers with the same prefix (Morris et al. 2020)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from structpe.errors import ReadError
from structpe.formats.reading import Item, Yielded, attempt, reader
from structpe.formats.text import lines, shown
from structpe.structure import Ids, Structure

__all__ = ["tu"]

ENDING = "_A.txt"
T = TypeVar("T", int, float)


class _Set(NamedTuple):
    """The contents of the files of a set.

    ``edges`` (e, 2) number the nodes of all graphs from 0; ``graph`` (n,) is the graph of each node. The others are
    None without their file: (n, .) and (e, .) labels and attributes, (g, .) targets of graphs.
    """

    edges: Ids
    graph: Ids
    node_labels: Ids | None
    node_attributes: NDArray[np.float64] | None
    edge_labels: Ids | None
    edge_attributes: NDArray[np.float64] | None
    graph_labels: Ids | None
    graph_attributes: NDArray[np.float64] | None


@reader("tu", "")  # a set has several files, without a special suffix, so a folder cannot be read
def tu(path: Path) -> Iterator[Yielded]:
    """Graph sets of TU Dortmund: undirected graphs; the path is that of ``NAME_A.txt``, its siblings are read too.

    ``NAME_A.txt`` (an edge per line: two numbers of nodes from 1 on, separated by a comma) and
    ``NAME_graph_indicator.txt`` (the number of the graph of each node) are required. The other files are optional:
    labels of nodes are the labels of the structure, those of edges its relations, attributes the features ``x`` and
    ``edge_x``, labels and attributes of graphs ``metadata["label"]`` and ``metadata["attributes"]``. An edge in both
    directions is one.
    """
    if not path.name.endswith(ENDING):
        raise ReadError(f"the file is called {path.name}; give the one whose name ends in {ENDING}")
    found = _read(path)
    ends = np.searchsorted(found.graph, np.arange(found.graph[-1] + 2 if len(found.graph) else 1))
    owner = found.graph[found.edges[:, 0]]
    order = np.argsort(owner, kind="stable")
    edge_ends = np.searchsorted(owner[order], np.arange(len(ends)))
    for number in range(len(ends) - 1):
        mine = order[edge_ends[number] : edge_ends[number + 1]]
        make = partial(_item, found, number, range(ends[number], ends[number + 1]), mine, path)
        yield attempt(make, str(number + 1))


def _item(found: _Set, number: int, nodes: range, mine: Ids, path: Path) -> Item:
    local = np.sort(found.edges[mine] - nodes.start, axis=1)
    _, once, of = np.unique(local, axis=0, return_index=True, return_inverse=True)
    _check_ways(found, mine, mine[once[of.reshape(-1)]])
    mine, once = mine[np.sort(once)], np.sort(once)
    span = slice(nodes.start, nodes.stop)
    features = {"x": found.node_attributes, "edge_x": found.edge_attributes}
    rows: dict[str, Any] = {"x": span, "edge_x": mine}
    labels = ("",) * len(nodes) if found.node_labels is None else _texts(found.node_labels[span])
    given = {"label": found.graph_labels, "attributes": found.graph_attributes}
    metadata = {key: value[number].tolist() for key, value in given.items() if value is not None}
    structure = Structure(
        labels,
        local[once],
        () if found.edge_labels is None else _texts(found.edge_labels[mine]),
        directed=False,
        features={key: value[rows[key]] for key, value in features.items() if value is not None},
        name=f"{path.name.removesuffix(ENDING)}:{number + 1}",
    )
    metadata = {key: value[0] if len(value) == 1 else tuple(value) for key, value in metadata.items()}
    return Item(structure, id=str(number + 1), metadata=metadata)


def _check_ways(found: _Set, edges: Ids, firsts: Ids) -> None:
    """Check that repeated edges, in any direction, have the same values, since only one is kept."""
    for what, rows in (("label", found.edge_labels), ("attribute", found.edge_attributes)):
        if rows is not None and len(wrong := np.flatnonzero((rows[edges] != rows[firsts]).any(axis=1))):
            again, first = int(edges[wrong[0]]) + 1, int(firsts[wrong[0]]) + 1
            raise ReadError(f"lines {first} and {again} are one undirected edge with different {what}s; correct one")


def _texts(rows: Ids) -> tuple[str, ...]:
    return tuple(" ".join(map(str, row)) for row in rows.tolist())


def _read(path: Path) -> _Set:
    stem = path.name.removesuffix(ENDING)
    graph = _numbers(path.with_name(f"{stem}_graph_indicator.txt"), int)
    if graph is None:
        raise ReadError(f"there is no file {stem}_graph_indicator.txt next to it; restore it")
    edges = _numbers(path, int)
    edges = np.zeros((0, 2), dtype=np.int64) if edges is None or not edges.size else edges
    if problem := _problem(edges, graph):
        raise ReadError(f"{problem}; restore the original")
    counts = {"node": len(graph), "edge": len(edges), "graph": int(graph.max(initial=0))}
    more = {
        f"{what}_{kind}": _rows(path.with_name(f"{stem}_{what}_{kind}.txt"), number, counts[what], what)
        for kind, number in (("labels", int), ("attributes", float))
        for what in counts
    }
    return _Set(edges - 1, graph[:, 0] - 1, **more)


def _problem(edges: Ids, graph: Ids) -> str:
    """The problem of the numbers; empty if there is none."""
    if graph.shape[1] != 1 or graph.min(initial=1) < 1 or (np.diff(graph[:, 0]) < 0).any():
        return "the graph indicator must have one number from 1 on per line, never decreasing"
    if len(np.unique(graph)) != graph.max(initial=0):
        return "a graph has no node; a structure needs at least one"
    if edges.shape[1] != 2:
        return f"a line has {edges.shape[1]} numbers; two are needed"
    if edges.size and (edges.min() < 1 or edges.max() > len(graph)):
        return f"an edge has a node out of 1..{len(graph)}"
    split = np.flatnonzero(graph[edges[:, 0] - 1, 0] != graph[edges[:, 1] - 1, 0])
    return f"the edge of line {split[0] + 1} joins nodes of two graphs" if len(split) else ""


def _rows(file: Path, number: Callable[[str], T], count: int, what: str) -> NDArray[Any] | None:
    found = _numbers(file, number)
    if found is not None and len(found) != count:
        raise ReadError(f"{file.name} has {len(found)} lines for {count} {what}s; restore the original")
    return found


def _numbers(file: Path, number: Callable[[str], T]) -> NDArray[Any] | None:
    """(lines, columns) numbers separated by commas; None without the file."""
    if not file.is_file():
        return None
    rows: list[list[T]] = []
    for place, line in lines(file):
        try:
            row = [number(text) for text in line.split(",")] if line.strip() else []
        except ValueError:
            raise ReadError(f"{shown(line)} in {file.name} has other text than numbers").at(f"line {place}") from None
        if row and rows and len(row) != len(rows[0]):
            raise ReadError(f"{file.name} has {len(row)} numbers here and {len(rows[0])} before").at(f"line {place}")
        if row:
            rows.append(row)
    try:
        return np.array(rows, dtype=type(number("0"))).reshape(len(rows), len(rows[0]) if rows else 1)
    except OverflowError:
        raise ReadError(f"{file.name} has a number beyond 64 bits; restore the original") from None
