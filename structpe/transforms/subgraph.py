"""Some nodes of a graph, with edges between them, as a separate graph."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from structpe.structure import Ids, Structure, of_structures

__all__ = ["subgraph"]


@of_structures
def subgraph(structure: Structure, nodes: Ids, edges: Ids | None = None) -> Structure:
    """Some nodes, numbered in the given order, and edges between them.

    Labels, relations and features are kept. The remaining nodes keep their reading order, and the root, if it remains,
    stays the root.

    Args:
        structure: the whole graph.
        nodes: distinct numbers of nodes.
        edges: numbers of edges between these nodes; None for all such edges.

    Raises:
        StructureError: the graph has units, there is no node, a node is repeated, or an edge has another end.
    """
    if structure.units is not None:
        raise structure.error("nodes are already split into units; take the subgraph first, then split")
    nodes = np.asarray(nodes, dtype=np.int64)
    place = np.full(structure.size, -1)
    place[nodes] = np.arange(len(nodes))
    if not len(nodes) or not np.array_equal(place[nodes], np.arange(len(nodes))):
        raise structure.error("a subgraph needs one node at least, and each of its nodes once")
    ends = place[structure.edges]
    kept = np.flatnonzero((ends >= 0).all(axis=1)) if edges is None else np.asarray(edges, dtype=np.int64)
    if (ends[kept] < 0).any():
        raise structure.error("an edge of a subgraph has an end that is not among its nodes; leave such edges out")
    features = structure.features.items()
    return replace(
        structure,
        nodes=tuple(structure.nodes[node] for node in nodes.tolist()),
        edges=ends[kept],
        relations=tuple(structure.relations[edge] for edge in kept.tolist()) if structure.relations else (),
        order=None if structure.order is None else np.argsort(np.argsort(structure.order[nodes])),
        root=None if structure.root is None or place[structure.root] < 0 else int(place[structure.root]),
        features={name: value[kept if name.startswith("edge_") else nodes] for name, value in features},
    )
