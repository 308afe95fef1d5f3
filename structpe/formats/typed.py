"""Graphs with several types of nodes and edges, as in PyG and DGL: a table per type; and texts as tensors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structpe.formats.arrays import PLACE, both_ways
from structpe.formats.converting import ConversionError
from structpe.structure import Ids, Structure

__all__ = ["PLACE", "EdgeTable", "NodeTable", "Widths", "as_numbers", "as_texts", "joined", "placed", "tables"]


Widths: TypeAlias = Literal["error", "pad", "blocks"]
Arrays: TypeAlias = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class NodeTable:
    """The nodes of one type: their number and features."""

    type: str
    count: int
    features: Arrays = field(default_factory=dict)


@dataclass(frozen=True)
class EdgeTable:
    """The edges of one type (source type, relation, target type): (e, 2) numbers within these types, and features."""

    type: tuple[str, str, str]
    ends: Ids
    features: Arrays = field(default_factory=dict)


def tables(structure: Structure, blank: str) -> tuple[list[NodeTable], list[EdgeTable]]:
    """A table for each label, and for each relation between two labels, in the order of their first occurrence.

    The column ``structure_place`` has the index of each node. For an edge it is twice the index; for the reverse of an
    undirected edge, one more. The relation of a reverse has the prefix ``rev_`` if the types of its ends differ.

    Args:
        structure: the graph.
        blank: the relation of edges if the structure has no relations.

    Raises:
        ConversionError: a label or relation is empty, or all relations are ``blank``.
    """
    _check(structure, blank)
    types = {label: number for number, label in enumerate(dict.fromkeys(structure.nodes))}
    names = list(types)
    kind = np.array([types[label] for label in structure.nodes])
    within = np.zeros(structure.size, dtype=np.int64)
    nodes = []
    for label, number in types.items():
        members = np.flatnonzero(kind == number)
        within[members] = np.arange(len(members))
        features = {key: np.asarray(value)[members] for key, value in structure.features.items() if not _of_edge(key)}
        nodes.append(NodeTable(label, len(members), {**features, PLACE: members}))
    ends, edge = both_ways(structure)
    back = np.concatenate([[False], edge[1:] == edge[:-1]]) if len(edge) else np.zeros(0, dtype=bool)
    rows: dict[tuple[str, str, str], list[int]] = {}
    for row, (source, target) in enumerate(kind[ends].tolist()):
        relation = structure.relation(int(edge[row])) or blank
        reverse = "rev_" if back[row] and source != target else ""
        rows.setdefault((names[source], reverse + relation, names[target]), []).append(row)
    edges = []
    for key, members_ in rows.items():
        chosen = np.array(members_)
        own = {name: np.asarray(value)[edge[chosen]] for name, value in structure.features.items() if _of_edge(name)}
        edges.append(EdgeTable(key, within[ends[chosen]], {**own, PLACE: 2 * edge[chosen] + back[chosen]}))
    return nodes, edges


def joined(nodes: Sequence[NodeTable], edges: Sequence[EdgeTable], blank: str, widths: Widths) -> dict[str, Any]:
    """Nodes, edges, relations and features of one structure, in the order of ``structure_place``, or type by type.

    With ``structure_place``, reverses of undirected edges are left out.

    Args:
        nodes: tables, of different types.
        edges: tables.
        blank: the relation that means no relations, if all edges have it.
        widths: how to join features with different shapes in different types, see :func:`_one`.

    Raises:
        ConversionError: a feature has several shapes and ``widths`` is ``error``, or has more than two axes.
    """
    starts = dict(zip([table.type for table in nodes], np.cumsum([0, *(table.count for table in nodes)]), strict=False))
    for table in edges:
        if unknown := [type_ for type_ in (table.type[0], table.type[2]) if type_ not in starts]:
            raise ConversionError(f"edges {table.type} lead to or from {unknown[0]!r}, which is not a type of nodes")
        _check_ends(table, {each.type: each.count for each in nodes})
    order, in_place = _order([table.features.get(PLACE) for table in nodes], sum(table.count for table in nodes))
    rows, _ = _order([table.features.get(PLACE) for table in edges] if in_place else [], 0, edges)
    ends = [table.ends + np.array([starts[table.type[0]], starts[table.type[2]]]) for table in edges]
    number = np.argsort(order)
    labels = [table.type for table in nodes for _ in range(table.count)]
    relations = [table.type[1] for table in edges for _ in range(len(table.ends))]
    relations = [relations[row] for row in rows.tolist()]
    every = np.concatenate([np.zeros((0, 2), dtype=np.int64), *ends])
    sizes = [(table.type, table.count, table.features) for table in nodes]
    links = [(str(table.type), len(table.ends), table.features) for table in edges]
    return {
        "nodes": tuple(labels[i] for i in order.tolist()),
        "edges": number[every[rows]],
        "relations": tuple(relations) if set(relations) - {blank} else (),
        "features": {
            **{name: value[order] for name, value in _features(sizes, widths).items()},
            **{name: value[rows] for name, value in _features(links, widths).items()},
        },
    }


def placed(nodes: Sequence[NodeTable]) -> bool:
    """Whether the tables have the index of each node."""
    return _order([table.features.get(PLACE) for table in nodes], sum(table.count for table in nodes))[1]


def _features(parts: Sequence[tuple[str, int, Arrays]], widths: Widths) -> dict[str, NDArray[Any]]:
    """Each feature as one array over all tables, given as (type, rows, features)."""
    names = dict.fromkeys(name for _, _, features in parts for name in features if name != PLACE)
    return {name: _one(name, parts, widths) for name in names}


def _one(name: str, parts: Sequence[tuple[str, int, Arrays]], widths: Widths) -> NDArray[Any]:
    """One array of a feature over all tables, some of which may lack it.

    Arrays of the same shape are concatenated. Otherwise ``pad`` pads rows with zeros at the end, up to the widest;
    ``blocks`` gives each type separate columns, zero in the rows of other types: a linear map of all columns is then a
    linear map per type.
    """
    parts = [part for part in parts if part[1]] or parts
    found = [features.get(name) for _, _, features in parts]
    arrays = [value for value in found if value is not None]
    if len(arrays) == len(parts) and len({value.shape[1:] for value in arrays}) == 1:
        return np.concatenate(arrays)
    if widths == "error":
        shapes = ", ".join(
            f"{kind} {'none' if value is None else value.shape}"
            for (kind, _, _), value in zip(parts, found, strict=True)
        )
        raise ConversionError(
            f"feature {name!r} has different shapes in different types ({shapes}); give widths='pad' to pad with zeros "
            "up to the widest, widths='blocks' for separate columns for each type, or features= to leave it out"
        )
    if any(value.ndim > 2 for value in arrays):
        raise ConversionError(f"feature {name!r} has more than two axes, so its widths cannot be made the same")
    blocks = [value.reshape(len(value), math.prod(value.shape[1:])) for value in arrays]
    width = sum(block.shape[1] for block in blocks) if widths == "blocks" else max(block.shape[1] for block in blocks)
    filled, row, column = np.zeros((sum(p[1] for p in parts), width), np.result_type(*arrays)), 0, 0
    remaining = iter(blocks)
    for (_, rows, _), value in zip(parts, found, strict=True):
        if value is not None:
            block = next(remaining)
            filled[row : row + rows, column : column + block.shape[1]] = block
            column += block.shape[1] if widths == "blocks" else 0
        row += rows
    return filled


def _order(places: Sequence[NDArray[Any] | None], count: int, edges: Sequence[EdgeTable] = ()) -> tuple[Ids, bool]:
    """Rows in the order of their places, without reverses of edges; in the given order if some have no place."""
    total = sum(len(table.ends) for table in edges) if edges else count
    known = [place for place in places if place is not None and place.ndim == 1 and place.dtype.kind in "iu"]
    if not known or len(known) < len(places):
        return np.arange(total), False
    every = np.concatenate(known)
    if edges:
        kept = np.flatnonzero(every % 2 == 0)
        return kept[np.argsort(every[kept], kind="stable")], True
    if not np.array_equal(np.sort(every), np.arange(total)):
        return np.arange(total), False
    return np.argsort(every), True


def _check(structure: Structure, blank: str) -> None:
    if "" in structure.nodes:
        node = structure.nodes.index("")
        raise ConversionError(f"node {node} has an empty label; types of nodes are labels, so give it one")
    if "" in structure.relations:
        edge = structure.relations.index("")
        raise ConversionError(f"edge {edge} has an empty relation, but others have one; give it one, or none to any")
    if structure.relations and set(structure.relations) == {blank}:
        raise ConversionError(f"all relations are {blank!r}, which means that there are none; rename or remove them")
    if {PLACE, f"edge_{PLACE}"} & set(structure.features):
        raise ConversionError(f"the name of feature {PLACE!r} is used for indices of nodes and edges; rename it")


def _check_ends(table: EdgeTable, counts: Mapping[str, int]) -> None:
    for column, type_ in enumerate((table.type[0], table.type[2])):
        wrong = np.flatnonzero((table.ends[:, column] < 0) | (table.ends[:, column] >= counts[type_]))
        if len(wrong):
            raise ConversionError(
                f"edge {wrong[0]} of {table.type} names node {table.ends[wrong[0], column]} of {type_!r}, which has "
                f"{counts[type_]}, numbered from 0"
            )


def _of_edge(name: str) -> bool:
    return name.startswith("edge_")


def as_numbers(texts: Sequence[str], vocabulary: Sequence[str] | None, what: str) -> NDArray[Any]:
    """(n,) int64, the index of each text in the vocabulary; without one (n, longest) uint8, UTF-8 padded with zeros.

    Raises:
        ConversionError: a text is not in the vocabulary, or has a zero byte.
    """
    if vocabulary is not None:
        number = {text: place for place, text in enumerate(vocabulary)}
        if lacking := [text for text in texts if text not in number]:
            raise ConversionError(f"{what} {lacking[0]!r} is not in the vocabulary that was given; add it")
        return np.array([number[text] for text in texts], dtype=np.int64)
    coded = [text.encode("utf-8", "surrogatepass") for text in texts]
    if wrong := [text for text in texts if "\0" in text]:
        raise ConversionError(f"{what} {wrong[0]!r} holds a zero byte, which marks the end of a text; remove it")
    longest = max(map(len, coded), default=0)
    return np.array([list(code.ljust(longest, b"\0")) for code in coded], dtype=np.uint8).reshape(len(coded), longest)


def as_texts(numbers: NDArray[Any], vocabulary: Sequence[str] | None, what: str) -> tuple[str, ...]:
    """The inverse of :func:`as_numbers`.

    Raises:
        ConversionError: there are numbers without a vocabulary or out of its range, or bytes that are not UTF-8.
    """
    if numbers.dtype == np.uint8 and numbers.ndim == 2:
        try:
            return tuple(row.tobytes().rstrip(b"\0").decode("utf-8", "surrogatepass") for row in numbers)
        except UnicodeDecodeError:
            raise ConversionError(f"the rows of {what} are not UTF-8") from None
    if numbers.dtype.kind not in "iu" or numbers.ndim != 1:
        raise ConversionError(f"{what} has dtype {numbers.dtype} and shape {numbers.shape}; give one number for each")
    if vocabulary is None:
        raise ConversionError(f"{what} numbers texts of a vocabulary; give it")
    if len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < len(vocabulary):
        low, high = int(numbers.min()), int(numbers.max())
        raise ConversionError(f"{what} is {low} to {high}; the vocabulary that was given has {len(vocabulary)} texts")
    return tuple(vocabulary[number] for number in numbers.tolist())
