"""The offset between two siblings of a tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from structpe.encodings._nearby import ranks_of_all
from structpe.encodings._trees import Forest, branches
from structpe.encodings._units import within
from structpe.encodings.base import UNREACHABLE, Column, Encoded, Encoding, check_all_pairs, check_limit
from structpe.structure import Structure

__all__ = ["SiblingDistance"]


@dataclass(frozen=True)
class SiblingDistance(Encoding, name="sibling-distance"):
    """b: how many places the key's node is after the query's among the children of their parent; negative if before.

    (Zuegner et al. 2021.) Children are counted in reading order if the structure has one, else by node number::

        b_ts = place(s) - place(t)    if t and s have the same parent, or are one node
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
        order = ranks_of_all(structures)
        place = branches(forest.parent, order)
        result = []
        for structure, start in zip(structures, forest.start, strict=False):
            parent, mine = (of_all[start : start + structure.size] for of_all in (forest.parent, place))
            after = mine[None, :] - mine[:, None]
            together = parent[:, None] == parent[None, :]
            if self.limit is not None:
                together &= np.abs(after) <= self.limit
            result.append(Encoded.of_pairs(within(structure, np.where(together, after, UNREACHABLE))))
        return Column.of(result)
