"""How far a node of a tree is above or below another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from structpe.encodings._integers import column_of_integers
from structpe.encodings._trees import Forest
from structpe.encodings.base import Column, Encoded, Encoding, check_limit
from structpe.structure import Structure

__all__ = ["AncestorDistance"]


@dataclass(frozen=True)
class AncestorDistance(Encoding, name="ancestor-distance"):
    """How far a node of a tree is above or below another.

    a: number of generations of the key's node below the query's, negative if it is above (Zuegner et al. 2021).

    ::

        a_ts = depth(s) - depth(t)    if one of t and s is an ancestor of the other, or both are one node
               WITHIN + k             if they are units of one node, s the k-th after t, k != 0
               UNREACHABLE            otherwise

    The authors' code numbers nodes depth first, and has 10,000 and -10,000 for pairs that are UNREACHABLE here.

    Args:
        limit: pairs at a larger distance are UNREACHABLE too; None for no limit.

    Raises:
        EncodingError: the structure is not a tree whose edges lead away from its root.
    """

    arity = 2
    causal = True
    codes = ("unreachable", "within")

    limit: int | None = None

    def __post_init__(self) -> None:
        check_limit(self, self.limit)

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        forest = Forest.of(self, structures, numbers=1)
        graphs, most = forest.graphs, forest.deepest if self.limit is None else self.limit
        dtype = np.min_scalar_type(-forest.deepest - 2)
        ways = graphs.ways
        below = ways.down.astype(dtype) - ways.up.astype(dtype)
        np.copyto(below, np.iinfo(dtype).max, where=~ways.related | (np.abs(below) > most))
        return column_of_integers(graphs, below)
