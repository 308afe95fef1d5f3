"""networkx graphs: labels, relations and features are attributes of nodes and edges.

| structure | graph |
|---|---|
| nodes | nodes 0..n-1 in this order, ``label`` |
| edges, relations | edges of a multigraph, with their index as key; ``relation`` if there are any |
| order, units, features | attributes ``order``, ``units`` (a list), and the name of the feature |
| root, name | attributes ``root``, ``name`` of the graph |

The inverse restores the structure, but may reverse an undirected edge. Attributes of other graphs are kept if every
node (or edge) has a number, a boolean or an array of the same shape under that name, since the features of a structure
are arrays; other attributes are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from structpe.converters.base import ConversionError, add_converter
from structpe.structure import Structure

if TYPE_CHECKING:
    import networkx

__all__ = ["from_networkx", "to_networkx"]

OWN = ("order", "units")


def from_networkx(graph: Any, label: str = "label", relation: str = "relation") -> Structure:
    """The structure of a networkx graph, directed or not, with parallel edges or not.

    Args:
        graph: nodes may be any objects; their order is that of the graph.
        label: attribute of nodes with their label; a node without it is labelled by ``str`` of the node.
        relation: attribute of edges with their relation. If no edge has it, there are no relations; if some have it,
            those of the others are empty.

    Raises:
        ConversionError: only some nodes have an ``order`` or ``units``.
        StructureError: there is no node, or the attributes are invalid for a structure.
    """
    number = {node: place for place, node in enumerate(graph.nodes)}
    rows = list(graph.nodes(data=True))
    links = _edges(graph)
    order, units = _of_all(rows, "order"), _of_all(rows, "units")
    related = any(relation in data for *_, data in links)
    root = graph.graph.get("root")
    features = {
        **_features([data for _, data in rows], (*OWN, label), ""),
        **_features([data for *_, data in links], (relation,), "edge_"),
        **({} if links else {name: value for name, value in graph.graph.items() if name.startswith("edge_")}),
    }
    return Structure(
        tuple(str(data.get(label, node)) for node, data in rows),
        np.array([(number[source], number[target]) for source, target, _ in links], dtype=np.int64).reshape(-1, 2),
        tuple(str(data.get(relation, "")) for *_, data in links) if related else (),
        directed=graph.is_directed(),
        order=None if order is None else np.array(order),
        root=None if root is None else number.get(root, root),
        units=None if units is None else tuple(unit for own in units for unit in own),
        owner=None if units is None else np.repeat(np.arange(len(units)), [len(own) for own in units]),
        features=features,
        name=str(graph.graph.get("name", "")),
    )


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
    if not len(structure.edges):  # no edge can store them
        graph.graph.update({name: value for name, value in structure.features.items() if name.startswith("edge_")})
    edge = {name: np.asarray(value) for name, value in structure.features.items() if name.startswith("edge_")}
    node = {name: np.asarray(value) for name, value in structure.features.items() if name not in edge}
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


def _edges(graph: Any) -> list[tuple[Any, Any, dict[str, Any]]]:
    """Source, target and attributes; in the order of the keys if these number all edges."""
    if not graph.is_multigraph():
        return list(graph.edges(data=True))
    links = list(graph.edges(keys=True, data=True))
    keys = [key for _, _, key, _ in links]
    if set(keys) == set(range(len(links))) and len(set(keys)) == len(keys):
        links.sort(key=lambda link: int(link[2]))
    return [(source, target, data) for source, target, _, data in links]


def _of_all(rows: Sequence[tuple[Any, dict[str, Any]]], name: str) -> list[Any] | None:
    """An attribute of all nodes; None if no node has it."""
    having = [data[name] for _, data in rows if name in data]
    if having and len(having) < len(rows):
        lacking = next(node for node, data in rows if name not in data)
        raise ConversionError(f"node {lacking!r} has no {name!r}, but others have; give it to all nodes, or to none")
    return having or None


def _features(rows: Sequence[dict[str, Any]], own: Sequence[str], prefix: str) -> dict[str, NDArray[Any]]:
    """Attributes that can be stacked into arrays."""
    names = [name for name in (rows[0] if rows else ()) if name not in own and all(name in row for row in rows)]
    found = {}
    for name in names:
        try:
            array = np.array([row[name] for row in rows])
        except ValueError:  # rows of different shapes
            continue
        if array.dtype.kind in "biuf":
            found[prefix + str(name)] = array
    return found


add_converter("networkx", "networkx.Graph", "a graph with attributes, and back", from_networkx, to_networkx)
