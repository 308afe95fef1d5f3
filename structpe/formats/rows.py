"""Mappings: rows of data sets with an ``edge_index``, and the fields of a structure by name.

See :mod:`structpe.formats.arrays` for what becomes of each column. A whole data set of Hugging Face, or a ``DataFrame``
with a column ``edge_index``, has a structure for each row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from structpe.formats.arrays import Names, from_mapping
from structpe.formats.converting import ConversionError, add_converter, of_rows
from structpe.formats.networkx import from_networkx
from structpe.formats.text import is_missing
from structpe.structure import Structure

__all__ = ["from_mapping", "from_mappings", "from_node_link"]


def from_mappings(
    rows: Iterable[Mapping[str, Any]], directed: bool | None = None, features: Names = None
) -> Iterator[Structure]:
    """The structure of each row; see :func:`from_mapping`."""
    return of_rows(rows, lambda row: from_mapping(row, directed, features))


def from_node_link(
    data: Mapping[str, Any], features: Names = None, label: str = "label", relation: str = "relation"
) -> Structure:
    """The structure of a graph in the node-link JSON of networkx and D3, as :func:`from_networkx` makes it.

    Args:
        data: ``nodes``, mappings with ``id`` and attributes; ``edges`` or ``links``, mappings with ``source``,
            ``target`` and attributes; and optionally ``directed``, ``multigraph``, and ``graph``, its own attributes.
        features, label, relation: as in :func:`from_networkx`.

    Raises:
        ConversionError: a node or edge lacks these, is named twice or unknown; or an error of :func:`from_networkx`.
    """
    import networkx

    kind: Any = networkx.MultiDiGraph if data.get("directed") else networkx.MultiGraph
    graph = kind(**(data.get("graph") or {}))
    if not isinstance(nodes := data.get("nodes"), (list, tuple)):
        raise ConversionError(f"'nodes' is {repr(nodes)[:80]}; give the list of nodes")
    for each in nodes:
        (node,), attributes = _taken(each, ("id",))
        if node in graph:
            raise ConversionError(f"two nodes have the id {node!r}; ids of nodes differ")
        graph.add_node(node, **attributes)
    key = "edges" if "edges" in data else "links"
    links = data.get(key) or ()
    if not isinstance(links, (list, tuple)):
        raise ConversionError(f"{key!r} is {repr(links)[:80]}; give the list of edges")
    for each in links:
        (source, target), attributes = _taken(each, ("source", "target"))
        if unknown := [end for end in (source, target) if end not in graph]:
            raise ConversionError(f"an edge names {unknown[0]!r}, but no node has this id; ids are texts or numbers")
        number = attributes.pop("key", None) if data.get("multigraph") else None
        graph.add_edges_from([(source, target, number, attributes)])
    return from_networkx(graph, label, relation, features)


def _taken(each: Any, names: tuple[str, ...]) -> tuple[list[Any], dict[str, Any]]:
    """Values by name, lists as tuples, and the other items of a mapping."""
    if not isinstance(each, Mapping) or (lacking := [name for name in names if is_missing(each.get(name))]):
        needed = lacking[0] if isinstance(each, Mapping) else names[0]
        raise ConversionError(f"a node or edge in node-link form has no {needed!r}: {repr(each)[:80]}; give it one")
    found = [tuple(each[name]) if isinstance(each[name], list) else each[name] for name in names]
    if wrong := [value for value in found if not _has_hash(value)]:
        raise ConversionError(f"the id {repr(wrong[0])[:80]} is not a text or number; give each node one")
    return found, {name: value for name, value in each.items() if name not in names}


def _has_hash(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:  # also of what a tuple holds
        return False
    return True


def _read(
    row: Mapping[str, Any], directed: bool | None = None, features: Names = None, name: str | None = None
) -> Structure:
    nodes = row.get("nodes")
    if not isinstance(nodes, (list, tuple)) or not any(isinstance(node, Mapping) for node in nodes):
        return from_mapping(row, directed, features, name)
    if directed is not None:
        raise ConversionError("'directed' is a key of a graph in node-link form, and not an option")
    found = from_node_link(row, features)
    return found if name is None else replace(found, name=name)


add_converter("rows", "builtins.dict", "rows of data sets with edge_index, fields of structures, node-link JSON", _read)
add_converter(
    "datasets",
    "datasets.Dataset datasets.IterableDataset",
    "data sets of Hugging Face with a column edge_index, row by row",
    from_mappings,
)
