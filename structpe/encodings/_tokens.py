"""Nodes and edges as tokens: the two nodes of each token."""

from __future__ import annotations

import numpy as np

from structpe.encodings._nearby import ranks
from structpe.encodings.base import Encoding, flags
from structpe.structure import Ids, Structure

__all__ = ["endpoints"]


def endpoints(encoding: Encoding, structure: Structure) -> tuple[Ids, Ids, Ids]:
    """The graph whose nodes and edges are the tokens of a structure, see :func:`structpe.transforms.edge_tokens`.

    Without the feature ``is_edge``, all tokens are nodes, and the edges are unchanged.

    Returns:
        (m,) the tokens that are nodes, in reading order; (n, 2) index of source and target of each token among these,
        twice the same for a node; (e, 2) the edges between these.

    Raises:
        EncodingError: a token of an edge does not have one source and one target.
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
                "a node with the feature 'is_edge' is an edge between two nodes, so it needs one edge from a node and "
                "one to a node; make them with structpe.transforms.edge_tokens",
            )
        ends[rows[:, token], column] = place[rows[:, far]]
    return nodes, ends, ends[tokens]
