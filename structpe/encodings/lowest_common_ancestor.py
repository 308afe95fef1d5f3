"""The path between two nodes of a tree: the numbers of steps up to their lowest common ancestor, and down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from structpe.encodings._integers import known
from structpe.encodings._trees import Forest
from structpe.encodings.base import Column, Encoded, Encoding, check_limit
from structpe.structure import Structure

__all__ = ["LowestCommonAncestor"]


@dataclass(frozen=True)
class LowestCommonAncestor(Encoding, name="lowest-common-ancestor"):
    """The path between two nodes of a tree: the numbers of steps up to their lowest common ancestor, and down.

    (up, down) = (depth(t) - depth(c), depth(s) - depth(c)), c the lowest common ancestor of t and s: values (r, 2).

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
        forest = Forest.of(self, structures, numbers=2)
        graphs, most = forest.graphs, min(self.limit or forest.deepest, forest.deepest)
        dtype = np.min_scalar_type((most + 1) ** 2 - 1)
        up, down = (np.minimum(each, most).astype(dtype) for each in (graphs.ways.up, graphs.ways.down))
        up *= dtype.type(most + 1)
        up += down
        values, index = known(up, (most + 1) ** 2)
        steps = np.stack(np.divmod(values, most + 1), axis=1)
        return Column(graphs.units, steps, graphs.pairs_of_units(index), graphs.squares)
