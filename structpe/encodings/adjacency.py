"""Adjacency: whether an edge joins the nodes of two units, and in which direction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from structpe.encodings._graphs import Graphs
from structpe.encodings._links import links
from structpe.encodings.base import WITHIN, Column, Encoded, Encoding, check_all_pairs
from structpe.structure import Structure

__all__ = ["Adjacency"]

_SELF = 4


@dataclass(frozen=True)
class Adjacency(Encoding, name="adjacency"):
    """Adjacency: whether an edge joins the nodes of two units, and in which direction.

    a_ts: which edges join the nodes of query t and key s.

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
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        check_all_pairs(self, structures)
        graphs = Graphs.of(structures)
        places, offsets = graphs.inside()
        inner, which = np.unique(offsets, return_inverse=True)
        index = np.zeros(int(graphs.pair_start[-1]), dtype=np.min_scalar_type(_SELF + len(inner)))
        first, second, directions = links(graphs)
        index[graphs.pairs_at(first, second)] = directions
        nodes = np.arange(int(graphs.start[-1]))
        index[graphs.pairs_at(nodes, nodes)] = _SELF
        of_units = graphs.pairs_of_units(index)
        of_units[places] = _SELF + 1 + which
        return Column.of_pairs(graphs.units, np.concatenate([np.arange(_SELF + 1), WITHIN + inner]), of_units)
