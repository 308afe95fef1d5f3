"""Two-dimensional positions in trees: for each node on the path from the root, its index and number of siblings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from structpe.encodings._nearby import ranks_of_all
from structpe.encodings._trees import Forest, branches, depths
from structpe.encodings._units import of_units
from structpe.encodings.base import Column, Encoded, Encoding, check_all_pairs, check_sizes
from structpe.structure import Ids, Structure

__all__ = ["ChildPath", "ParentChild"]


@dataclass(frozen=True)
class ChildPath(Encoding, name="child-path"):
    """[id(root), ..., id(parent of u), id(u), 0, ...], int64 (depth): the path from the root to a unit's node.

    The i-th of n siblings, i from 1, has id(u) = i + n(n - 1)/2, which is unique for each pair (i, n); the root is the
    first of one. i and n are at most ``width``. (Peng et al. 2022, section 3.2.) Children are counted in reading order
    if the structure has one, else by node number. Longer paths keep the steps next to the root, as in the authors'
    code. All units of a node have its path.

    Args:
        depth: number of steps kept.
        width: largest number of siblings that are distinguished.

    Raises:
        EncodingError: the structure is not a tree whose edges lead away from its root; depth or width is below 1.
    """

    arity = 1

    depth: int = 16
    width: int = 16

    def __post_init__(self) -> None:
        check_sizes(self, depth=self.depth, width=self.width)

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        forest, ids = _ids(self, structures, self.width)
        level = depths(forest.parent)
        paths = np.zeros((len(ids), self.depth), dtype=np.int64)
        nodes = np.arange(len(ids))
        at = np.where(level >= self.depth, forest.parent, nodes)
        while (level[at] >= self.depth).any():  # each round doubles the step
            at = at[at]
        while len(nodes):
            paths[nodes, level[at]] = ids[at]
            below = forest.parent[at] >= 0
            nodes, at = nodes[below], forest.parent[at[below]]
        bounds = zip(forest.start, forest.start[1:], strict=False)
        return Column.of([Encoded(of_units(s, paths[a:b])) for s, (a, b) in zip(structures, bounds, strict=True)])


@dataclass(frozen=True)
class ParentChild(Encoding, name="parent-child"):
    """id(s) if the key's node is a child of the query's, -id(t) if it is its parent, else 0.

    id is that of :class:`ChildPath`. (Peng et al. 2022, section 3.3.) Units of one node have 0.

    Args:
        width: largest number of siblings that are distinguished.

    Raises:
        EncodingError: the structure is not a tree whose edges lead away from its root; the width is below 1.
    """

    arity = 2

    width: int = 16

    def __post_init__(self) -> None:
        check_sizes(self, width=self.width)

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        check_all_pairs(self, structures)
        forest, ids = _ids(self, structures, self.width)
        result = []
        for structure, start in zip(structures, forest.start, strict=False):
            n, owner = structure.size, structure.unit_owner
            parent, child = forest.parent[start : start + n] - start, np.arange(n)
            below = parent >= 0
            pairs = np.zeros((n, n), dtype=np.int64)
            pairs[parent[below], child[below]] = ids[start : start + n][below]
            pairs -= pairs.T
            result.append(Encoded.of_pairs(pairs[owner[:, None], owner[None, :]]))
        return Column.of(result)


def _ids(encoding: Encoding, structures: Sequence[Structure], width: int) -> tuple[Forest, Ids]:
    forest = Forest.of(encoding, structures)
    parent = forest.parent
    order = ranks_of_all(structures)
    children = np.bincount(parent[parent >= 0], minlength=len(parent))
    which = np.minimum(branches(parent, order) + 1, width)
    siblings = np.minimum(np.where(parent >= 0, children[parent], 1), width)
    return forest, which + siblings * (siblings - 1) // 2
