"""Some nodes of a graph, with edges among them, as a graph of their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from structpe.structure import Ids, Structure

__all__ = ["subgraph"]


def subgraph(structure: Structure, nodes: Ids, edges: Ids | None = None) -> Structure:
    """Some nodes, numbered in the order in which they are given, and edges among them.

    Labels, relations and features go along. Reading order goes on over the nodes that are left, and the root stays the
    root if it is among them.

    Args:
        structure: the whole graph.
        nodes: numbers of nodes, each once.
        edges: numbers of edges, both of whose ends are among the nodes; None for all such edges.

    Raises:
        StructureError: the graph has units, there is no node or one is given twice, or an edge has an end elsewhere.
    """
    if structure.units is not None:
        raise structure.error("nodes are split into units already; take the subgraph first, then split")
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
