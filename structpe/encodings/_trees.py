"""Concatenated rooted trees, so that one numpy call processes all of them.

The nodes of tree i are start[i] .. start[i+1]-1. Shapes: T nodes of all trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from structpe.encodings.base import Encoding
from structpe.errors import StructureError
from structpe.structure import Ids, Structure

__all__ = ["Forest", "branches", "depths", "starts"]


@dataclass(frozen=True, eq=False)
class Forest:
    """Concatenated trees.

    Attributes:
        parent: (T,) parent of each node, -1 for a root.
        start: (trees + 1,) the first node of each tree, and T.
    """

    parent: Ids
    start: Ids

    @classmethod
    def of(cls, encoding: Encoding, structures: Sequence[Structure]) -> Forest:
        """Concatenate the structures.

        Raises:
            EncodingError: a structure is not a tree whose edges lead away from its root.
        """
        start = starts(structures)
        parents = [_parents(encoding, s) for s in structures]
        shifted = [np.where(p >= 0, p + first, -1) for p, first in zip(parents, start, strict=False)]
        return cls(np.concatenate([*shifted, np.zeros(0, dtype=np.int64)]), start)

    def ancestors(self, depth: Ids) -> NDArray[np.bool_]:
        """(T, nodes of the largest tree) whether the w-th node of the same tree is the node or one of its ancestors."""
        sizes = np.diff(self.start)
        place = np.arange(len(self.parent)) - np.repeat(self.start[:-1], sizes)
        result = np.zeros((len(self.parent), int(sizes.max(initial=0))), dtype=np.bool_)
        result[np.arange(len(place)), place] = True
        by_depth = np.argsort(depth, kind="stable")
        for level in np.split(by_depth, np.cumsum(np.bincount(depth))[:-1])[1:]:
            result[level] |= result[self.parent[level]]
        return result


def branches(parent: Ids, order: Ids) -> Ids:
    """(T,) index of each node among the children of its parent, sorted by a rank (T,); 0 for a root."""
    by_parent = np.lexsort((order, parent))
    sorted_parent = parent[by_parent]
    first = np.searchsorted(sorted_parent, sorted_parent, side="left")
    branch = np.empty_like(parent)
    branch[by_parent] = np.arange(len(parent)) - first
    return np.where(parent >= 0, branch, 0)


def depths(parent: Ids) -> Ids:
    """(T,) number of edges to the root (parent -1), in log2(depth) rounds, each of which doubles the step."""
    jump, depth = parent, (parent >= 0).astype(np.int64)
    while (below := np.flatnonzero(jump >= 0)).size:
        depth = depth.copy()
        depth[below] += depth[jump[below]]
        jump = np.where(jump >= 0, jump[jump], -1)
    return depth


def starts(structures: Sequence[Structure]) -> Ids:
    """(structures + 1,) the first node of each structure when all nodes are numbered consecutively."""
    return np.cumsum([0, *(s.size for s in structures)])


def _parents(encoding: Encoding, structure: Structure) -> Ids:
    try:
        parents = structure.parents()
    except StructureError as error:
        raise encoding.error(
            structure,
            f"it needs a tree whose edges lead away from the root: {error.message}; for graphs choose an "
            "encoding of the graph itself, such as 'distance'",
        ) from error
    if structure.root is not None and parents[structure.root] >= 0:
        top = int(np.flatnonzero(parents < 0)[0])
        raise encoding.error(
            structure,
            f"it needs a tree; the root is node {structure.root} "
            f"({structure.nodes[structure.root]!r}), but the edges lead away from node {top} "
            f"({structure.nodes[top]!r}); give Structure(root={top}), or reverse the edges",
        )
    return parents
