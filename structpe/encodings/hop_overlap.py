"""Overlaps of neighbourhoods: how many nodes are near both of two nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from structpe.encodings._graphs import Graphs
from structpe.encodings._own_values import OwnValues
from structpe.encodings._parts import squares
from structpe.encodings.base import Column, Encoded, Encoding, check_all_pairs, check_sizes
from structpe.structure import Structure

__all__ = ["HopOverlap"]


@dataclass(frozen=True)
class HopOverlap(Encoding, name="hop-overlap"):
    """Overlaps of neighbourhoods: how many nodes are near both of two nodes.

    [|N_k(t) and N_l(s)| for k = 1..hops for l = 1..hops] of query t and key s: values (r, hops^2), float64.

    N_k(t) are the nodes at most k edges from the node of t, itself among them; edges have no direction. (The feature of
    GIST, "Graph Invariant Structural Trait", as its abstract says it; no code by its authors is known. They estimate
    the numbers by random sketches, here they are exact.) A position model of vectors per pair, such as ``mlp-bias``,
    makes a bias of it. Pairs whose neighbourhoods do not meet share a row of zeros, each other pair has its own.

    Args:
        hops: the largest k and l.

    Raises:
        EncodingError: more than 20,000 / hops nodes.
    """

    arity = 2
    real = True

    hops: int = 3

    def __post_init__(self) -> None:
        check_sizes(self, hops=self.hops)

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        check_all_pairs(self, structures, self.hops**2)
        graphs = Graphs.of(structures)
        found = OwnValues(graphs, np.zeros(self.hops**2))
        for members, linked in squares(graphs):
            n = linked.shape[1]
            step, near = np.maximum(linked, np.eye(n)), [np.eye(n)[None]]
            for _ in range(self.hops):
                near.append(np.minimum(step @ near[-1], 1))
            counts = [k @ el for k in near[1:] for el in near[1:]]  # they are symmetric
            values = np.stack(counts, axis=-1).reshape(len(members), n * n, -1)
            found.add(members, values, values[..., -1] > 0)
        return found.column()
