"""Two-dimensional positions in trees: for each node on the path from the root, its index and number of siblings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from structpe.encodings._nearby import ranks_of_all
from structpe.encodings._trees import Forest, branches
from structpe.encodings.base import Column, Encoded, Encoding, check_sizes
from structpe.structure import Ids, Structure

__all__ = ["ChildPath", "ParentChild"]


@dataclass(frozen=True)
class ChildPath(Encoding, name="child-path"):
    """Two-dimensional positions in trees: on the path from the root, the index and number of siblings.

    [id(root), ..., id(parent of u), id(u), 0, ...], int64 (depth): the path from the root to a unit's node.

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
        level = forest.depth
        paths = np.zeros((len(ids), self.depth), dtype=np.int64)
        nodes = np.arange(len(ids))
        at = np.where(level >= self.depth, forest.parent, nodes)
        while (level[at] >= self.depth).any():  # each round doubles the step
            at = at[at]
        while len(nodes):
            paths[nodes, level[at]] = ids[at]
            below = forest.parent[at] >= 0
            nodes, at = nodes[below], forest.parent[at[below]]
        return Column.of_units(forest.graphs.units, forest.graphs.of_units(paths))


@dataclass(frozen=True)
class ParentChild(Encoding, name="parent-child"):
    """Two-dimensional positions in trees, of a parent and its child.

    id(s) if the key's node is a child of the query's, -id(t) if it is its parent, else 0.

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
        forest, ids = _ids(self, structures, self.width, numbers=1)
        graphs, parent = forest.graphs, forest.parent
        child = np.flatnonzero(parent >= 0)
        values, which = np.unique(np.concatenate([[0], ids[child], -ids[child]]), return_inverse=True)
        index = np.empty(int(graphs.pair_start[-1]), dtype=np.min_scalar_type(len(values)))
        index.fill(which[0])
        index[graphs.pairs_at(parent[child], child)] = which[1 : len(child) + 1]
        index[graphs.pairs_at(child, parent[child])] = which[len(child) + 1 :]
        return Column.of_pairs(graphs.units, values, graphs.pairs_of_units(index))


def _ids(encoding: Encoding, structures: Sequence[Structure], width: int, numbers: int = 0) -> tuple[Forest, Ids]:
    forest = Forest.of(encoding, structures, numbers)
    parent = forest.parent
    order = ranks_of_all(structures)
    children = np.bincount(parent[parent >= 0], minlength=len(parent))
    which = np.minimum(branches(parent, order) + 1, width)
    siblings = np.minimum(np.where(parent >= 0, children[parent], 1), width)
    return forest, which + siblings * (siblings - 1) // 2
