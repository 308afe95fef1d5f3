"""Nodes and edges as tokens: which two nodes a token stands for."""

from __future__ import annotations

import numpy as np

from structpe.encodings._nearby import ranks
from structpe.encodings.base import Encoding, flags
from structpe.structure import Ids, Structure

__all__ = ["endpoints"]


def endpoints(encoding: Encoding, structure: Structure) -> tuple[Ids, Ids, Ids]:
    """The graph whose nodes and edges the nodes of a structure are: see :func:`structpe.transforms.edge_tokens`.

    Without the feature ``is_edge`` all of them are nodes, and the edges are as they are.

    Returns:
        (m,) the nodes that are nodes, in reading order; (n, 2) places among these of source and target of each token,
        the same twice for a node; (e, 2) the edges among these.

    Raises:
        EncodingError: a token for an edge has not one source and one target.
    """
    tokens = flags(encoding, structure, "is_edge")
    nodes = np.flatnonzero(~tokens)
    nodes = nodes[np.argsort(ranks(structure)[nodes])]
    place = np.full(structure.size, -1)
    place[nodes] = np.arange(len(nodes))
    ends = np.stack([place, place], axis=1)
    if not tokens.any():
        return nodes, ends, place[structure.edges]
    for column, (far, token) in enumerate(((0, 1), (1, 0))):
        rows = structure.edges[tokens[structure.edges[:, token]]]
        if sorted(rows[:, token].tolist()) != np.flatnonzero(tokens).tolist() or (place[rows[:, far]] < 0).any():
            raise encoding.error(
                structure,
                "a node with the feature 'is_edge' is an edge between two nodes, so that it needs one edge from a node "
                "and one to a node; make them with structpe.transforms.edge_tokens",
            )
        ends[rows[:, token], column] = place[rows[:, far]]
    return nodes, ends, ends[tokens]
