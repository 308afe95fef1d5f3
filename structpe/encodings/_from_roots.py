"""Steps from the root of each structure, ignoring directions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from structpe.encodings._fast import fast
from structpe.encodings._graphs import Graphs
from structpe.encodings._rooted import heights
from structpe.encodings._searches import Adjacent
from structpe.encodings.base import Encoding
from structpe.structure import Ids, Structure

__all__ = ["steps_from_roots"]


def steps_from_roots(encoding: Encoding, graphs: Graphs, structures: Sequence[Structure]) -> Ids:
    """(T,) the length of the shortest path from the root of each structure; -1 without a path.

    Raises:
        EncodingError: a structure has no root.
    """
    for lacking in np.flatnonzero(graphs.roots < 0)[:1]:
        message = "the structure has no root to count from; give Structure(root=...)"
        raise encoding.error(structures[lacking], message)
    trees = graphs.rooted.tree & (graphs.rooted.parent[graphs.start[:-1] + graphs.roots] < 0)
    if trees.all():
        return graphs.rooted.depth.copy()
    result, rest, others = graphs.rooted.depth.copy(), graphs.only(~trees), np.repeat(~trees, graphs.sizes)
    both = np.ones(len(rest.sizes), dtype=np.bool_)
    result[others] = Adjacent.of(rest, both).steps_from(rest.roots) if fast() else _search(rest)
    return result


def _search(graphs: Graphs) -> Ids:
    """One breadth-first search of all structures, from a node above all roots."""
    top = int(graphs.start[-1])
    above = np.stack([np.full(len(graphs.roots), top), graphs.start[:-1] + graphs.roots], axis=1)
    ends = np.concatenate([graphs.edges, above])
    steps = csr_array((np.ones(len(ends)), ends.T), shape=(top + 1, top + 1))
    parent = breadth_first_order(steps, top, directed=False)[1][:top].astype(np.int64)
    missed = parent < 0
    depth, _ = heights(np.where(missed | (parent == top), top, parent))
    depth[missed] = -1
    return depth
