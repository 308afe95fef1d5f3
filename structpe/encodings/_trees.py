"""Concatenated rooted trees, so that one numpy call processes all of them. Shapes: T nodes of all trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from structpe.encodings._graphs import Graphs
from structpe.encodings.base import Encoding, check_matrices
from structpe.errors import StructureError
from structpe.structure import Ids, Structure

__all__ = ["Forest", "branches", "by_parent"]


@dataclass(frozen=True, eq=False)
class Forest:
    """Concatenated trees.

    Attributes:
        graphs: the trees as graphs.
        parent: (T,) parent of each node, -1 for a root.
        depth: (T,) number of edges from the root.
        line: (T,) the nodes of each tree by their depth: parents before children.
    """

    graphs: Graphs
    parent: Ids
    depth: Ids
    line: Ids

    @classmethod
    def of(cls, encoding: Encoding, structures: Sequence[Structure], numbers: int = 0) -> Forest:
        """Concatenate the structures.

        Args:
            encoding: the encoding, for errors.
            structures: trees.
            numbers: how many numbers a pair of nodes will have; 0 if pairs have none.

        Raises:
            EncodingError: a structure is not a tree whose edges lead away from its root, or is too large for numbers
                of pairs.
        """
        graphs = Graphs.of(structures)
        if numbers:
            check_matrices(encoding, graphs.most, numbers)
        rooted = graphs.rooted
        above = rooted.parent[graphs.start[:-1] + np.maximum(graphs.roots, 0)] >= 0  # of what is to be the root
        wrong = ~rooted.tree | ((graphs.roots >= 0) & above)
        for which in np.flatnonzero(wrong)[:1]:
            _refuse(encoding, structures[which])
        return cls(graphs, rooted.parent, rooted.depth, rooted.line)

    @property
    def start(self) -> Ids:
        """(trees + 1,) the first node of each tree, and T."""
        return self.graphs.start

    @property
    def deepest(self) -> int:
        """The largest depth."""
        return int(self.depth.max(initial=0))


def by_parent(parent: Ids, order: Ids) -> Ids:
    """(T,) the nodes by their parent, and those of one parent by a rank (T,)."""
    return np.lexsort((order, parent))


def branches(parent: Ids, order: Ids) -> Ids:
    """(T,) index of each node among the children of its parent, sorted by a rank (T,); 0 for a root."""
    nodes = by_parent(parent, order)
    sorted_parent = parent[nodes]
    first = np.searchsorted(sorted_parent, sorted_parent, side="left")
    branch = np.empty_like(parent)
    branch[nodes] = np.arange(len(parent)) - first
    return np.where(parent >= 0, branch, 0)


def _refuse(encoding: Encoding, structure: Structure) -> None:
    try:
        parents = structure.parents()
    except StructureError as error:
        raise encoding.error(
            structure,
            f"it needs a tree whose edges lead away from the root: {error.message}; for graphs choose an "
            "encoding of the graph itself, such as 'distance'",
        ) from error
    top, root = int(np.flatnonzero(parents < 0)[0]), structure.root or 0
    raise encoding.error(
        structure,
        f"it needs a tree; the root is node {root} "
        f"({structure.nodes[root]!r}), but the edges lead away from node {top} "
        f"({structure.nodes[top]!r}); give Structure(root={top}), or reverse the edges",
    )
