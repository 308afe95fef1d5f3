"""Adjacency: whether an edge joins the nodes of two units, and in which direction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from structpe.encodings._units import within
from structpe.encodings.base import Encoded, Encoding, check_all_pairs
from structpe.structure import Structure

__all__ = ["Adjacency"]

_SELF = 4


@dataclass(frozen=True)
class Adjacency(Encoding, name="adjacency"):
    """a_ts: which edges join the nodes of query t and key s.

    ::

        a_ts = WITHIN + k    t and s belong to one node, s being its k-th unit after t, k != 0
               4             t is s, with or without a self-loop
               3             edges in both directions, or an undirected edge
               2             an edge leads s -> t
               1             an edge leads t -> s
               0             no edge

    Parallel edges count as one. A mask of neighbours, as in message passing or in Dwivedi & Bresson 2020, is a != 0.
    """

    arity = 2
    causal = True
    codes = ("within",)

    def one(self, structure: Structure) -> Encoded:
        check_all_pairs(self, [structure])
        there = structure.adjacency() > 0
        nodes = there + 2 * there.T.astype(np.int64)
        np.fill_diagonal(nodes, _SELF)
        return Encoded.of_pairs(within(structure, nodes))
