"""Tree position encodings: the branches on the path from the root of a tree, as one-hot vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from structpe.encodings._nearby import ranks_of_all
from structpe.encodings._trees import Forest, branches
from structpe.encodings.base import Column, Encoded, Encoding, check_sizes
from structpe.errors import EncodingError
from structpe.structure import Ids, Structure

__all__ = ["BranchPath", "left_child_right_sibling"]


@dataclass(frozen=True)
class BranchPath(Encoding, name="branch-path"):
    """Tree position encodings: the branches on the path from the root of a tree, as one-hot vectors.

    x_u = [onehot(b(u)); onehot(b(parent of u)); ...; 0], float32 (depth * width): the path from the root.

    (Shiv & Quirk 2019; survey, section 4.3.1.) b(v) in 0..width-1 is the index of v among the children of its parent,
    in reading order if the structure has one, else by node number. The deepest step comes first, as in the authors'
    code (the survey leaves this open): x[j width + b] = 1 if the node j edges above u is the b-th child of its parent.
    The root is all zero. Shorter paths end in zeros; of longer ones the steps next to the root are dropped. All units
    of a node have its vector.

    In the authors' code, the width of a one-hot is the number of children of the parent, which is the same in a
    complete tree.

    Args:
        depth: number of steps kept; the authors use 256.
        width: k, the largest number of children of a node.
        binary: first convert the tree to a binary one by :func:`left_child_right_sibling`, for trees of any width; the
            width must be 2.

    Raises:
        EncodingError: the structure is not a tree whose edges lead away from its root, or a node has too many children.
    """

    arity = 1
    causal = True
    real = True

    depth: int = 16
    width: int = 2
    binary: bool = False

    def __post_init__(self) -> None:
        if min(self.depth, self.width) < 1 or (self.binary and self.width != 2):
            raise EncodingError(
                f"encoding {self.name!r}: depth and width must be 1 or more, and a binary tree has width 2; these are "
                f"depth {self.depth}, width {self.width}, binary {self.binary}"
            )
        check_sizes(self, depth=self.depth, width=self.width)

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        forest = Forest.of(self, structures)
        order = ranks_of_all(structures)
        if self.binary:
            parent, branch = left_child_right_sibling(forest.parent, order)
        else:
            parent, branch = forest.parent, branches(forest.parent, order)
            self._check_width(structures, forest, branch)
        paths = self._paths(parent, branch)
        return Column.of_units(forest.graphs.units, forest.graphs.of_units(paths))

    def _paths(self, parent: Ids, branch: Ids) -> NDArray[np.float32]:
        paths = np.zeros((len(parent), self.depth * self.width), dtype=np.float32)
        nodes = at = np.arange(len(parent))
        for step in range(self.depth):
            below = parent[at] >= 0
            nodes, at = nodes[below], at[below]
            if not len(nodes):
                break
            paths[nodes, step * self.width + branch[at]] = 1.0
            at = parent[at]
        return paths

    def _check_width(self, structures: Sequence[Structure], forest: Forest, branch: Ids) -> None:
        if not (over := np.flatnonzero(branch >= self.width)).size:
            return
        full = int(forest.parent[over[0]])
        which = int(np.searchsorted(forest.start, full, side="right")) - 1
        structure, node = structures[which], full - int(forest.start[which])
        children = int((forest.parent == full).sum())
        raise self.error(
            structure,
            f"node {node} ({structure.nodes[node]!r}) has {children} children, the width is {self.width}; "
            f"give a width of {children} or more, or binary=True, which converts any tree to width 2",
        )


def left_child_right_sibling(parent: Ids, order: Ids) -> tuple[Ids, Ids]:
    """The binary tree in which a node's left child is its first child, and its right child its next sibling.

    Args:
        parent: (T,) parent of each node, -1 for a root; several trees may be concatenated.
        order: (T,) rank by which the children of a node are sorted.

    Returns:
        (T,) parent of each node in the binary tree, and (T,) its side: 0 left, 1 right; 0 for a root.
    """
    branch = branches(parent, order)
    by_parent = np.lexsort((branch, parent))
    before = np.empty_like(parent)
    before[by_parent] = np.roll(by_parent, 1)  # the previous sibling, if there is one
    return np.where(branch > 0, before, parent), (branch > 0).astype(np.int64)
