"""A numbering of nodes that does not depend on their order in memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from structpe.structure import Ids, Structure

__all__ = ["ranks", "ranks_of_all"]


def ranks(structure: Structure) -> Ids:
    """(n,) the place of each node in reading order, or its number if there is no order.

    Random numbers per node are drawn in this order, so that they do not depend on the numbering of nodes.
    """
    return np.arange(structure.size) if structure.order is None else structure.order


def ranks_of_all(structures: Sequence[Structure]) -> Ids:
    """(T,) the ranks of all structures, concatenated; without any order the numbers of nodes over all structures."""
    if all(each.order is None for each in structures):
        return np.arange(sum(len(each.nodes) for each in structures))
    return np.concatenate([*map(ranks, structures), np.zeros(0, dtype=np.int64)])
