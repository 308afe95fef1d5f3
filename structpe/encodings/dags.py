"""Places in directed acyclic graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from structpe.encodings.columns import ranges
from structpe.encodings.graphs import Graphs, OfNodes
from structpe.structure import Ids, Structure

__all__ = ["Generation"]


@dataclass(frozen=True)
class Generation(OfNodes, name="generation"):
    """The depth of a node in a directed acyclic graph: how many edges the longest path to it has.

    g_u = 0 if no edge leads to u, else 1 + the greatest g_w of the nodes w from which an edge leads to u.

    (Luo et al. 2023; their code.) An edge always leads to a later generation. In a tree this is ``depth``, without
    needing a root. Nodes on a cycle, and nodes that an edge without a direction joins, are of one generation, as if
    they were one node: there the authors' code does not end. All units of a node have its generation.
    """

    causal = True

    def of_nodes(self, graphs: Graphs, structures: Sequence[Structure]) -> Ids:
        from scipy.sparse.csgraph import connected_components

        steps = graphs.steps()
        count, part = connected_components(steps, connection="strong")
        source, target = (part[ends].astype(np.int64) for ends in steps.nonzero())
        between = source != target
        levels: Ids = _levels(source[between], target[between], int(count))[part]
        return levels


def _levels(source: Ids, target: Ids, nodes: int) -> Ids:
    """(nodes,) the length of the longest path to each node of a graph without cycles."""
    order = np.argsort(source, kind="stable")
    source, target = source[order], target[order]
    first = np.searchsorted(source, np.arange(nodes + 1))
    waits, level, depth = np.bincount(target, minlength=nodes), np.zeros(nodes, dtype=np.int64), 0
    ready = np.flatnonzero(waits == 0)
    while len(ready):
        level[ready] = depth
        lengths = first[ready + 1] - first[ready]
        met, often = np.unique(target[ranges(first[ready], lengths)], return_counts=True)
        waits[met] -= often
        ready, depth = met[waits[met] == 0], depth + 1
    return level
