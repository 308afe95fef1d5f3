"""networkx graphs: labels, relations and features are attributes of nodes and edges.

| structure | graph |
|---|---|
| nodes | nodes 0..n-1 in this order, ``label`` |
| edges, relations | edges of a multigraph, with their index as key; ``relation`` if there are any |
| order, units, features | attributes ``order``, ``units`` (a list), and the name of the feature |
| root, name | attributes ``root``, ``name`` of the graph |

The inverse restores the structure, but may reverse an undirected edge. Attributes of nodes and edges of other graphs
are kept if they are numbers, booleans or arrays of the same shape, since the features of a structure are arrays; all
nodes (or edges) must have them. A warning names others, such as texts, which are left out. An attribute that is None or
NaN is missing. Other attributes of the graph itself are not part of a structure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from structpe.converters._networkx import OWN, from_networkx
from structpe.converters.base import ConversionError, add_converter
from structpe.structure import Structure

if TYPE_CHECKING:
    import networkx

__all__ = ["from_networkx", "to_networkx"]


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


add_converter("networkx", "networkx.Graph", "a graph with attributes, and back", from_networkx, to_networkx)
