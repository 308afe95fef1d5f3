"""The offset between two siblings of a tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from structpe.encodings._flat import ranges
from structpe.encodings._integers import column_of_integers
from structpe.encodings._nearby import ranks_of_all
from structpe.encodings._trees import Forest, by_parent
from structpe.encodings.base import Column, Encoded, Encoding, check_limit
from structpe.structure import Structure

__all__ = ["SiblingDistance"]


@dataclass(frozen=True)
class SiblingDistance(Encoding, name="sibling-distance"):
    """The offset between two siblings of a tree.

    b: how many places the key's node is after the query's among the children of their parent; negative if before.

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
        forest = Forest.of(self, structures, numbers=1)
        graphs, parent = forest.graphs, forest.parent
        nodes = by_parent(parent, ranks_of_all(structures))
        # Roots, which come first, are alone; others stand beside those with the same parent.
        family = np.where(parent[nodes] < 0, -1 - np.arange(len(nodes)), parent[nodes])
        ends = np.append(np.flatnonzero(np.diff(family)) + 1, len(nodes))
        first = np.repeat(np.append(0, ends[:-1]), count := np.diff(ends, prepend=0))
        key = ranges(first, np.repeat(count, count))
        query = np.repeat(np.arange(len(nodes)), np.repeat(count, count))
        after, most = key - query, int(count.max(initial=1)) if self.limit is None else self.limit
        near = np.abs(after) <= most
        pairs = np.empty(int(graphs.pair_start[-1]), dtype=np.min_scalar_type(-int(count.max(initial=1)) - 1))
        pairs.fill(np.iinfo(pairs.dtype).max)
        pairs[graphs.pairs_at(nodes[query[near]], nodes[key[near]])] = after[near]
        return column_of_integers(graphs, pairs)
