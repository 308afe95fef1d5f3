"""networkx graphs: labels, relations and features are attributes of nodes and edges.

| structure | graph |
|---|---|
| nodes | nodes 0..n-1 in this order, ``label`` |
| edges, relations | edges of a multigraph, with their index as key; ``relation`` if there are any |
| order, units, features | attributes ``order``, ``units`` (a list), and the name of the feature |
| root, name | attributes ``root``, ``name`` of the graph |

The inverse restores the structure, but may reverse an undirected edge. Of other graphs, attributes of nodes and edges
become features if they are numbers, booleans or arrays of one shape; all nodes (or edges) must have them. Others, such
as texts, are left out with a warning. None and NaN count as missing. Other attributes of the graph itself are ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from structpe.errors import listed
from structpe.formats.arrays import Names, of_edges_only
from structpe.formats.converting import ConversionError, add_converter
from structpe.formats.text import is_missing, present, warn_left_out
from structpe.structure import Structure

if TYPE_CHECKING:
    import networkx

__all__ = ["OWN", "from_networkx", "to_networkx"]

OWN = ("order", "units")
Rows = Sequence[tuple[Any, dict[Any, Any]]]
"""Nodes or edges (their two nodes), with the attributes of each."""


def from_networkx(graph: Any, label: str = "label", relation: str = "relation", features: Names = None) -> Structure:
    """The structure of a networkx graph, directed or not, with parallel edges or not.

    Args:
        graph: nodes may be any objects; they keep their order.
        label: attribute of nodes with their label; a node without it is labelled by ``str`` of the node.
        relation: attribute of edges with their relation. If no edge has it, there are no relations; if some have it,
            those of the others are empty.
        features: names of the attributes of nodes and edges to use; None: all that are numbers.

    Raises:
        ConversionError: no node (or edge) has the attribute that ``label``, ``relation`` or ``features`` names; only
            some have an ``order``, ``units`` or a number; the name of an attribute of nodes begins with ``edge_``, as
            those of features of edges do.
        StructureError: there is no node, or the attributes are invalid for a structure.
    """
    number = {node: place for place, node in enumerate(graph.nodes)}
    nodes = [(node, present(data)) for node, data in graph.nodes(data=True)]
    edges = [((source, target), present(data)) for source, target, data in _edges(graph)]
    _check_named("label", label, nodes)
    _check_named("relation", relation, edges)
    _check_features(features, [*nodes, *edges])
    order, units = (_of_all("node", nodes, name, "or to none") for name in OWN)
    if wrong := [own for own in units or () if not isinstance(own, (list, tuple))]:
        raise ConversionError(f"'units' of a node is {wrong[0]!r}; give the list of its units, or rename the attribute")
    related = any(relation in data for _, data in edges)
    root, name = graph.graph.get("root"), graph.graph.get("name")
    return Structure(
        tuple(str(data.get(label, node)) for node, data in nodes),
        np.array([(number[source], number[target]) for (source, target), _ in edges], dtype=np.int64).reshape(-1, 2),
        tuple(str(data.get(relation, "")) for _, data in edges) if related else (),
        directed=graph.is_directed(),
        order=None if order is None else np.array(order),
        root=None if root is None else number.get(root, root),
        units=None if units is None else tuple(unit for own in units for unit in own),
        owner=None if units is None else np.repeat(np.arange(len(units)), [len(own) for own in units]),
        features=_features(nodes, (*OWN, label), edges, (relation,), features) | _without_rows(graph.graph, edges),
        name="" if is_missing(name) else str(name),
    )


def _edges(graph: Any) -> list[tuple[Any, Any, dict[str, Any]]]:
    """Source, target and attributes; in the order of the keys if these number all edges."""
    if not graph.is_multigraph():
        return list(graph.edges(data=True))
    links = list(graph.edges(keys=True, data=True))
    keys = [key for _, _, key, _ in links]
    if set(keys) == set(range(len(links))) and len(set(keys)) == len(keys):
        links.sort(key=lambda link: int(link[2]))
    return [(source, target, data) for source, target, _, data in links]


def _check_named(option: str, name: str, rows: Rows) -> None:
    """Check that a name other than the default is the name of an attribute."""
    if name != option and rows and not any(name in data for _, data in rows):
        has = listed(dict.fromkeys(each for _, data in rows for each in data))
        raise ConversionError(f"{option} names {name!r}, which none of the {len(rows)} has; they have: {has}")


def _check_features(wanted: Names, rows: Rows) -> None:
    known = dict.fromkeys(name for _, data in rows for name in data)
    if lacking := [name for name in wanted or () if name not in known]:
        raise ConversionError(f"features names {lacking[0]!r}; attributes of nodes and edges are: {listed(known)}")


def _of_all(kind: str, rows: Rows, name: str, otherwise: str) -> list[Any] | None:
    """An attribute of all nodes or edges; None if none has it."""
    having = [data[name] for _, data in rows if name in data]
    if having and len(having) < len(rows):
        lacking = next(each for each, data in rows if name not in data)
        raise ConversionError(f"{kind} {lacking!r} has no {name!r}, but others do; give it to all {kind}s, {otherwise}")
    return having or None


def _features(
    nodes: Rows, of_nodes: Sequence[str], edges: Rows, of_edges: Sequence[str], wanted: Names
) -> dict[str, NDArray[Any]]:
    """Attributes that are numbers, as arrays; a warning names the others."""
    found: dict[str, NDArray[Any]] = {}
    others = []
    for kind, rows, own, prefix in (("node", nodes, of_nodes, ""), ("edge", edges, of_edges, "edge_")):
        for name in dict.fromkeys(name for _, data in rows for name in data):
            if name in own or (wanted is not None and name not in wanted):
                continue
            if (array := _stacked([data[name] for _, data in rows if name in data])) is None:
                others.append(repr(name))
                continue
            _of_all(kind, rows, name, "or leave it out by features=")
            if not prefix and str(name).startswith("edge_"):
                raise ConversionError(of_edges_only(name))
            found[f"{prefix}{name}"] = array
    warn_left_out(others, "label= or relation= makes labels of texts, features= says what to use")
    return found


def _stacked(values: Sequence[Any]) -> NDArray[Any] | None:
    """Numbers, booleans or arrays of the same shape as one array; None for anything else."""
    try:
        array = np.array(values)
    except (ValueError, OverflowError):  # of different shapes
        return None
    return array if array.dtype.kind in "biuf" else None


def _without_rows(given: dict[Any, Any], edges: Rows) -> dict[str, NDArray[Any]]:
    """Features of edges of a graph without edges, which the graph itself stores."""
    named = {} if edges else {name: value for name, value in given.items() if str(name).startswith("edge_")}
    return {name: value for name, value in named.items() if isinstance(value, np.ndarray)}


def to_networkx(structure: Structure) -> networkx.MultiGraph[int]:
    """The structure as a ``MultiDiGraph``, or a ``MultiGraph`` if it is undirected.

    Raises:
        ConversionError: networkx uses the name of a feature for something else.
    """
    import networkx  # a requirement of PyTorch, so it is installed

    if taken := sorted({"label", *OWN, "edge_relation"} & set(structure.features)):
        raise ConversionError(f"the feature {taken[0]!r} means something else as an attribute of networkx; rename it")
    kind = networkx.MultiDiGraph if structure.directed else networkx.MultiGraph
    graph: networkx.MultiGraph[int] = kind(name=structure.name)
    if structure.root is not None:
        graph.graph["root"] = int(structure.root)
    edge = {name: np.asarray(value) for name, value in structure.features.items() if name.startswith("edge_")}
    node = {name: np.asarray(value) for name, value in structure.features.items() if name not in edge}
    if not len(structure.edges):  # no edge can store them
        graph.graph.update(edge)
    for place, label in enumerate(structure.nodes):
        graph.add_node(place, label=label, **{name: value[place] for name, value in node.items()})
        if structure.order is not None:
            graph.nodes[place]["order"] = int(structure.order[place])
        if structure.units is not None:
            owned = np.flatnonzero(structure.unit_owner == place)
            graph.nodes[place]["units"] = [structure.units[unit] for unit in owned]
    for place, (source, target) in enumerate(structure.edges.tolist()):
        said = {"relation": structure.relations[place]} if structure.relations else {}
        own = {name.removeprefix("edge_"): value[place] for name, value in edge.items()}
        graph.add_edge(source, target, key=place, **said, **own)
    return graph


add_converter("networkx", "networkx.Graph", "a graph with attributes, and back", from_networkx, to_networkx)
