"""The same graph with another numbering of nodes, on which a property of the graph must not depend."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from structpe.structure import Structure, of_structures

__all__ = ["renumbered"]


@of_structures
def renumbered(graph: Structure, generator: np.random.Generator) -> Structure:
    """The same graph with its nodes renumbered and its edges in another order.

    Labels, relations, features, order and root are permuted accordingly. In an undirected graph some edges are
    also reversed.

    Raises:
        StructureError: the graph has units, whose owners are in the order of the nodes.
    """
    if graph.units is not None:
        raise graph.error("a graph with units cannot be renumbered; remove its units first (units=None, owner=None)")
    number = generator.permutation(graph.size)
    moved = generator.permutation(len(graph.edges))
    edges = number[graph.edges][moved]
    if not graph.directed:
        turned = generator.random(len(edges)) < 0.5
        edges = np.where(turned[:, None], edges[:, ::-1], edges)
    before = np.argsort(number)
    features = graph.features.items()
    return replace(
        graph,
        nodes=tuple(graph.nodes[i] for i in before),
        edges=edges,
        relations=tuple(graph.relations[i] for i in moved) if graph.relations else (),
        order=None if graph.order is None else graph.order[before],
        root=None if graph.root is None else int(number[graph.root]),
        features={name: value[moved if name.startswith("edge_") else before] for name, value in features},
    )
