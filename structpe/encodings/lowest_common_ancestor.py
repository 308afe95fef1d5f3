"""The path between two nodes of a tree: the numbers of steps up to their lowest common ancestor, and down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from structpe.encodings._encoded import narrow
from structpe.encodings._trees import Forest, depths
from structpe.encodings.base import Column, Encoded, Encoding, check_all_pairs, check_limit
from structpe.structure import Structure

__all__ = ["LowestCommonAncestor"]


@dataclass(frozen=True)
class LowestCommonAncestor(Encoding, name="lowest-common-ancestor"):
    """(up, down) = (depth(t) - depth(c), depth(s) - depth(c)), c the lowest common ancestor of t and s: values (r, 2).

    (Kim et al. 2021 write the path between two nodes as moves up and down; Villmow et al. 2021 represent it by these
    two numbers.) up + down is the distance in the tree; (0, down) is a pair of an ancestor and its descendant. Units
    have the values of their nodes, units of the same node (0, 0).

    Args:
        limit: largest number of steps, up or down; more are clipped to it. None for no limit.

    Raises:
        EncodingError: the structure is not a tree whose edges lead away from its root.
    """

    arity = 2
    causal = True

    limit: int | None = None

    def __post_init__(self) -> None:
        check_limit(self, self.limit)

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        check_all_pairs(self, structures, 2)
        forest = Forest.of(self, structures)
        depth = depths(forest.parent)
        above = forest.ancestors(depth)
        result = []
        for structure, start in zip(structures, forest.start, strict=False):
            rows, owner = slice(start, start + structure.size), structure.unit_owner
            mine = above[rows, : structure.size].astype(np.float32)
            # Common ancestors are the nodes from the root to the lowest one: its depth + 1.
            lowest = (mine @ mine.T).astype(np.int64)[owner[:, None], owner[None, :]] - 1
            level = depth[rows][owner]
            up, down = level[:, None] - lowest, level[None, :] - lowest
            if self.limit is not None and self.limit < structure.size:
                up, down = np.minimum(up, self.limit), np.minimum(down, self.limit)
            most = int(max(up.max(), down.max())) + 1
            distinct, index = np.unique(up * most + down, return_inverse=True)
            values = np.stack(np.divmod(distinct, most), axis=1)
            result.append(Encoded(values, narrow(index.reshape(up.shape))))
        return Column.of(result)
