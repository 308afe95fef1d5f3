"""How far a node of a tree is above or below another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from structpe.encodings._trees import Forest, depths
from structpe.encodings._units import within
from structpe.encodings.base import UNREACHABLE, Column, Encoded, Encoding, check_all_pairs, check_limit
from structpe.structure import Structure

__all__ = ["AncestorDistance"]


@dataclass(frozen=True)
class AncestorDistance(Encoding, name="ancestor-distance"):
    """a: number of generations of the key's node below the query's, negative if it is above (Zuegner et al. 2021).

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
        check_all_pairs(self, structures)
        forest = Forest.of(self, structures)
        depth = depths(forest.parent)
        above = forest.ancestors(depth)
        result = []
        for structure, start in zip(structures, forest.start, strict=False):
            rows = slice(start, start + structure.size)
            mine, up = depth[rows], above[rows, : structure.size]
            below = mine[None, :] - mine[:, None]
            related = up | up.T
            if self.limit is not None:
                related &= np.abs(below) <= self.limit
            result.append(Encoded.of_pairs(within(structure, np.where(related, below, UNREACHABLE))))
        return Column.of(result)
