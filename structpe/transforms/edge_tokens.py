"""Nodes and edges as tokens: a graph as a set of tokens."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from structpe.structure import Ids, Structure, of_structures

__all__ = ["edge_tokens"]


@of_structures
def edge_tokens(structure: Structure) -> Structure:
    """The graph with an additional node for each edge, labelled by its relation, between its ends (Kim et al. 2022).

    Nodes keep their numbers; the edges follow, marked by the feature ``is_edge``. An undirected edge becomes two nodes,
    one per direction (a self-loop one), as for molecules in the authors' code. An edge source -> target becomes the
    edges source -> token -> target, which determine the two nodes of a token. Edges without a relation have the label
    "". If there is an order, the edges are read after all nodes, in the order of source and target. Other features of
    nodes are 0 for the edges; features of edges are left out.

    Raises:
        StructureError: units are already split; split after this.
    """
    if structure.units is not None:
        raise structure.error("the nodes are already split into units; make the edges tokens first, then split")
    pairs, which = _both_ways(structure)
    n, e = structure.size, len(pairs)
    tokens = np.arange(n, n + e)
    features = {
        key: np.concatenate([np.asarray(value), np.zeros((e, *np.shape(value)[1:]), dtype=np.asarray(value).dtype)])
        for key, value in structure.features.items()
        if not key.startswith("edge_")
    }
    return replace(
        structure,
        nodes=structure.nodes + tuple(structure.relation(edge) for edge in which),
        edges=np.stack([pairs[:, 0], tokens, tokens, pairs[:, 1]], axis=1).reshape(-1, 2),
        relations=(),
        directed=True,
        order=None if structure.order is None else np.concatenate([structure.order, n + _rank(structure.order, pairs)]),
        features={**features, "is_edge": np.arange(n + e) >= n},
    )


def _both_ways(structure: Structure) -> tuple[Ids, Ids]:
    """(e, 2) source and target of each token, and (e,) the number of its edge."""
    which = np.arange(len(structure.edges))
    if structure.directed:
        return structure.edges, which
    apart = structure.edges[:, 0] != structure.edges[:, 1]
    both = np.concatenate([structure.edges, structure.edges[apart][:, ::-1]])
    return both, np.concatenate([which, which[apart]])


def _rank(order: Ids, pairs: Ids) -> Ids:
    """(e,) rank of each edge by the order of its source, then of its target; parallel ones as they are stored."""
    sequence = np.lexsort((order[pairs[:, 1]], order[pairs[:, 0]]))
    return np.argsort(sequence)
